//! E12: counts that no client should send, in every form in which HTTP takes one.
//!
//! Each must be answered at once, with a reason, and without an ID being used up. Nobody asks for
//! IDs meanwhile, so that the node's own counter shows the last. What is too long to be read is
//! answered by 414 or 431, and timed apart: it is a megabyte that has to be sent first.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::clock;
use crate::http::{Connection, Reply};
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;
use crate::verdict::Verdict;

/// Of all counts in all forms: some ten thousand requests.
const ROUNDS: u32 = 80;
const PATIENCE: Duration = Duration::from_secs(5);
const P99: Duration = Duration::from_millis(5);
const GROWTH_BYTES_MAX: u64 = 10 << 20;
const ISSUED: &str = "frazil_ids_issued_total";
const PATHS: [&str; 2] = ["/v1/ids", "/ids"];
const FORMS: [&str; 3] = ["application/json", "text/plain", "application/octet-stream"];

/// As it stands in a path's query: what a client means, and what it sends.
const COUNTS: [(&str, &str); 21] = [
    ("0", "0"),
    ("-1", "-1"),
    ("-0", "-0"),
    ("one too many", "100001"),
    ("1e9", "1000000000"),
    ("2^31", "2147483648"),
    ("2^32", "4294967296"),
    ("2^63", "9223372036854775808"),
    ("2^64 + 7", "18446744073709551623"),
    ("1e3", "1e3"),
    ("0x10", "0x10"),
    (" 7", "%207"),
    ("7 and a newline", "7%0A"),
    ("7 and a zero byte", "7%00"),
    ("7,8", "7,8"),
    ("+7", "%2B7"),
    ("+7 as it is", "+7"),
    ("7.0", "7.0"),
    ("nothing", ""),
    ("an arabic 7", "%D9%A7"),
    ("a wide 7", "%EF%BC%97"),
];

pub(crate) const ROW: Scenario = Scenario {
    id: "E12",
    title: "hostile counts",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let pressure = Pressure { connections: 0, ..Pressure::default() };
    Participants { nodes: 1, pressure, ..Participants::default() }
}

/// What the requests came to.
#[derive(Debug, Default)]
struct Tally {
    /// How long each took.
    times: Vec<Duration>,
    reasons: BTreeMap<String, u64>,
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut tally, mut long) = (Tally::default(), Tally::default());
    // What a first round makes the node allocate, it may keep.
    round(stage, &mut Tally::default(), &mut Tally::default())?;
    let (issued, memory) = (stage.nodes[0].metric(ISSUED)?, resident_bytes(stage)?);
    let begin = clock::now();
    for _ in 0..stage.cycles(ROUNDS) {
        round(stage, &mut tally, &mut long)?;
    }
    stage.record_fault("hostile counts", Some(0), begin);
    let (issued_after, grown) =
        (stage.nodes[0].metric(ISSUED)?, resident_bytes(stage)?.saturating_sub(memory));
    let consumed = issued_after - issued;
    stage
        .verdict
        .hold("nothing is used up", consumed == 0.0, || format!("{consumed} IDs are gone"));
    stage.verdict.hold("memory is bounded", grown <= GROWTH_BYTES_MAX, || {
        format!("the node has {grown} bytes more than before")
    });
    stage.verdict.note("grown by", format!("{} KiB", grown / 1024));
    stage.verdict.note("reasons", format!("{:?} {:?}", tally.reasons, long.reasons));
    let (many, needed) = (tally.times.len() as u64, u64::from(stage.cycles(ROUNDS)) * 100);
    stage.verdict.guard("hostile requests that were answered", many, needed);
    stage.verdict.guard("reasons", tally.reasons.len() as u64, 2);
    stage.verdict.guard("requests that are too long", long.times.len() as u64, 1);
    stage.verdict.bar("p99 of the answers", p99(&mut tally.times), P99);
    stage.verdict.bar("p99 where it is too long", p99(&mut long.times), P99 * 10);
    is_counted(stage, issued_after)
}

/// Sends every count in every form once.
fn round(stage: &mut Stage, tally: &mut Tally, long: &mut Tally) -> io::Result<()> {
    let address = stage.nodes[0].endpoint.address;
    for path in PATHS {
        for form in FORMS {
            let mut connection = Connection::open(address, PATIENCE)?;
            for (meaning, count) in COUNTS {
                let (path, begin) = (format!("{path}?count={count}"), clock::now());
                let reply = connection.ask("POST", &path, form)?;
                check(&mut stage.verdict, meaning, &reply, &[400], tally);
                tally.times.push(clock::now() - begin);
            }
        }
    }
    let digits = "7".repeat(1 << 20);
    for path in PATHS {
        let mut connection = Connection::open(address, PATIENCE)?;
        let begin = clock::now();
        let reply = connection.ask_too_much("POST", &format!("{path}?count={digits}"))?;
        check(&mut stage.verdict, "a megabyte of digits", &reply, &[400, 414, 431], long);
        long.times.push(clock::now() - begin);
    }
    // Short enough to be read: one is longer than any number, the other also than any path.
    for (length, status) in [(4_000, 400), (10_000, 414)] {
        let mut connection = Connection::open(address, PATIENCE)?;
        let path = format!("/v1/ids?count={}", &digits[..length]);
        let reply = connection.ask("POST", &path, "*/*")?;
        check(&mut stage.verdict, &format!("{length} digits"), &reply, &[status], tally);
    }
    Ok(())
}

/// Whether an answer is as it must be.
fn check(verdict: &mut Verdict, meaning: &str, reply: &Reply, allowed: &[u16], tally: &mut Tally) {
    let status = reply.status;
    verdict.hold("a clear answer", allowed.contains(&status), || {
        format!("the count {meaning:?} was answered by {status}")
    });
    let problem = serde_json::from_slice::<serde_json::Value>(&reply.body).unwrap_or_default();
    // Before a request was read there is nothing but its status.
    let reason = match (status, problem["reason"].as_str()) {
        (_, Some(reason)) => reason.to_owned(),
        (414 | 431, None) => status.to_string(),
        (_, None) => {
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            let text = format!("the count {meaning:?} was answered by {status} {body:?}");
            return verdict.find("a typed reason", text);
        }
    };
    *tally.reasons.entry(reason).or_default() += 1;
}

/// Shows that the counter counts: otherwise that it stands still would say nothing.
fn is_counted(stage: &mut Stage, before: f64) -> io::Result<()> {
    let mut connection = Connection::open(stage.nodes[0].endpoint.address, PATIENCE)?;
    let reply = connection.ask("POST", "/v1/ids?count=7", FORMS[2])?;
    let rise = stage.nodes[0].metric(ISSUED)? - before;
    stage.verdict.guard("7 IDs that are counted", u64::from(reply.status == 200 && rise == 7.0), 1);
    Ok(())
}

fn resident_bytes(stage: &Stage) -> io::Result<u64> {
    let id = stage.nodes[0].daemon.id().ok_or_else(|| io::Error::other("the node does not run"))?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other("no VmRSS in the process's status"))
}

fn p99(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times
        .get((times.len() * 99 / 100).min(times.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

fn judge(_: &Plan, _: &mut Outcomes) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oracles that speak of an answer.
    fn oracles(status: u16, body: &str) -> Vec<&'static str> {
        let reply = Reply { status, body: body.as_bytes().to_vec(), ..Reply::default() };
        let mut verdict = Verdict::default();
        check(&mut verdict, "7,8", &reply, &[400], &mut Tally::default());
        verdict.findings.iter().map(|finding| finding.oracle).collect()
    }

    #[test]
    fn a_count_that_is_taken_or_refused_without_a_reason_is_found() {
        let problem = r#"{"reason":"INVALID_ARGUMENT"}"#;
        assert!(oracles(400, problem).is_empty());
        assert_eq!(oracles(200, r#"{"ids":["1"]}"#), ["a clear answer", "a typed reason"]);
        assert_eq!(oracles(500, problem), ["a clear answer"]);
        assert_eq!(oracles(400, ""), ["a typed reason"]);
    }
}
