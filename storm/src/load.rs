//! Clients that ask for Ids all the time, and hand everything they get to the checker.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use frazil_id::Layout;

use crate::checker::Checker;
use crate::clock;
use crate::history::{Answer, Handful, Mark, Outcome, Record};
use crate::http::{Connection, Reply};
use crate::node::Door;

/// Answers that wait for the checker: enough for a hiccup, few against memory.
const WAITING_MAX: usize = 4096;

/// How hard nodes are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    /// For each node.
    pub(crate) connections: u32,
    pub(crate) batch: u32,
    /// Between an answer and the next request of a connection.
    pub(crate) pause: Duration,
    /// Between a failure and the next request.
    pub(crate) rest: Duration,
    /// After this a request counts as lost.
    pub(crate) patience: Duration,
}

impl Default for Pressure {
    fn default() -> Self {
        Self {
            connections: 4,
            batch: 100,
            pause: Duration::from_millis(5),
            rest: Duration::from_millis(10),
            patience: Duration::from_secs(5),
        }
    }
}

/// Clients that run until they are stopped.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) record: Arc<Record>,
    stop: Arc<AtomicBool>,
    caught: Arc<AtomicU64>,
    ids: Arc<AtomicU64>,
    strange: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
    checker: JoinHandle<Checker>,
    /// What applications got, to be checked with all the rest.
    handfuls: Vec<Handful>,
}

impl Load {
    /// Starts clients of every node.
    pub(crate) fn start(doors: &[Arc<Door>], pressure: Pressure) -> io::Result<Self> {
        let record = Arc::new(Record::new(doors.len()));
        let (stop, caught) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ids, strange) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (sender, answers) = mpsc::sync_channel::<Answer>(WAITING_MAX);
        let mut checker = Checker::new(Layout::FRAZIL, Arc::clone(&caught));
        let checker = thread::Builder::new().name("storm-checker".to_owned()).spawn(move || {
            answers.iter().for_each(|answer| checker.take(&answer));
            checker
        })?;
        let mut clients = Vec::new();
        for door in doors {
            for connection in 0..pressure.connections {
                let client = Client {
                    door: Arc::clone(door),
                    connection,
                    pressure,
                    record: Arc::clone(&record),
                    stop: Arc::clone(&stop),
                    ids: Arc::clone(&ids),
                    strange: Arc::clone(&strange),
                    answers: sender.clone(),
                };
                let name = format!("storm-client-{}-{connection}", door.node);
                clients.push(thread::Builder::new().name(name).spawn(move || client.run())?);
            }
        }
        let handfuls = Vec::new();
        Ok(Self { record, stop, caught, ids, strange, clients, checker, handfuls })
    }

    /// Ids of all clients so far.
    pub(crate) fn ids(&self) -> u64 {
        // Relaxed: a number to look at.
        self.ids.load(Ordering::Relaxed)
    }

    /// Answers that had not what was asked for.
    pub(crate) fn strange(&self) -> u64 {
        // Relaxed: a number to look at.
        self.strange.load(Ordering::Relaxed)
    }

    /// Whether something was found already.
    pub(crate) fn has_caught(&self) -> bool {
        // Relaxed: a number to look at.
        self.caught.load(Ordering::Relaxed) > 0
    }

    /// Hands in what an application got: it is checked in the end, with all the rest.
    pub(crate) fn hand_in(&mut self, handfuls: Vec<Handful>) {
        self.handfuls.extend(handfuls);
    }

    /// Ends all clients; the checker then has everything.
    pub(crate) fn stop(self) -> io::Result<(Arc<Record>, Checker)> {
        // Relaxed: the clients look at it before each request, and publish nothing by it.
        self.stop.store(true, Ordering::Relaxed);
        let panicked = |_| io::Error::other("a thread of the rig panicked");
        for client in self.clients {
            client.join().map_err(panicked)?;
        }
        let mut checker = self.checker.join().map_err(panicked)?;
        self.handfuls.iter().for_each(|handful| checker.take_handful(handful));
        Ok((self.record, checker))
    }
}

/// One client, with one connection at a time.
struct Client {
    door: Arc<Door>,
    connection: u32,
    pressure: Pressure,
    record: Arc<Record>,
    stop: Arc<AtomicBool>,
    ids: Arc<AtomicU64>,
    strange: Arc<AtomicU64>,
    answers: SyncSender<Answer>,
}

impl Client {
    fn run(self) {
        let path = format!("/v1/ids?count={}", self.pressure.batch);
        let mut open = None;
        // Relaxed: see `Load::stop`.
        while !self.stop.load(Ordering::Relaxed) {
            let asked = clock::now();
            let outcome = self.request(&mut open, &path);
            let is_ok = matches!(outcome, Outcome::Ids(_));
            self.record.add(self.door.node, Mark { asked, answered: clock::now(), outcome });
            clock::rest(if is_ok { self.pressure.pause } else { self.pressure.rest });
        }
    }

    /// Asks once; a connection on which something went wrong is given up.
    fn request(&self, open: &mut Option<Connection>, path: &str) -> Outcome {
        let (life, tolerance) = (self.door.life(), self.door.tolerance());
        let mut connection = match open.take() {
            Some(connection) => connection,
            None => match Connection::open(self.door.address, self.pressure.patience) {
                Ok(connection) => connection,
                Err(_) => return Outcome::Lost,
            },
        };
        let (asked, asked_unix_ms) = (clock::now(), clock::unix_ms());
        let Ok(reply) = connection.ask("POST", path, "application/octet-stream") else {
            return Outcome::Lost;
        };
        let (answered, answered_unix_ms) = (clock::now(), clock::unix_ms());
        *open = Some(connection);
        if reply.status != 200 {
            return Outcome::Refused(reason(&reply));
        }
        let (words, rest) = reply.body.as_chunks::<8>();
        let ids: Vec<u64> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        if !rest.is_empty() || count != self.pressure.batch {
            return self.strange(format!("an answer of {} bytes", reply.body.len()));
        }
        let Some(token) = reply.token else {
            return self.strange("an answer without a token".to_owned());
        };
        // A fault may have begun or ended meanwhile: what was allowed at either time is allowed.
        let tolerance = tolerance.or(self.door.tolerance());
        if life != self.door.life() {
            // It may be the answer of either life: nobody's order or token can be told from it.
            return Outcome::Lost;
        }
        let answer = Answer {
            life,
            connection: self.connection,
            asked,
            answered,
            asked_unix_ms,
            answered_unix_ms,
            tolerance,
            token,
            ids,
        };
        match self.answers.send(answer) {
            Ok(()) => {
                // Relaxed: a number to look at.
                self.ids.fetch_add(u64::from(count), Ordering::Relaxed);
                Outcome::Ids(count)
            }
            // The checker is gone: the run ends with an error.
            Err(_) => Outcome::Lost,
        }
    }
}

impl Client {
    /// An answer that no node may give is a finding.
    fn strange(&self, what: String) -> Outcome {
        // Relaxed: numbers to look at.
        self.strange.fetch_add(1, Ordering::Relaxed);
        Outcome::Refused(what)
    }
}

/// The reason in a problem, or its status.
fn reason(reply: &Reply) -> String {
    let problem = serde_json::from_slice::<serde_json::Value>(&reply.body).unwrap_or_default();
    problem["reason"].as_str().map_or_else(|| format!("HTTP {}", reply.status), str::to_owned)
}
