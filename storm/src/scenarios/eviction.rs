//! E17: Redis takes records away to make room, and Redis that is set up so that it may.
//!
//! A server that may evict is refused at the start, so it becomes one afterwards. One node has no
//! worker and waits for one: it is connected already, and takes whatever seems free.

use std::io;
use std::process::Command;
use std::time::Duration;

use frazil_rig::{AppendOnly, Redis, RedisBuilder, wait_until};

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Namespace, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 10;
const WORKERS: usize = 3;
/// What else is kept on the server, in heaps.
const HEAPS: u32 = 60;
const HEAP: &str = "for i = 1, 100 do \
                    redis.call('SET', 'filler:' .. ARGV[1] .. ':' .. i, string.rep('x', 900)) end";
/// Beyond what it uses.
const ROOM_BYTES: u64 = 1 << 20;
/// Without a trace of its own past a server counts as restarted: newcomers wait for as long as holders
/// go on without it (10 s), for the option `isolation` and for clocks (2 s each), and the budget (3 s).
/// The rest is for a full pool to be asked again.
const RECOVERED: Duration = Duration::from_secs(19);
/// Refused for safety.
const UNSAFE: i32 = 4;

pub(crate) const ROW: Scenario = Scenario {
    id: "E17",
    title: "Redis evicts, or may forget",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants, act, judge },
};

/// The namespace is founded by the nodes, and a leader's TTL, which counts among the windows, is
/// short: what is lost then rests for seconds.
fn participants(_: &Plan) -> Participants {
    Participants {
        nodes: WORKERS + 1,
        workers: WORKERS as u64,
        more_flags: ["--election-ttl", "1s"].map(str::to_owned).into(),
        namespace: Namespace::Found,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    refuses(stage)?;
    is_told(stage, Redis::builder().persistent(AppendOnly::EverySecond), "appendfsync")?;
    is_told(stage, Redis::builder(), "append-only")?;
    let (mut taken, mut slowest) = (0, Duration::ZERO);
    let before = evicted(stage)?;
    for cycle in 0..stage.cycles(CYCLES).max(2) {
        if !stage.goes_on() {
            return Ok(());
        }
        let begin = clock::now();
        let policy = if cycle % 2 == 0 { "allkeys-lru" } else { "allkeys-random" };
        taken += crowd(stage, policy)?;
        make_room(stage)?;
        stage.record_fault(format!("{policy}: heaps of other data"), None, begin);
        let room = clock::now();
        // They may go on for as long, although they have lost their workers.
        stage.rest(stage.lease.budget);
        stage.all_serve(WORKERS, clock::now())?;
        slowest = slowest.max(clock::now() - room);
    }
    stage.verdict.guard("keys evicted, by INFO", evicted(stage)? - before, 1000);
    stage.verdict.guard("keys of ours seen to be missing", taken, 1);
    stage.verdict.bar("room to three nodes that issue", slowest, RECOVERED);
    Ok(())
}

/// A server that may evict from the start is not used, and why is said.
fn refuses(stage: &mut Stage) -> io::Result<()> {
    let redis = Redis::builder().line("maxmemory-policy allkeys-lru").start()?;
    let output = Command::new(&stage.plan.frazil)
        .args(["serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--store"])
        .arg(redis.url())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_clear = said.contains("maxmemory-policy is allkeys-lru") && said.contains("noeviction");
    let is_refused = output.status.code() == Some(UNSAFE) && is_clear;
    stage
        .verdict
        .hold("refuses to be evicted", is_refused, || format!("{}: {said}", output.status));
    Ok(())
}

/// A server that may forget is used, and what that means is said.
fn is_told(stage: &mut Stage, redis: RedisBuilder, word: &str) -> io::Result<()> {
    let redis = redis.start()?;
    let run = |arguments: &[&str]| {
        let output = Command::new(&stage.plan.frazil)
            .args(arguments)
            .args(["--store", &redis.url()])
            .output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    run(&["store", "init"])?;
    let shown: serde_json::Value =
        serde_json::from_str(&run(&["store", "show", "--json"])?).map_err(io::Error::other)?;
    let promise = &shown["guarantees"];
    let doctor =
        run(&["doctor", "--json", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"])?;
    let warns = |line: &str| line.contains("\"warn\"") && line.contains(word);
    let is_told = promise["uniqueness"] == "conditional"
        && promise["warnings"].to_string().contains(word)
        && doctor.lines().any(warns);
    stage.verdict.hold("says that it may forget", is_told, || {
        format!("`store show` said {promise}, `doctor` said {doctor}")
    });
    Ok(())
}

/// Lets the server evict, and gives it more than it can keep. How many of our keys were seen to be
/// missing.
fn crowd(stage: &mut Stage, policy: &str) -> io::Result<u64> {
    let redis = stage.store.redis()?.0;
    let used: u64 = redis.info("used_memory")?.parse().map_err(io::Error::other)?;
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", policy])?;
    redis.cli(&["CONFIG", "SET", "maxmemory", &(used + ROOM_BYTES).to_string()])?;
    let mut missing = 0;
    for heap in 0..HEAPS {
        let said = redis.cli(&["EVAL", HEAP, "0", &heap.to_string()])?;
        if said.contains("OOM") {
            break;
        }
        let all = ["meta", "lineage", "w", "born"].map(|name| format!("{{frazil:default}}:{name}"));
        let mut question = vec!["EXISTS"];
        question.extend(all.iter().map(String::as_str));
        let there: u64 = redis.cli(&question)?.trim().parse().map_err(io::Error::other)?;
        missing += all.len() as u64 - there;
    }
    // At least one renewal.
    stage.rest(stage.lease.heartbeat * 2);
    Ok(missing)
}

/// As the documentation asks for.
fn make_room(stage: &Stage) -> io::Result<()> {
    let redis = stage.store.redis()?.0;
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"])?;
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"])?;
    let all = "for _, key in ipairs(redis.call('KEYS', 'filler:*')) do redis.call('DEL', key) end";
    wait_until("room", Duration::from_secs(10), || redis.cli(&["EVAL", all, "0"]).is_ok())
}

fn evicted(stage: &Stage) -> io::Result<u64> {
    stage.store.redis()?.0.info("evicted_keys")?.parse().map_err(io::Error::other)
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, WORKERS as u64 + 1);
}
