//! The load: threads with connections that ask.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::book::Book;
use crate::client::Client;
use crate::error::Error;
use crate::fault::Fault;
use crate::moment::now;
use crate::plan::Plan;
use crate::schedule::{Pace, Series, Times, Unsent};
use crate::tally::Tally;
use crate::verify::{Sender, Verifier};

/// How long a connection waits before it is tried again.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Threads that ask until the time is up or they are told to stop.
#[derive(Debug)]
pub(crate) struct Load {
    tallies: Vec<Arc<Mutex<Tally>>>,
    signal: watch::Sender<Signal>,
    /// Told once by each connection when it has tried to connect, closed when all have ended.
    steps: mpsc::UnboundedReceiver<()>,
    connections: usize,
}

#[derive(Clone, Copy, Debug)]
enum Signal {
    Prepare,
    Go(Times),
    /// At that time, whenever it is noticed.
    Stop(Instant),
}

impl Load {
    /// Starts the threads, which connect and then wait.
    pub(crate) fn start(plan: &Arc<Plan>, verifier: Option<&Verifier>) -> Result<Self, Error> {
        let (signal, _) = watch::channel(Signal::Prepare);
        let (step, steps) = mpsc::unbounded_channel();
        let mut load = Self { tallies: Vec::new(), signal, steps, connections: plan.connections };
        for thread in 0..plan.threads() {
            let tally = Arc::new(Mutex::new(Tally::new()));
            let places = (thread..plan.connections).step_by(plan.threads());
            let connections: Vec<_> = places
                .map(|place| Connection {
                    place,
                    plan: Arc::clone(plan),
                    tally: Arc::clone(&tally),
                    verify: verifier.map(|verifier| verifier.sender(place)),
                    step: step.clone(),
                    signal: load.signal.subscribe(),
                })
                .collect();
            load.tallies.push(tally);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime
                .and_then(|runtime| {
                    let drive = move || {
                        let set: JoinSet<()> = JoinSet::new();
                        runtime.block_on(drive(set, connections));
                    };
                    thread::Builder::new().name(format!("load-{thread}")).spawn(drive)
                })
                .map_err(|error| Error::no_threads(&error))?;
        }
        Ok(load)
    }

    /// Waits until every connection has been tried.
    pub(crate) async fn prepared(&mut self) {
        for _ in 0..self.connections {
            self.steps.recv().await;
        }
    }

    pub(crate) fn go(&self, times: Times) {
        self.signal.send_replace(Signal::Go(times));
    }

    /// No more requests are sent.
    pub(crate) fn stop(&self) {
        self.signal.send_replace(Signal::Stop(now()));
    }

    /// Waits until the last answer is there.
    pub(crate) async fn ended(&mut self) {
        while self.steps.recv().await.is_some() {}
    }

    /// Moves what was counted since the last time.
    pub(crate) fn pour_into(&self, sum: &mut Tally) {
        for tally in &self.tallies {
            tally.lock().pour_into(sum);
        }
    }
}

async fn drive(mut set: JoinSet<()>, connections: Vec<Connection>) {
    for connection in connections {
        set.spawn(connection.run());
    }
    set.join_all().await;
}

/// One connection, which is opened again whenever it is lost.
struct Connection {
    place: usize,
    plan: Arc<Plan>,
    tally: Arc<Mutex<Tally>>,
    verify: Option<Sender>,
    step: mpsc::UnboundedSender<()>,
    signal: watch::Receiver<Signal>,
}

impl Connection {
    async fn run(mut self) {
        // What is wrong shows again when it counts.
        let mut client = Client::open(&self.plan).await.ok();
        // Nobody listens any more if the command ends.
        let _ = self.step.send(());
        let told = self.signal.wait_for(|signal| !matches!(signal, Signal::Prepare)).await;
        let Ok(Signal::Go(times)) = told.map(|signal| *signal) else { return };
        let verify = self.verify.take();
        let mut book = Book::new(self.plan.batch, times, Arc::clone(&self.tally), verify);
        match self.ask_until(&mut client, &mut book, times).await {
            Ok(unsent) => book.unsent(unsent),
            Err(error) => book.failed(Fault::unreachable(error)),
        }
        book.close().await;
    }

    /// Asks until the time is up; the requests that were due and not sent by then.
    async fn ask_until(
        &mut self,
        client: &mut Option<Client>,
        book: &mut Book,
        times: Times,
    ) -> io::Result<Unsent> {
        let mut pace = Pace::new(self.plan.rate.map(|rate| Series {
            rate,
            connections: self.plan.connections as u64,
            place: self.place as u64,
        }))?;
        loop {
            // An error means that the command has gone.
            if self.signal.has_changed().unwrap_or(true) {
                break;
            }
            let due = tokio::select! {
                biased;
                due = pace.next(&times) => due?,
                _ = self.signal.changed() => break,
            };
            let Some(due) = due else { break };
            book.begin(due);
            if let Err(fault) = ask(&self.plan, client, book).await {
                *client = None;
                let is_lasting = fault.is_lasting();
                book.failed(fault);
                if is_lasting {
                    tokio::time::sleep(PAUSE).await;
                }
            }
            book.hand_over_some().await;
        }
        // A request that was waited for may have ended long after the measurement did.
        let end = match *self.signal.borrow() {
            Signal::Stop(at) => at,
            Signal::Prepare | Signal::Go(_) => now(),
        };
        Ok(pace.unsent(&Times { end: end.min(times.end), ..times }))
    }
}

/// One round on a connection, which is opened if there is none.
pub(crate) async fn ask(
    plan: &Plan,
    client: &mut Option<Client>,
    book: &mut Book,
) -> Result<(), Fault> {
    let client = match client {
        Some(client) if !client.is_over() => client,
        none => none.insert(Client::open(plan).await?),
    };
    let round = tokio::time::timeout(plan.timeout, client.round(book));
    round.await.unwrap_or(Err(Fault::TimedOut))
}
