//! E42: Redis dies, and what it acknowledged last is not on its disk.
//!
//! SIGKILL alone loses nothing, since the page cache outlives the process. So the append-only file is
//! cut back to the length that it had some time before, at the end of a command. The last to be lost is
//! the acquisition of a node that issues already, and there are no workers but its own for another node
//! that starts afterwards. That something was lost is seen by what Redis has before and after.
//!
//! What is promised: no ID twice, whatever is lost. A server that syncs once a second loses 2 s at the
//! most, and running nodes go on after that without a refusal. To lose more is to be set back to an older
//! state, as by a backup: what holders knew to be on disk is gone. They stop at their horizons, and all
//! workers are used again within a window.

mod aof;
pub(crate) mod cut_off;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use frazil_rig::{Redis, wait_until};

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Outcomes, Participants, Plan, Stage};
use crate::store::{Kind, Setting};
use aof::Watch;

const WORKERS: usize = 3;
/// How much is lost.
const TAILS_MS: [u64; 4] = [100, 1000, 2000, 5000];
/// What a server can lose that syncs its file every second.
const UNSYNCED: Duration = Duration::from_secs(2);
const RUNNING: [usize; 2] = [0, 1];
/// Its acquisition is lost.
const EARLY: usize = 2;
/// It starts when that is so.
const LATE: usize = 3;
/// How long nodes can go on before Redis dies: it is back in a second or two.
const MARGIN: Duration = Duration::from_secs(8);
/// How long is looked on after the old horizons have passed.
const BEYOND: Duration = Duration::from_secs(3);
const STARTS: Duration = Duration::from_secs(60);
const STOPS: Duration = Duration::from_secs(20);
/// The namespace's window, and a little.
const COMES_BACK: Duration = Duration::from_secs(100);

pub(crate) const ROW: Scenario = Scenario {
    id: "E42",
    title: "Redis loses what it acknowledged last",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let ms = Duration::from_millis;
    Participants {
        nodes: 4,
        late: 2,
        workers: WORKERS as u64,
        lease: Lease { ttl: ms(3000), heartbeat: ms(250), budget: ms(12_000) },
        pressure: Pressure::gentle(),
        setting: Setting::Plain,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut lossy, mut tenures) = (0, 0);
    // Each seed begins with another one.
    let mut tails = TAILS_MS;
    stage.random.shuffle(&mut tails);
    for tail_ms in tails {
        let lost = lose(stage, Duration::from_millis(tail_ms))?;
        lossy += u64::from(lost.keys > 0 && lost.commands > 0);
        tenures += u64::from(lost.keys > 0 && lost.acquisition);
        if stage.verdict.finding_count > 0 || !stage.goes_on() {
            break;
        }
    }
    // A row that stopped at a finding shows what it has.
    let wanted = if stage.verdict.finding_count > 0 { 1 } else { TAILS_MS.len() as u64 };
    stage.verdict.guard("deaths after which Redis had other contents", lossy, wanted);
    // The shortest tail may be shorter than a start.
    stage.verdict.guard(
        "of them, those that took an acquisition with them",
        tenures,
        wanted.div_ceil(2),
    );
    Ok(())
}

/// What was lost.
#[derive(Debug)]
struct Lost {
    commands: u64,
    keys: usize,
    acquisition: bool,
}

fn lose(stage: &mut Stage, tail: Duration) -> io::Result<Lost> {
    for node in [EARLY, LATE] {
        if stage.nodes[node].daemon.runs() {
            stage.nodes[node].stop(STOPS)?;
        }
    }
    stage.can_outlast(&RUNNING, MARGIN)?;
    let watch = Watch::start(stage.store.redis()?.0.directory())?;
    // What was released must be on the disk.
    stage.rest(tail + Duration::from_secs(1));
    let (since, started) = (clock::now(), clock::now());
    stage.nodes[EARLY].launch()?;
    stage.recovery(EARLY, started, STARTS)?;
    stage.rest(tail / 2);
    let promised = stage.promised(&RUNNING)?;
    grows(stage, &watch, tail)?;
    let begin = clock::now();
    let lost = die(stage, &watch, tail)?;
    let acquisition = started + tail > begin;
    stage.verdict.note(
        format!("lost with the last {tail:?}"),
        format!("{} commands, which changed {} keys", lost.0, lost.1),
    );
    let back = clock::now();
    stage.nodes[LATE].launch()?;
    stage.rest_until(promised + BEYOND);
    if tail <= UNSYNCED {
        stage.nothing_refused(&RUNNING, since, begin);
    }
    one_of_two(stage, back);
    if tail > UNSYNCED {
        all_used(stage, back);
    }
    stage.record_fault(format!("killed, without its last {tail:?}"), None, begin);
    Ok(Lost { commands: lost.0, keys: lost.1, acquisition })
}

/// Waits until something was written within the tail.
fn grows(stage: &Stage, watch: &Watch, tail: Duration) -> io::Result<()> {
    wait_until("a write that is to be lost", Duration::from_secs(10), || {
        let now = clock::now();
        let before = watch.length_at(now.saturating_sub(tail));
        watch.length_at(now) > before && before.is_some() || !stage.goes_on()
    })
}

/// Kills Redis and starts it without its tail, while nobody reaches it. How many commands are gone, and
/// how many keys are not as they were.
fn die(stage: &Stage, watch: &Watch, tail: Duration) -> io::Result<(u64, usize)> {
    let proxies = || stage.nodes.iter().filter_map(|node| node.link.proxy.as_ref());
    let length = watch.length_at(clock::now().saturating_sub(tail));
    proxies().for_each(frazil_rig::Proxy::cut);
    let redis = stage.store.redis()?.0;
    let before = contents(redis)?;
    redis.kill();
    let commands = watch.cut_back(length.unwrap_or(0))?;
    redis.restart()?;
    let after = contents(redis)?;
    proxies().for_each(frazil_rig::Proxy::heal);
    Ok((commands, changed(&before, &after)))
}

/// Every key and what it has, in Redis's own form.
fn contents(redis: &Redis) -> io::Result<BTreeMap<String, String>> {
    let keys = redis.cli(&["--scan"])?;
    let dump = |key: &str| Ok((key.to_owned(), redis.cli(&["--no-raw", "DUMP", key])?));
    keys.lines().map(dump).collect()
}

/// How many keys have other values. One that is gone may have ended by its time.
fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> usize {
    before.iter().filter(|(key, value)| after.get(*key).is_some_and(|now| now != *value)).count()
}

/// One of the two that want the third worker has it within a minute.
fn one_of_two(stage: &mut Stage, back: Duration) {
    let left = (back + STARTS).saturating_sub(clock::now());
    let issues =
        |node: usize| stage.load.record.first_answer(node, clock::now() - Duration::from_secs(1));
    let found = wait_until("one of two", left, || {
        issues(EARLY).or_else(|| issues(LATE)).is_some() || !stage.goes_on()
    });
    let took = clock::now() - back;
    stage.verdict.note("Redis back to a node with the worker that was lost", format!("{took:?}"));
    stage.verdict.hold("bounded recovery", found.is_ok(), || {
        format!("nobody had the worker that was lost within {STARTS:?}")
    });
}

/// All workers are used again within a window, by whomever: there are more nodes than workers.
fn all_used(stage: &mut Stage, back: Duration) {
    let left = (back + COMES_BACK).saturating_sub(clock::now());
    let found = wait_until("all workers to be used", left, || {
        stage.serving().len() >= WORKERS || !stage.goes_on()
    });
    let (took, used) = (clock::now() - back, stage.serving().len());
    stage.verdict.note("Redis back, set back, to the use of all workers", format!("{took:?}"));
    stage.verdict.hold("bounded recovery", found.is_ok(), || {
        format!("{used} of {WORKERS} workers are used after {took:?}")
    });
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_changed_nothing_is_no_loss() {
        let keys = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let before = keys(&[("w", "1"), ("presence", "1")]);
        assert_eq!(changed(&before, &before), 0);
        assert_eq!(changed(&before, &keys(&[("w", "1")])), 0, "a presence ends by its time");
        assert_eq!(changed(&before, &keys(&[("w", "0"), ("presence", "1")])), 1);
    }
}
