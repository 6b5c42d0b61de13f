//! E33: answers are cut anywhere on their way to the client, which asks again, and never hands an Id
//! out twice or in part.

use std::io;
use std::time::Duration;

use frazil_audit::IdSet;
use frazil_client::Client as Async;
use frazil_client::blocking::Client;
use frazil_id::Layout;
use frazil_rig::Proxy;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

const REQUESTS: u32 = 10_000;
/// Ids of a request: an answer has 160 bytes of them and a head.
const BATCH: usize = 20;
/// Bytes of answers that a connection lets pass, at the most: some answers, and a part of one. With
/// fewer than one answer has, no attempt succeeds.
const BYTES_MAX: u64 = 8000;
const DEADLINE: Duration = Duration::from_millis(250);
/// A client that is told when to come back does so.
const REST_MAX: Duration = Duration::from_millis(50);

pub(crate) const ROW: Scenario = Scenario {
    id: "E33",
    title: "answers cut on their way",
    stores: &Kind::ALL,
    play: Play::Nodes { cast, act, judge },
};

fn cast(_: &Plan) -> Cast {
    let pressure = Pressure { connections: 1, batch: 10, ..Pressure::default() };
    Cast { nodes: 1, workers: 1, pressure, ..Cast::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let proxy = Proxy::start(stage.nodes[0].door.address)?;
    // No Ids ahead: every request is one that may be cut.
    let settings = Async::builder()
        .endpoint(format!("http://{}", proxy.address()))
        .prefetch(0)
        // The only server there is, so that it is left alone for short.
        .backoff(Duration::from_millis(1)..=Duration::from_millis(20))
        .deadline(DEADLINE);
    let client = Client::connect_with(settings).map_err(io::Error::other)?;
    let (mut set, mut repeated, mut short) = (IdSet::new(&Layout::FRAZIL), 0, 0_u64);
    let (mut refused, mut typed) = (0_u64, 0_u64);
    let begin = clock::now();
    for _ in 0..stage.cycles(REQUESTS) {
        proxy.cut_after(stage.random.u64(0..BYTES_MAX));
        match client.batch(BATCH) {
            Ok(ids) => {
                short += u64::from(ids.len() != BATCH);
                for id in ids {
                    repeated += u64::from(!matches!(set.insert(id), Ok(true)));
                }
            }
            Err(error) => {
                refused += 1;
                typed += u64::from(error.is_retryable());
                clock::rest(error.retry_after().unwrap_or_default().min(REST_MAX));
            }
        }
    }
    stage.was("answers cut", Some(0), begin);
    let stats = client.stats();
    stage.verdict.hold("unique", repeated == 0, || format!("{repeated} Ids came twice"));
    stage.verdict.hold("all or nothing", short == 0, || format!("{short} batches were short"));
    stage.verdict.hold("typed", typed == refused, || {
        format!("{} of {refused} errors do not say that a retry helps", refused - typed)
    });
    let (attempts, requests) = (stats.attempts, stats.requests);
    stage.verdict.hold("no storm of retries", attempts <= 2 * requests + 1, || {
        format!("{attempts} attempts for {requests} requests")
    });
    stage.verdict.note("client", format!("{stats:?}"));
    stage.verdict.guard("attempts that failed", stats.failures, 10);
    stage.verdict.guard("Ids through the client", set.len(), 1000);
    Ok(())
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("Ids asked for directly", outcomes.counts.ids, 1000);
}
