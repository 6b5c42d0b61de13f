//! Many short tenures of one worker, one after the other and all at once: whoever claims with what it
//! read long ago comes with an old floor.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use frazil_id::Layout;

use crate::checker::Checker;
use crate::clock;
use crate::history::{Answer, ProcessRun, Tolerance};
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Plan, init};
use crate::store::{Kind, Setting, Store};
use crate::verdict::Verdict;

const LOOPS: usize = 6;
const LASTS: Duration = Duration::from_secs(30);
/// What a run that shows nothing must have seen.
const TENURES: u64 = 50;

pub(super) const TRAP: Scenario =
    Scenario { id: "E01", title: "many short tenures", stores: &Kind::ALL, play: Play::Own(run) };

fn run(plan: &Plan) -> io::Result<Outcomes> {
    let store = Store::start(plan.store, Setting::One)?;
    init(plan, &store, "0-0")?;
    let (began, caught) = (clock::now(), Arc::new(AtomicU64::new(0)));
    let is_over = AtomicBool::new(false);
    // Every process is a run of its own, and their order in real time is the store's business alone.
    let mut checker = Checker::new(Layout::FRAZIL, Arc::clone(&caught));
    let (sender, answers) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..LOOPS {
            let (sender, is_over, url) = (sender.clone(), &is_over, store.url());
            scope.spawn(move || issue_in_turn(plan, &url, number, is_over, &sender));
        }
        drop(sender);
        let end = began + LASTS.mul_f64(plan.scale.clamp(0.3, 1.0));
        for answer in answers {
            checker.take(&answer);
            // Relaxed, here and below: a number and a flag to look at.
            if caught.load(Ordering::Relaxed) > 0 || clock::now() > end {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    });
    let (mut verdict, _, counts) = checker.finish();
    if verdict.finding_count == 0 {
        verdict.guard("tenures", counts.tenures, TENURES);
    }
    Ok(outcomes(verdict, counts, began))
}

fn outcomes(verdict: Verdict, counts: crate::checker::Counts, began: Duration) -> Outcomes {
    Outcomes {
        counts,
        seconds: (clock::now() - began).as_secs_f64(),
        verdict,
        ..Outcomes::default()
    }
}

/// Starts `frazil next` again and again.
fn issue_in_turn(
    plan: &Plan,
    url: &str,
    number: usize,
    is_over: &AtomicBool,
    answers: &mpsc::Sender<Answer>,
) {
    for start in 1.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let (asked, asked_unix_ms) = (clock::now(), clock::unix_ms());
        let mut command = Command::new(&plan.frazil);
        command.args(["next", "-n", "1", "--json", "--workers", "0-0", "--patience", "10s"]);
        command.args(["--store", url]);
        if let Some(mutant) = &plan.mutant {
            command.env("STORM_MUTANT", mutant);
        }
        let Ok(output) = command.output() else { return };
        let line = serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap_or_default();
        let number_of =
            |field: &str| line[field].as_str().and_then(|text| text.parse::<u64>().ok());
        let (Some(id), Some(token)) = (number_of("id"), number_of("token")) else { continue };
        let answer = Answer {
            process_run: ProcessRun { node: number, start },
            connection: 0,
            asked,
            answered: clock::now(),
            asked_unix_ms,
            answered_unix_ms: clock::unix_ms(),
            // A tenure whose floor is ahead waits, or begins up to two seconds ahead.
            tolerance: Tolerance { behind_ms: 250, ahead_ms: 2250 },
            token: Some(token),
            ids: vec![id],
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}
