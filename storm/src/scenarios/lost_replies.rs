//! E33: answers are cut anywhere on their way to the client, which asks again, and never hands an ID
//! out twice or in part. Half of the requests go over gRPC, and their IDs are checked together with
//! all others.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use frazil_client::Client as Async;
use frazil_client::blocking::Client;
use frazil_id::Id;
use frazil_rig::Proxy;

use crate::clock;
use crate::history::{Tolerance, UnorderedIds};
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const REQUESTS: u32 = 10_000;
/// IDs of a request: an answer has 160 bytes of them and a head.
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
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let pressure = Pressure { connections: 1, batch: 10, ..Pressure::default() };
    Participants { nodes: 1, workers: 1, pressure, ..Participants::default() }
}

/// A client whose answers can be cut, and the way that they take.
struct ClientLink {
    client: Client,
    proxy: Proxy,
    requests: u64,
}

impl ClientLink {
    fn open(scheme: &str, to: SocketAddr) -> io::Result<Self> {
        let proxy = Proxy::start(to)?;
        // No IDs ahead: every request is one that may be cut.
        let settings = Async::builder()
            .endpoint(format!("{scheme}://{}", proxy.address()))
            .prefetch(0)
            // Whoever learned where the server is would go past the proxy.
            .discover(false)
            // The only server there is, so that it is left alone for short.
            .backoff(Duration::from_millis(1)..=Duration::from_millis(20))
            .deadline(DEADLINE);
        let client = Client::connect_with(settings).map_err(io::Error::other)?;
        Ok(Self { client, proxy, requests: 0 })
    }
}

/// What the application saw.
#[derive(Debug, Default)]
struct Observed {
    ids: u64,
    largest: Option<Id>,
    unordered_answers: Vec<UnorderedIds>,
    /// Batches that have not as many IDs as were asked for.
    short: u64,
    /// Batches that do not ascend, or are not beyond the one before.
    falling: u64,
    refused: u64,
    /// Errors that say that a retry helps.
    typed: u64,
}

impl Observed {
    /// Asks once.
    fn ask(&mut self, client: &Client, tolerance: Tolerance) {
        let asked_unix_ms = clock::unix_ms();
        match client.batch(BATCH) {
            Ok(ids) => {
                let answered_unix_ms = clock::unix_ms();
                self.short += u64::from(ids.len() != BATCH);
                self.ids += ids.len() as u64;
                let all = self.largest.iter().chain(&ids);
                self.falling += u64::from(!all.is_sorted_by(|one, other| one < other));
                self.largest = self.largest.max(ids.last().copied());
                let ids = ids.into_iter().map(Id::to_u64).collect();
                self.unordered_answers.push(UnorderedIds {
                    asked_unix_ms,
                    answered_unix_ms,
                    tolerance,
                    ids,
                });
            }
            Err(error) => {
                self.refused += 1;
                self.typed += u64::from(error.is_retryable());
                clock::rest(error.retry_after().unwrap_or_default().min(REST_MAX));
            }
        }
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let node = &stage.nodes[0];
    let mut ways =
        [ClientLink::open("http", node.endpoint.address)?, ClientLink::open("grpc", node.grpc)?];
    let (tolerance, mut seen) = (node.endpoint.tolerance(), Observed::default());
    let begin = clock::now();
    for _ in 0..stage.cycles(REQUESTS) {
        let way = &mut ways[stage.random.usize(0..2)];
        way.proxy.cut_after(stage.random.u64(0..BYTES_MAX));
        way.requests += 1;
        seen.ask(&way.client, tolerance);
    }
    stage.record_fault("answers cut", Some(0), begin);
    let Observed { ids, unordered_answers, short, falling, refused, typed, .. } = seen;
    stage.load.hand_in(unordered_answers);
    let verdict = &mut stage.verdict;
    verdict.hold("all or nothing", short == 0, || format!("{short} batches were short"));
    verdict.hold("order", falling == 0, || format!("{falling} batches were not beyond others"));
    verdict.hold("typed", typed == refused, || {
        format!("{} of {refused} errors do not say that a retry helps", refused - typed)
    });
    verdict.guard("IDs through the clients", ids, 1000);
    for (way, name) in ways.iter().zip(["HTTP", "gRPC"]) {
        let stats = way.client.stats();
        let (attempts, requests) = (stats.attempts, stats.requests);
        verdict.hold("no storm of retries", attempts <= 2 * requests + 1, || {
            format!("{attempts} attempts for {requests} requests over {name}")
        });
        verdict.note(format!("client over {name}"), format!("{stats:?}"));
        verdict.guard(format!("requests over {name}"), way.requests, 100);
        verdict.guard(format!("attempts that failed over {name}"), stats.failures, 10);
    }
    Ok(())
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    let directly = outcomes.counts.ids - outcomes.counts.through_clients;
    outcomes.verdict.guard("IDs asked for directly", directly, 1000);
}
