//! E26: every node is stopped and started again, round after round, and an application that gets its
//! Ids through the client notices nothing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use frazil_audit::IdSet;
use frazil_client::blocking::Client;
use frazil_id::Layout;
use frazil_rig::wait_until;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

const ROUNDS: u32 = 10;
const LIMIT: Duration = Duration::from_secs(20);
/// Ids of one turn of the application, and the pause after it: some 50,000 a second.
const TURN: u64 = 500;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) const ROW: Scenario = Scenario {
    id: "E26",
    title: "a rolling restart",
    stores: &Kind::ALL,
    play: Play::Nodes { cast, act, judge },
};

/// As many workers as nodes: who comes back needs the one that it gave back.
fn cast(_: &Plan) -> Cast {
    let pressure = Pressure { connections: 1, batch: 10, ..Pressure::default() };
    let drain_delay = Duration::from_millis(200);
    Cast { workers: 3, pressure, drain_delay, ..Cast::default() }
}

/// What the application saw.
#[derive(Debug, Default)]
struct Application {
    ids: u64,
    repeated: u64,
    errors: Vec<String>,
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let endpoints: Vec<_> =
        stage.nodes.iter().map(|node| format!("http://{}", node.door.address)).collect();
    let client = Client::connect(endpoints).map_err(io::Error::other)?;
    let is_over = AtomicBool::new(false);
    let (acted, application) = thread::scope(|scope| {
        let application = scope.spawn(|| use_ids(&client, &is_over));
        let acted = roll(stage);
        // Relaxed: it is looked at again and again, and publishes nothing.
        is_over.store(true, Ordering::Relaxed);
        (acted, application.join())
    });
    acted?;
    let application = application.map_err(|_| io::Error::other("the application panicked"))?;
    let Application { ids, repeated, errors } = application;
    stage.verdict.guard("Ids through the client", ids, 10_000);
    stage.verdict.hold("unique", repeated == 0, || format!("{repeated} Ids came twice"));
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
            stage.was("SIGTERM", Some(node), begin);
            stage.rest(Duration::from_millis(200));
        }
    }
    // The worker was given back: nobody waits for a horizon.
    stage.verdict.bar("end to first Id of the next start", slowest, Duration::from_millis(500));
    Ok(())
}

/// Uses Ids until it is told to stop.
fn use_ids(client: &Client, is_over: &AtomicBool) -> Application {
    let (mut seen, mut set) = (Application::default(), IdSet::new(&Layout::FRAZIL));
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..TURN {
            match client.next() {
                Ok(id) => {
                    seen.ids += 1;
                    seen.repeated += u64::from(!matches!(set.insert(id), Ok(true)));
                }
                Err(error) => seen.errors.push(error.to_string()),
            }
        }
        clock::rest(PAUSE);
    }
    seen
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("Ids asked for directly", outcomes.counts.ids, 1000);
    let stops = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + stops);
}
