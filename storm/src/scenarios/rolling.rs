//! E26: every node is stopped and started again, round after round, and an application that gets its
//! IDs through the client, over HTTP or gRPC, notices nothing. Its IDs are checked together with all
//! others.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use frazil_client::blocking::Client;
use frazil_rig::wait_until;

use crate::clock;
use crate::history::{Tolerance, UnorderedIds};
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const ROUNDS: u32 = 10;
const LIMIT: Duration = Duration::from_secs(20);
/// IDs of one turn of the application, and the pause after it: some 50,000 a second.
const TURN: u64 = 500;
const PAUSE: Duration = Duration::from_millis(10);
/// The client hands out no ID that it has had for longer.
const MAX_AGE_MS: i64 = 2000;

pub(crate) const ROW: Scenario = Scenario {
    id: "E26",
    title: "a rolling restart",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

/// As many workers as nodes: who comes back needs the one that it gave back.
fn participants(_: &Plan) -> Participants {
    let pressure = Pressure { connections: 1, batch: 10, ..Pressure::default() };
    let drain_delay = Duration::from_millis(200);
    Participants { workers: 3, pressure, drain_delay, ..Participants::default() }
}

/// What the application saw.
#[derive(Debug, Default)]
struct Application {
    ids: u64,
    unordered_answers: Vec<UnorderedIds>,
    errors: Vec<String>,
}

fn act(stage: &mut Stage) -> io::Result<()> {
    // Each node by one of its two ways.
    let mut endpoints = Vec::new();
    for node in &stage.nodes {
        endpoints.push(match stage.random.bool() {
            true => format!("http://{}", node.endpoint.address),
            false => format!("grpc://{}", node.grpc),
        });
    }
    stage.verdict.note("endpoints", endpoints.join(", "));
    let tolerance = stage.nodes[0].endpoint.tolerance();
    let behind_ms = tolerance.behind_ms + MAX_AGE_MS;
    let tolerance = Tolerance { behind_ms, ..tolerance };
    let client = Client::connect(endpoints).map_err(io::Error::other)?;
    let is_over = AtomicBool::new(false);
    let (acted, application) = thread::scope(|scope| {
        let application = scope.spawn(|| use_ids(&client, tolerance, &is_over));
        let acted = roll(stage);
        // Relaxed: it is looked at again and again, and publishes nothing.
        is_over.store(true, Ordering::Relaxed);
        (acted, application.join())
    });
    acted?;
    let application = application.map_err(|_| io::Error::other("the application panicked"))?;
    let Application { ids, unordered_answers, errors } = application;
    stage.load.hand_in(unordered_answers);
    stage.verdict.guard("IDs through the client", ids, 10_000);
    stage.verdict.hold("the application sees no error", errors.is_empty(), || {
        format!("{} errors, the first: {}", errors.len(), errors[0])
    });
    stage.verdict.note("client", format!("{:?}", client.stats()));
    Ok(())
}

fn roll(stage: &mut Stage) -> io::Result<()> {
    let mut slowest = Duration::ZERO;
    for _ in 0..stage.cycles(ROUNDS).max(2) {
        for node in 0..stage.nodes.len() {
            if !stage.goes_on() {
                return Ok(());
            }
            let begin = clock::now();
            stage.nodes[node].stop(LIMIT)?;
            let ended = clock::now();
            stage.nodes[node].launch()?;
            wait_until("the node to issue again", LIMIT, || {
                stage.load.record.first_answer(node, ended).is_some()
            })?;
            slowest = slowest.max(clock::now() - ended);
            stage.record_fault("SIGTERM", Some(node), begin);
            stage.rest(Duration::from_millis(200));
        }
    }
    // The worker was given back: nobody waits for a horizon.
    stage.verdict.bar("end to first ID of the next start", slowest, Duration::from_millis(500));
    Ok(())
}

/// Uses IDs until it is told to stop.
fn use_ids(client: &Client, tolerance: Tolerance, is_over: &AtomicBool) -> Application {
    let mut seen = Application::default();
    while !is_over.load(Ordering::Relaxed) {
        let (asked_unix_ms, mut ids) = (clock::unix_ms(), Vec::new());
        for _ in 0..TURN {
            match client.next() {
                Ok(id) => ids.push(id.to_u64()),
                Err(error) => seen.errors.push(error.to_string()),
            }
        }
        seen.ids += ids.len() as u64;
        let answered_unix_ms = clock::unix_ms();
        seen.unordered_answers.push(UnorderedIds {
            asked_unix_ms,
            answered_unix_ms,
            tolerance,
            ids,
        });
        clock::rest(PAUSE);
    }
    seen
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    let directly = outcomes.counts.ids - outcomes.counts.through_clients;
    outcomes.verdict.guard("IDs asked for directly", directly, 1000);
    let stops = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + stops);
}
