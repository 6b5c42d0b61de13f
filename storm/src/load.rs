//! Clients that ask for IDs all the time, and hand everything they get to the checker.

mod asking;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use frazil_id::{Id, Layout};

use crate::checker::Checker;
use crate::clock;
use crate::history::{Answer, Outcome, Record, RequestRecord, UnorderedIds};
use crate::node::NodeEndpoint;
use asking::{ClientConnection, IdDemand, Response, ResponseError};

/// Answers that wait for the checker: enough for a hiccup, few against memory.
const WAITING_MAX: usize = 4096;

/// How hard nodes are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    /// For each node.
    pub(crate) connections: u32,
    pub(crate) batch: u32,
    pub(crate) client_mix: ClientMix,
    /// The strict scope that all ask for; its IDs are in order whoever is asked.
    pub(crate) scope: Option<&'static str>,
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
            client_mix: ClientMix::Alike,
            scope: None,
            pause: Duration::from_millis(5),
            rest: Duration::from_millis(10),
            patience: Duration::from_secs(5),
        }
    }
}

/// How the clients of a node differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientMix {
    /// All ask for batches.
    Alike,
    /// One more asks for single IDs.
    AndSingles,
    /// Each asks for one, a few or many, as the seed has it; one more asks over RESP.
    Mixed,
}

impl Pressure {
    /// For rows that last for minutes, and are about refusals rather than numbers.
    pub(crate) fn gentle() -> Self {
        Self { connections: 2, pause: Duration::from_millis(20), ..Self::default() }
    }

    /// Clients of all kinds.
    pub(crate) fn mixed() -> Self {
        Self { client_mix: ClientMix::Mixed, ..Self::default() }
    }

    /// What each client of a node asks for.
    fn wishes(&self) -> Vec<IdDemand> {
        let (demand, more) = match self.client_mix {
            ClientMix::Alike => (IdDemand::Batches(self.batch), None),
            ClientMix::AndSingles => (IdDemand::Batches(self.batch), Some(IdDemand::Batches(1))),
            ClientMix::Mixed => (IdDemand::Mixed, Some(IdDemand::Resp)),
        };
        (0..self.connections).map(|_| demand).chain(more).collect()
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
    unordered_answers: Vec<UnorderedIds>,
}

impl Load {
    /// Starts clients of every node; what they ask for is decided by the seed.
    pub(crate) fn start(
        doors: &[Arc<NodeEndpoint>],
        pressure: Pressure,
        seed: u64,
    ) -> io::Result<Self> {
        let record = Arc::new(Record::new(doors.len()));
        let (stop, caught) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ids, strange) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (sender, answers) = mpsc::sync_channel::<Answer>(WAITING_MAX);
        let mut checker = Checker::new(Layout::FRAZIL, Arc::clone(&caught));
        checker.is_strict = pressure.scope.is_some();
        let checker = thread::Builder::new().name("storm-checker".to_owned()).spawn(move || {
            answers.iter().for_each(|answer| checker.take(&answer));
            checker
        })?;
        let mut clients = Vec::new();
        for endpoint in doors {
            for (connection, demand) in (0..).zip(pressure.wishes()) {
                let client = Client {
                    endpoint: Arc::clone(endpoint),
                    connection,
                    demand,
                    pressure,
                    record: Arc::clone(&record),
                    stop: Arc::clone(&stop),
                    ids: Arc::clone(&ids),
                    strange: Arc::clone(&strange),
                    answers: sender.clone(),
                };
                let name = format!("storm-client-{}-{connection}", endpoint.node);
                let place = ((endpoint.node as u64) << 32) | u64::from(connection);
                let random = fastrand::Rng::with_seed(seed ^ place);
                let run = move || client.run(random);
                clients.push(thread::Builder::new().name(name).spawn(run)?);
            }
        }
        let unordered_answers = Vec::new();
        Ok(Self { record, stop, caught, ids, strange, clients, checker, unordered_answers })
    }

    /// IDs of all clients so far.
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
    pub(crate) fn hand_in(&mut self, unordered_answers: Vec<UnorderedIds>) {
        self.unordered_answers.extend(unordered_answers);
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
        self.unordered_answers.iter().for_each(|unordered_ids| checker.take_handful(unordered_ids));
        Ok((self.record, checker))
    }
}

/// One client, with one connection at a time.
struct Client {
    endpoint: Arc<NodeEndpoint>,
    connection: u32,
    demand: IdDemand,
    pressure: Pressure,
    record: Arc<Record>,
    stop: Arc<AtomicBool>,
    ids: Arc<AtomicU64>,
    strange: Arc<AtomicU64>,
    answers: SyncSender<Answer>,
}

impl Client {
    fn run(self, mut random: fastrand::Rng) {
        let mut open = None;
        // Relaxed: see `Load::stop`.
        while !self.stop.load(Ordering::Relaxed) {
            let (asked, count) = (clock::now(), self.demand.count(&mut random));
            let outcome = self.request(&mut open, count);
            let is_ok = matches!(outcome, Outcome::Ids(_));
            self.record
                .add(self.endpoint.node, RequestRecord { asked, answered: clock::now(), outcome });
            clock::rest(if is_ok { self.pressure.pause } else { self.pressure.rest });
        }
    }

    /// Asks once; a connection on which something went wrong is given up.
    fn request(&self, open: &mut Option<ClientConnection>, count: u32) -> Outcome {
        let (process_run, tolerance) = (self.endpoint.process_run(), self.endpoint.tolerance());
        let mut line = match open.take() {
            Some(line) => line,
            None => match ClientConnection::open(&self.endpoint, self.demand, &self.pressure) {
                Ok(line) => line,
                Err(_) => return Outcome::Lost,
            },
        };
        let (asked, asked_unix_ms) = (clock::now(), clock::unix_ms());
        let Ok(Response { ids, token, error }) = line.ask(count) else {
            return Outcome::Lost;
        };
        let (answered, answered_unix_ms) = (clock::now(), clock::unix_ms());
        *open = Some(line);
        if let Some(ResponseError::Strange(what)) = error {
            // Relaxed: a number to look at.
            self.strange.fetch_add(1, Ordering::Relaxed);
            return Outcome::Refused(what);
        }
        let answer = Answer {
            process_run,
            connection: self.connection,
            asked,
            answered,
            asked_unix_ms,
            answered_unix_ms,
            // A fault may have begun or ended meanwhile: what was allowed at either time is allowed.
            tolerance: tolerance.or(self.endpoint.tolerance()),
            // Of a scope, it is that of the node to which the request was passed on.
            token: token.filter(|_| self.pressure.scope.is_none()),
            ids,
        };
        // It may be the answer of either run: nobody's order or token can be told from it.
        let is_of_either = process_run != self.endpoint.process_run();
        if !answer.ids.is_empty() && (is_of_either || !self.hand_over(answer)) {
            return Outcome::Lost;
        }
        match error {
            Some(ResponseError::Refused(reason) | ResponseError::Strange(reason)) => {
                Outcome::Refused(reason)
            }
            None => Outcome::Ids(count),
        }
    }

    /// Gives the checker what was received. If it is gone, the run ends with an error.
    fn hand_over(&self, answer: Answer) -> bool {
        // Relaxed: a number to look at.
        self.ids.fetch_add(answer.ids.len() as u64, Ordering::Relaxed);
        if answer.token.is_some() || self.pressure.scope.is_some() {
            return self.answers.send(answer).is_ok();
        }
        // Single IDs that were asked for at once: the worker may have been replaced between them.
        let worker = |id: u64| Id::from_u64(id).parts(&Layout::FRAZIL).ok().map(|id| id.worker);
        let parts = answer.ids.chunk_by(|one, other| worker(*one) == worker(*other));
        let mut parts = parts.map(|part| Answer { ids: part.to_vec(), ..answer });
        parts.all(|part| self.answers.send(part).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    /// Answers every request of one connection with so many IDs, whatever was asked for.
    fn answer_with(ids: u64, listener: &TcpListener) -> io::Result<()> {
        let mut stream = BufReader::new(listener.accept()?.0);
        for turn in 0.. {
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                if stream.read_line(&mut line)? == 0 {
                    return Ok(());
                }
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\nfrazil-token: 7\r\ncontent-length: {}\r\n\r\n",
                8 * ids
            );
            let tick = Layout::FRAZIL.tick_at(clock::unix_ms()).unwrap_or(0);
            let first = (tick << 22) | (turn % 8 * 100);
            let body = (first..first + ids).flat_map(u64::to_be_bytes);
            stream
                .get_mut()
                .write_all(&head.into_bytes().into_iter().chain(body).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// How many answers of a node that gives so many IDs for two are found to be not whole, of ten.
    fn strange_with(ids: u64) -> u64 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let node = thread::spawn(move || answer_with(ids, &listener));
        let pressure = Pressure { connections: 1, batch: 2, ..Pressure::default() };
        let load =
            Load::start(&[Arc::new(NodeEndpoint::new(0, address, address))], pressure, 1).unwrap();
        frazil_rig::wait_until("ten answers", Duration::from_secs(20), || {
            load.record.fold(0, |count, _| count + 1) >= 10
        })
        .unwrap();
        let strange = load.strange();
        load.stop().unwrap();
        node.join().unwrap().unwrap();
        strange
    }

    #[test]
    fn answers_that_are_not_whole_are_counted_as_they_come() {
        assert_eq!(strange_with(2), 0);
        assert!(strange_with(1) >= 10, "one is missing");
        assert!(strange_with(3) >= 10, "one too many");
    }
}
