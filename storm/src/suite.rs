//! Which experiments are played, and the scorecard of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::args::{HuntArgs, ScoreArgs, SoakArgs};
use crate::clock;
use crate::logs;
use crate::node;
use crate::report::Report;
use crate::scenario::{self, Scenario};
use crate::scenarios::leader::BLIND_REGISTER;
use crate::stage::Plan;
use crate::store::Kind;
use crate::traps::{self, MutantTrap};

/// A mutant that takes longer is not caught.
const CAUGHT_WITHIN: f64 = 60.0;
/// These are played on every store, the others on one that the seed chooses.
const ON_EVERY_STORE: [&str; 5] = ["E02", "E05", "E06", "E09", "E43"];
/// What the smoke plays: a fault of each kind, and each store.
const SMOKE: [(&str, Kind); 6] = [
    ("E02", Kind::Redis),
    ("E03", Kind::File),
    ("E05", Kind::File),
    ("E06", Kind::Etcd),
    ("E10", Kind::Redis),
    ("E13", Kind::Zk),
];
const SMOKE_MUTANTS: [&str; 5] =
    ["no-horizon", "start-at-clock", "unfenced-tokens", "sequence-overflow", "json-number"];

/// One run to be made.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) row: &'static Scenario,
    pub(crate) store: Kind,
    pub(crate) seed: u64,
    pub(crate) scale: f64,
    pub(crate) mutant: Option<String>,
}

impl Run {
    /// Plays it, and leaves its report behind.
    pub(crate) fn play(&self, frazil: &Path, out: &Path) -> io::Result<Report> {
        let Self { row, store, seed, scale, mutant } = self;
        let version = node::version(frazil)?;
        let name = mutant.as_ref().map_or_else(String::new, |mutant| format!("-{mutant}"));
        let directory = out.join(format!("{}-{store}{name}-{seed}", row.id));
        fs::create_dir_all(&directory)?;
        logs::clear(&directory)?;
        let plan = Plan {
            scenario: row.id,
            store: *store,
            seed: *seed,
            scale: *scale,
            frazil: frazil.canonicalize()?,
            mutant: mutant.clone(),
            directory: directory.canonicalize()?,
        };
        let outcomes = row.run(&plan).and_then(|mut outcomes| {
            logs::check_panics(&plan.directory, &mut outcomes.verdict)?;
            Ok(outcomes)
        });
        let report = Report::new(&plan, row.title, &version, outcomes);
        report.save(&directory)?;
        Ok(report)
    }
}

/// Everything: the experiments, then the mutants.
pub(crate) fn score(args: &ScoreArgs) -> io::Result<bool> {
    refuse_mutants(&args.place.frazil)?;
    let mut card = Scorecard::open(args.seed, &args.place.out)?;
    for row in scenario::ALL {
        let chosen = row.stores[card.random.usize(0..row.stores.len())];
        let all = ON_EVERY_STORE.contains(&row.id);
        for store in row.stores.iter().filter(|store| all || **store == chosen) {
            let run =
                Run { row, store: *store, seed: card.seed(), scale: args.scale, mutant: None };
            card.play(&run, &args.place.frazil)?;
        }
    }
    hunt_all(&mut card, &args.mutants, traps::HUNTS.iter().collect())?;
    card.close()
}

/// A little of everything.
pub(crate) fn smoke(args: &ScoreArgs) -> io::Result<bool> {
    let mut card = Scorecard::open(args.seed, &args.place.out)?;
    for (id, store) in SMOKE {
        let row = scenario::named(id).map_err(io::Error::other)?;
        let run = Run { row, store, seed: card.seed(), scale: args.scale, mutant: None };
        card.play(&run, &args.place.frazil)?;
    }
    let chosen =
        traps::HUNTS.iter().filter(|mutant_trap| SMOKE_MUTANTS.contains(&mutant_trap.mutant));
    hunt_all(&mut card, &args.mutants, chosen.collect())?;
    card.close()
}

/// The mutants alone, or some of them.
pub(crate) fn hunt(args: &HuntArgs) -> io::Result<bool> {
    let HuntArgs { names, score } = args;
    let is_known =
        |name: &String| traps::HUNTS.iter().any(|mutant_trap| mutant_trap.mutant == name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        return Err(io::Error::other(format!("no mutant is named {unknown}: see storm list")));
    }
    let is_chosen = |mutant_trap: &&MutantTrap| {
        names.is_empty() || names.iter().any(|name| name == mutant_trap.mutant)
    };
    let mut card = Scorecard::open(score.seed, &score.place.out)?;
    hunt_all(&mut card, &score.mutants, traps::HUNTS.iter().filter(is_chosen).collect())?;
    card.close()
}

/// What chance chooses, until the time is up.
pub(crate) fn soak(args: &SoakArgs) -> io::Result<bool> {
    refuse_mutants(&args.place.frazil)?;
    let mut card = Scorecard::open(args.seed, &args.place.out)?;
    let end = clock::now() + Duration::from_secs(args.minutes * 60);
    while clock::now() < end {
        let row = &scenario::ALL[card.random.usize(0..scenario::ALL.len())];
        let store = row.stores[card.random.usize(0..row.stores.len())];
        let run = Run { row, store, seed: card.seed(), scale: args.scale, mutant: None };
        card.play(&run, &args.place.frazil)?;
    }
    card.close()
}

/// Each mutant must be caught, the naive protocol too, and each trap must be silent about a build that
/// breaks nothing.
fn hunt_all(
    card: &mut Scorecard,
    mutants: &Path,
    mutant_traps: Vec<&'static MutantTrap>,
) -> io::Result<()> {
    check_names(mutants)?;
    let naive = Run {
        row: traps::NAIVE,
        store: Kind::Redis,
        seed: card.seed(),
        scale: 0.1,
        mutant: Some("naive".to_owned()),
    };
    card.catch(&naive, &["unique"], mutants)?;
    let mut silent = Vec::new();
    for mutant_trap in mutant_traps {
        let seed = card.seed();
        let run = Run {
            row: mutant_trap.trap,
            store: mutant_trap.store,
            seed,
            scale: 0.1,
            mutant: Some(mutant_trap.mutant.to_owned()),
        };
        card.catch(&run, mutant_trap.oracles, mutants)?;
        let scene = (mutant_trap.trap.title, mutant_trap.store);
        if !silent.contains(&scene) {
            silent.push(scene);
            card.play(&Run { mutant: None, ..run }, mutants)?;
        }
    }
    Ok(())
}

/// Every mutant that the build knows is hunted, and no other.
fn check_names(mutants: &Path) -> io::Result<()> {
    let output = Command::new(mutants).arg("layout").env("STORM_MUTANT", "none-such").output();
    let output = output.map_err(|error| {
        let what = format!("{}: {error}; build it with tools/mutants", mutants.display());
        io::Error::new(error.kind(), what)
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    let known = said.trim().rsplit_once(": ").map_or("", |(_, names)| names);
    let mut known: Vec<&str> = known.split(", ").collect();
    let hunted = traps::HUNTS.iter().map(|mutant_trap| mutant_trap.mutant);
    let mut hunted: Vec<&str> = hunted.filter(|mutant| *mutant != BLIND_REGISTER).collect();
    known.sort_unstable();
    hunted.sort_unstable();
    if known == hunted {
        return Ok(());
    }
    let what = format!(
        "{} knows the mutants {known:?}, and {hunted:?} are hunted; build it with tools/mutants",
        mutants.display()
    );
    Err(io::Error::other(what))
}

/// What is measured is what is released.
fn refuse_mutants(frazil: &Path) -> io::Result<()> {
    match node::version(frazil)?.ends_with("+mutants") {
        false => Ok(()),
        true => Err(io::Error::other(format!("{} has mutants in it", frazil.display()))),
    }
}

/// The results so far; each is printed as soon as it is there.
struct Scorecard {
    out: PathBuf,
    random: fastrand::Rng,
    first_seed: u64,
    lines: Vec<String>,
    ids: u64,
    failed: u64,
}

impl Scorecard {
    fn open(seed: Option<u64>, out: &Path) -> io::Result<Self> {
        fs::create_dir_all(out)?;
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        tell(&format!("storm with seed {seed}; reports go to {}", out.display()));
        let (out, random) = (out.to_owned(), fastrand::Rng::with_seed(seed));
        Ok(Self { out, random, first_seed: seed, lines: Vec::new(), ids: 0, failed: 0 })
    }

    fn seed(&mut self) -> u64 {
        self.random.u64(..)
    }

    /// Plays a run that must pass.
    fn play(&mut self, run: &Run, frazil: &Path) -> io::Result<()> {
        let report = run.play(frazil, &self.out)?;
        self.ids += report.outcomes.as_ref().map_or(0, |outcomes| outcomes.counts.ids);
        self.failed += u64::from(!report.passes);
        match report.passes {
            true => self.line(format!("{}\n      {}", report.line(), report.faults_by_kind())),
            // Everything there is to know, at once.
            false => self.line(report.page()),
        }
        Ok(())
    }

    /// Plays a run in which something must be found, by one of these oracles.
    fn catch(&mut self, run: &Run, by: &[&str], frazil: &Path) -> io::Result<()> {
        let report = run.play(frazil, &self.out)?;
        let mutant = run.mutant.as_deref().unwrap_or_default();
        let seconds = report.outcomes.as_ref().map_or(f64::MAX, |outcomes| outcomes.seconds);
        let is_caught = report.is_found_by(by) && seconds <= CAUGHT_WITHIN;
        if !is_caught {
            self.failed += 1;
            self.line(format!("NOT CAUGHT  {mutant}\n{}", report.page()));
            return Ok(());
        }
        let verdict = report.outcomes.as_ref().map(|outcomes| &outcomes.verdict);
        let mut oracles: Vec<_> = verdict
            .into_iter()
            .flat_map(|verdict| &verdict.findings)
            .map(|one| one.oracle)
            .collect();
        oracles.dedup();
        oracles.truncate(3);
        self.line(format!(
            "caught  {mutant:<20}  {:<5}  {:<32}  {:>6} findings ({})  {seconds:>4.0} s",
            run.store.to_string(),
            run.row.title,
            report.finding_count(),
            oracles.join(", ")
        ));
        Ok(())
    }

    fn line(&mut self, line: String) {
        tell(&line);
        self.lines.push(line);
    }

    fn close(mut self) -> io::Result<bool> {
        let (runs, failed, ids) = (self.lines.len() as u64, self.failed, self.ids);
        let good = runs - failed;
        let seed = self.first_seed;
        self.line(format!(
            "scorecard: {good} of {runs} as they must be, {ids} IDs checked, seed {seed}, {:.0} s",
            clock::now().as_secs_f64()
        ));
        fs::write(self.out.join("scorecard.txt"), self.lines.join("\n") + "\n")?;
        Ok(failed == 0)
    }
}

#[expect(clippy::print_stdout, reason = "what was found is what this prints")]
pub(crate) fn tell(text: &str) {
    println!("{text}");
}
