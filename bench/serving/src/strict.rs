//! A strict scope at full speed, by wrk: on its leader, and through a node that forwards to it.

use std::io::{Read, Write};
use std::net::TcpStream;

use frazil_bench::{Table, verdict};

use crate::http::{CONNECTIONS, median, wrk};
use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// Requests a second that the leader of a scope must answer, where plain ones are fast enough for
/// that: a lock and a look at the clock are all that is added.
const LEADER_MIN: f64 = 50_000.0;
/// The same beside plain issuing.
const RATIO_MIN: f64 = 0.90;
/// A request that is forwarded beside one that the leader has itself: it is two requests, of which the
/// second goes over a connection that is kept.
const FORWARDED_MIN: f64 = 0.50;
/// Attempts until the scope has a leader.
const ATTEMPTS: usize = 10;

const STRICT: &str = "/ids?scope=orders";

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    let directory = tempfile::tempdir()?;
    let store = directory.path().display().to_string();
    let leader = Process::start(&["scoped", &store, "one"])?;
    wait_for_leader(&leader.addresses[0])?;
    let follower = Process::start(&["scoped", &store, "two"])?;
    wait_for_leader(&follower.addresses[0])?;
    let (mut plain, mut led, mut forwarded) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        plain.push(wrk(effort, &leader.addresses[0], "/ids", CONNECTIONS)?);
        led.push(wrk(effort, &leader.addresses[0], STRICT, CONNECTIONS)?);
        forwarded.push(wrk(effort, &follower.addresses[0], STRICT, CONNECTIONS)?);
    }
    let (plain, led, forwarded) = (median(&mut plain), median(&mut led), median(&mut forwarded));
    println!("A strict scope over HTTP, one ID a request, wrk with {CONNECTIONS} connections");
    let mut table = Table::new(&["IDs", "requests/s", "ratio", "bar", ""]);
    table.row(["plain".into(), format!("{plain:.0}"), "1.00".into()]);
    let holds = led / plain >= RATIO_MIN || led >= LEADER_MIN;
    table.row([
        "strict, at the leader".into(),
        format!("{led:.0}"),
        format!("{:.2}", led / plain),
        format!("{RATIO_MIN:.2}"),
        verdict(holds).into(),
    ]);
    table.row([
        "strict, forwarded (beside the leader)".into(),
        format!("{forwarded:.0}"),
        format!("{:.2}", forwarded / led),
        format!("{FORWARDED_MIN:.2}"),
        verdict(forwarded / led >= FORWARDED_MIN).into(),
    ]);
    println!("{table}");
    Ok(())
}

/// A node waits by itself until there is a leader, for as long as a request may.
fn wait_for_leader(address: &str) -> Outcome {
    let mut answer = String::new();
    for _ in 0..ATTEMPTS {
        answer.clear();
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "POST {STRICT} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
        stream.read_to_string(&mut answer)?;
        if answer.starts_with("HTTP/1.1 200") {
            return Ok(());
        }
    }
    Err(format!("the scope has no leader: {answer}").into())
}
