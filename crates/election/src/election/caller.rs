//! The task that calls back: one event after the other, beside the task that leads, so that
//! nothing a callback waits for can keep a leadership from being ended.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::callbacks::{Callback, Callbacks, Hook};
use super::info::LeaderInfo;
use super::leadership::Proof;
use super::state::LeaderLoss;
use crate::panicked;

/// What is called for.
#[derive(Debug)]
pub(super) enum Call {
    Elected(Proof),
    Jeopardy(Proof),
    /// Dropping the sender tells that all has returned.
    Lost(Proof, LeaderLoss, oneshot::Sender<()>),
    Changed(Option<LeaderInfo>),
    /// One more callback; it hears of what is the case at once.
    Add(Hook),
    /// Nothing is called for any more.
    Close,
}

/// The task, from outside.
#[derive(Debug)]
pub(super) struct Calling {
    pub(super) calls: mpsc::UnboundedSender<Call>,
    /// How many callbacks panicked.
    pub(super) panics: watch::Receiver<u64>,
    pub(super) task: JoinHandle<()>,
    /// Whose callbacks they are; see [`is_within`].
    pub(super) number: u64,
}

tokio::task_local! {
    /// The number of the caller whose callback runs in this task.
    static WITHIN: u64;
}

/// Whether this runs in a callback of the caller with that number.
pub(super) fn is_within(number: u64) -> bool {
    WITHIN.try_with(|within| *within == number).unwrap_or(false)
}

struct Caller {
    number: u64,
    elected: Vec<Callback<Proof>>,
    jeopardy: Vec<Callback<Proof>>,
    lost: Vec<Callback<(Proof, LeaderLoss)>>,
    changed: Vec<Callback<Option<LeaderInfo>>>,
    queue: VecDeque<Call>,
    running: JoinSet<()>,
    /// The leadership that was told of, until its end is.
    term: Option<Proof>,
    /// The leader that was told of last.
    leader: Option<Option<LeaderInfo>>,
    /// Dropped when all that runs has returned.
    waiting: Option<oneshot::Sender<()>>,
    drain: Duration,
    /// When what runs is given up; `None` while it may take its time.
    overdue: Option<Instant>,
    panics: watch::Sender<u64>,
}

/// Starts a task that calls back.
pub(super) fn start(callbacks: Callbacks) -> Calling {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only that they differ matters.
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let (calls, called) = mpsc::unbounded_channel();
    let (panics, seen) = watch::channel(0);
    let mut caller = Caller {
        number,
        elected: Vec::new(),
        jeopardy: Vec::new(),
        lost: Vec::new(),
        changed: Vec::new(),
        queue: VecDeque::new(),
        running: JoinSet::new(),
        term: None,
        leader: None,
        waiting: None,
        drain: callbacks.drain,
        overdue: None,
        panics,
    };
    callbacks.hooks.into_iter().for_each(|hook| caller.add(hook));
    let task = tokio::spawn(caller.run(called));
    Calling { calls, panics: seen, task, number }
}

impl Caller {
    async fn run(mut self, mut calls: mpsc::UnboundedReceiver<Call>) {
        let mut is_closed = false;
        loop {
            while self.running.is_empty() {
                (self.waiting, self.overdue) = (None, None);
                match self.queue.pop_front() {
                    Some(call) => self.begin(call),
                    None if is_closed => return,
                    None => break,
                }
            }
            tokio::select! {
                call = calls.recv(), if !is_closed => match call {
                    Some(Call::Close) | None => {
                        is_closed = true;
                        self.hurry();
                    }
                    Some(Call::Add(hook)) => self.add(hook),
                    Some(call) => self.enqueue(call),
                },
                Some(done) = self.running.join_next() => {
                    if let Err(error) = done && error.is_panic() {
                        self.panicked(error.into_panic().as_ref());
                    }
                }
                () = until(self.overdue) => self.give_up(),
            }
        }
    }

    fn add(&mut self, hook: Hook) {
        match hook {
            Hook::Elected(mut callback) => {
                if let Some(proof) = self.term.clone() {
                    self.call(&mut callback, proof);
                }
                self.elected.push(callback);
            }
            Hook::Jeopardy(callback) => self.jeopardy.push(callback),
            Hook::Lost(callback) => self.lost.push(callback),
            Hook::Changed(mut callback) => {
                if let Some(leader) = self.leader.clone() {
                    self.call(&mut callback, leader);
                }
                self.changed.push(callback);
            }
        }
    }

    fn enqueue(&mut self, call: Call) {
        match &call {
            Call::Lost(proof, ..) => {
                self.hurry();
                // What nobody was told of yet needs no end, and what is over is in no jeopardy.
                let is_of = |call: &Call| match call {
                    Call::Elected(other) | Call::Jeopardy(other) => other.token() == proof.token(),
                    _ => false,
                };
                self.queue.retain(|queued| !is_of(queued));
                if self.term.is_none() {
                    return;
                }
            }
            // Only who leads now is of interest.
            Call::Changed(_) => self.queue.retain(|queued| !matches!(queued, Call::Changed(_))),
            _ => {}
        }
        self.queue.push_back(call);
    }

    fn begin(&mut self, call: Call) {
        match call {
            Call::Elected(proof) => {
                self.term = Some(proof.clone());
                self.call_all(|caller| &mut caller.elected, &proof);
            }
            Call::Jeopardy(proof) => self.call_all(|caller| &mut caller.jeopardy, &proof),
            Call::Lost(proof, loss, waiting) => {
                self.term = None;
                self.call_all(|caller| &mut caller.lost, &(proof, loss));
                self.waiting = Some(waiting);
                self.hurry();
            }
            Call::Changed(leader) => {
                self.leader = Some(leader.clone());
                self.call_all(|caller| &mut caller.changed, &leader);
            }
            Call::Add(_) | Call::Close => {}
        }
    }

    fn call_all<T: Clone>(&mut self, which: fn(&mut Self) -> &mut Vec<Callback<T>>, with: &T) {
        let mut callbacks = std::mem::take(which(self));
        for callback in &mut callbacks {
            self.call(callback, with.clone());
        }
        *which(self) = callbacks;
    }

    fn call<T>(&mut self, callback: &mut Callback<T>, with: T) {
        // A callback that panicked is called again with whatever state it left itself in.
        match catch_unwind(AssertUnwindSafe(|| callback(with))) {
            Ok(done) => {
                self.running.spawn(WITHIN.scope(self.number, done));
            }
            Err(panic) => self.panicked(panic.as_ref()),
        }
    }

    fn panicked(&self, panic: &(dyn std::any::Any + Send)) {
        let panic = panicked::words(panic);
        tracing::error!(panic, "a callback of an election panicked");
        self.panics.send_modify(|panics| *panics += 1);
    }

    /// What runs has so long to return, and no longer.
    fn hurry(&mut self) {
        if !self.running.is_empty() {
            self.overdue.get_or_insert_with(|| Instant::now() + self.drain);
        }
    }

    fn give_up(&mut self) {
        tracing::error!(
            callbacks = self.running.len(),
            "callbacks of an election did not return within {:?} of its end, and are dropped",
            self.drain
        );
        // Dropping the set aborts what is in it.
        self.running = JoinSet::new();
    }
}

/// Waits until then; for ever without it.
fn until(then: Option<Instant>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    match then {
        Some(then) => Box::pin(sleep_until(then)),
        None => Box::pin(std::future::pending()),
    }
}
