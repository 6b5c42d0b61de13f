//! How fast a crowd of nodes gets its workers: 1,024 claims within a moment on a pool of 1,024, on
//! real servers, beside as many bare writes on the same store in the same run. Then how fast
//! leaders are elected, handed over and replaced, what thousands of finished elections cost a new
//! one, and what a rolling restart does to jobs.
#![expect(clippy::print_stdout, reason = "the report")]

mod asking;
mod crowd;
mod election;
mod finished;
mod jobs;
mod server;

use std::time::Duration;

use frazil_bench::{Table, machine, verdict};
use tokio::runtime::Runtime;

use crate::asking::CallCost;
use crate::crowd::Crowd;
use crate::election::{Election, TTL, VICTIM};
use crate::finished::{FINISHED, NewElection};
use crate::jobs::Jobs;
use crate::server::Server;

/// The name of a store, and what the design asks of it: a time, and operations a claim in the mean.
type Bar = (&'static str, Duration, f64);

const BARS: [Bar; 4] = [
    ("file", Duration::from_secs(1), 3.0),
    ("redis", Duration::from_secs(1), 3.0),
    ("etcd", Duration::from_secs(5), 4.0),
    ("zk", Duration::from_secs(5), 4.0),
];
/// Of the hand-over of a leadership, in 99 of 100 cases.
const HANDOVER_BAR: Duration = Duration::from_millis(50);
/// The same where there is no network.
const FILE_HANDOVER_BAR: Duration = Duration::from_millis(5);
/// The first election on an idle store.
const FIRST_BAR: Duration = Duration::from_millis(100);
/// By how much more a new election may take where thousands are over.
const FINISHED_BAR: f64 = 1.1;
/// Asking whether one leads.
const ASKING_BAR_NS: f64 = 50.0;
/// Of the replacement of a leader that died, beyond the time to live.
const CRASH_BAR: Duration = Duration::from_secs(1);
/// Of the time that a job is without a node in a rolling restart.
const GAP_BAR: Duration = Duration::from_millis(300);
/// Of the time until loads are even again.
const EVEN_BAR: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, url] = arguments.as_slice()
        && flag == VICTIM
    {
        return runtime.block_on(election::be_the_victim(url));
    }
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let names = arguments.iter().map(String::as_str).filter(|name| !name.starts_with('-'));
    let (stores, sections): (Vec<_>, Vec<_>) =
        names.partition(|name| BARS.iter().any(|(store, ..)| store == name));
    // Without a name, all of them.
    let is_wanted = |name: &str| sections.is_empty() || sections.contains(&name);
    let bars = BARS.into_iter().filter(|(name, ..)| stores.is_empty() || stores.contains(name));
    let bars: Vec<_> = bars.collect();
    println!("{}", machine());
    if is_wanted("crowds") {
        crowds(&runtime, &bars)?;
    }
    if is_wanted("elections") {
        elections(&runtime, &bars, is_quick)?;
    }
    if is_wanted("finished") {
        finished(&runtime, &bars, is_quick)?;
    }
    if is_wanted("jobs") {
        rolling_restarts(&runtime, &bars)?;
    }
    Ok(())
}

fn crowds(runtime: &Runtime, bars: &[Bar]) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "1,024 claims at once on 1,024 workers; beside it 1,024 bare writes on the same store\n"
    );
    let mut table = Table::new(&[
        "store",
        "claims ms",
        "writes ms",
        "ratio",
        "ops/claim",
        "most",
        "first ID ms",
        "bar",
        "",
    ]);
    for &(name, limit, most) in bars {
        let server = Server::start(name)?;
        let crowd = runtime.block_on(Crowd::measure(&server))?;
        let within = crowd.claims <= limit && crowd.operations <= most;
        table.row([
            name.into(),
            format!("{:.0}", ms(crowd.claims)),
            format!("{:.0}", ms(crowd.writes)),
            format!("{:.2}", crowd.claims.as_secs_f64() / crowd.writes.as_secs_f64()),
            format!("{:.2}", crowd.operations),
            crowd.most.to_string(),
            format!("{:.0}", ms(crowd.first_id)),
            format!("{} s, {most} ops", limit.as_secs()),
            verdict(within).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn elections(
    runtime: &Runtime,
    bars: &[Bar],
    is_quick: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let (handovers, crashes) = if is_quick { (20, 1) } else { (200, 5) };
    println!(
        "\none election, a TTL of {TTL:?}: {handovers} hand-overs from a resignation to the next \
         leader, {crashes} leaders killed\n"
    );
    let mut table = Table::new(&[
        "store",
        "first ms",
        "hand-over p50",
        "p99",
        "max",
        "ops",
        "crash median ms",
        "max",
        "bar",
        "",
    ]);
    for &(name, ..) in bars {
        let server = Server::start(name)?;
        let measured = runtime.block_on(Election::measure(&server, handovers, crashes))?;
        let p99 = percentile(&measured.handovers, 99);
        let worst = percentile(&measured.crashes, 100);
        let handover_bar = if name == "file" { FILE_HANDOVER_BAR } else { HANDOVER_BAR };
        let within = p99 <= handover_bar && worst <= TTL + CRASH_BAR && measured.first <= FIRST_BAR;
        table.row([
            name.into(),
            format!("{:.1}", ms(measured.first)),
            format!("{:.1}", ms(percentile(&measured.handovers, 50))),
            format!("{:.1}", ms(p99)),
            format!("{:.1}", ms(percentile(&measured.handovers, 100))),
            measured.operations.map_or("-".into(), |operations| format!("{operations:.2}")),
            format!("{:.0}", ms(percentile(&measured.crashes, 50))),
            format!("{:.0}", ms(worst)),
            format!("p99 {:.0} ms, TTL + {} s", ms(handover_bar), CRASH_BAR.as_secs()),
            verdict(within).into(),
        ]);
    }
    println!("{table}");
    let asking = runtime.block_on(CallCost::measure())?;
    println!(
        "is_leader(): {:.1} ns, reading the clock alone: {:.1} ns, ratio {:.2}; bar {ASKING_BAR_NS} \
         ns  {}",
        asking.is_leader_ns,
        asking.clock_ns,
        asking.is_leader_ns / asking.clock_ns,
        verdict(asking.is_leader_ns <= ASKING_BAR_NS)
    );
    Ok(())
}

fn finished(
    runtime: &Runtime,
    bars: &[Bar],
    is_quick: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let rounds = if is_quick { 20 } else { 200 };
    println!(
        "\na new election, {rounds} times in each of two namespaces: in one of them {FINISHED} elections \
         were held before\n"
    );
    let mut table = Table::new(&["store", "among few ms", "among many ms", "ratio", "bar", ""]);
    for &(name, ..) in bars {
        let server = Server::start(name)?;
        let measured = runtime.block_on(NewElection::measure(&server, rounds))?;
        let ratio = measured.among_many.as_secs_f64() / measured.among_few.as_secs_f64();
        table.row([
            name.into(),
            format!("{:.2}", ms(measured.among_few)),
            format!("{:.2}", ms(measured.among_many)),
            format!("{ratio:.2}"),
            format!("{FINISHED_BAR}"),
            verdict(ratio <= FINISHED_BAR).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn rolling_restarts(runtime: &Runtime, bars: &[Bar]) -> Result<(), Box<dyn std::error::Error>> {
    println!("\na rolling restart of 3 nodes with 29 jobs: how long a job is without a node\n");
    let mut table = Table::new(&[
        "store",
        "all run ms",
        "moves",
        "gap p50 ms",
        "p99",
        "max",
        "even after s",
        "loads",
        "bar",
        "",
    ]);
    for &(name, ..) in bars {
        let server = Server::start(name)?;
        let measured = runtime.block_on(Jobs::measure(&server))?;
        let worst = percentile(&measured.gaps, 100);
        let within = worst <= GAP_BAR && measured.even_after <= EVEN_BAR;
        table.row([
            name.into(),
            format!("{:.0}", ms(measured.start)),
            measured.gaps.len().to_string(),
            format!("{:.1}", ms(percentile(&measured.gaps, 50))),
            format!("{:.1}", ms(percentile(&measured.gaps, 99))),
            format!("{:.1}", ms(worst)),
            format!("{:.1}", measured.even_after.as_secs_f64()),
            format!("{:?}", measured.loads),
            format!("{:.0} ms, {} s", ms(GAP_BAR), EVEN_BAR.as_secs()),
            verdict(within).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The time that so many of a hundred do not exceed.
fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or_default()
}
