//! A register that leaders write to, each with the token of its leadership.
//!
//! It is what the documentation asks of everything that a leader writes to: it refuses a smaller
//! token than it has seen. Writers are processes of their own, and say when they wrote: all clocks of
//! one machine are one clock.

use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock;

/// Between two writes of a writer.
const PACE: Duration = Duration::from_millis(2);

/// What the register does with a token that is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Fenced,
    /// A register that does not look at tokens: what fencing is there for must then be seen.
    Blind,
}

/// A process that writes.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// The name of its candidate.
    pub(crate) instance: String,
    pub(crate) process: u32,
    /// The process that started it.
    pub(crate) parent: u32,
    pub(crate) is_connected: bool,
}

/// One attempt to write, in the order in which the register got them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) writer: usize,
    pub(crate) token: u64,
    /// When the writer believed that it may, since 1970.
    pub(crate) said: Duration,
    pub(crate) accepted: bool,
}

/// Everything that was written, and who did.
#[derive(Debug)]
pub(crate) struct Ledger {
    rule: Rule,
    largest: u64,
    pub(crate) writers: Vec<Writer>,
    pub(crate) writes: Vec<Write>,
}

impl Ledger {
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rule, largest: 0, writers: Vec::new(), writes: Vec::new() }
    }

    /// Whether a write is accepted: it is if nobody with a larger token has written.
    pub(crate) fn write(&mut self, writer: usize, token: u64, said: Duration) -> bool {
        let accepted = self.rule == Rule::Blind || token >= self.largest;
        self.largest = self.largest.max(token);
        self.writes.push(Write { writer, token, said, accepted });
        accepted
    }

    /// Who wrote last, if that was no longer ago than this.
    pub(crate) fn leader(&self, within: Duration) -> Option<&Writer> {
        let last = self.writes.iter().rev().find(|write| write.accepted)?;
        let is_fresh = clock::unix().saturating_sub(last.said) <= within;
        Some(&self.writers[last.writer]).filter(|writer| writer.is_connected && is_fresh)
    }

    /// When somebody else than this process was first accepted after a moment.
    pub(crate) fn successor(&self, process: u32, since: Duration) -> Option<Duration> {
        let later = self.writes.iter().rev().take_while(|write| write.said >= since);
        let others = later.filter(|write| self.writers[write.writer].process != process);
        others.filter(|write| write.accepted).map(|write| write.said).last()
    }

    /// How often a process has tried to write.
    pub(crate) fn attempts(&self, process: u32) -> usize {
        let own = |write: &&Write| self.writers[write.writer].process == process;
        self.writes.iter().filter(own).count()
    }
}

/// A register that listens.
#[derive(Debug)]
pub(crate) struct Register {
    pub(crate) address: SocketAddr,
    ledger: Arc<Mutex<Ledger>>,
}

impl Register {
    pub(crate) fn start(rule: Rule) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let ledger = Arc::new(Mutex::new(Ledger::new(rule)));
        let shared = Arc::clone(&ledger);
        // It ends with the process: writers of the last moment find it there.
        thread::Builder::new().name("storm-register".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let ledger = Arc::clone(&shared);
                let spawned = thread::Builder::new()
                    .name("storm-register-writer".to_owned())
                    .spawn(move || serve(stream, &ledger));
                // Without a thread the writer is not served; dropping its stream tells it.
                drop(spawned);
            }
        })?;
        Ok(Self { address, ledger })
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves one writer until it is gone.
fn serve(stream: TcpStream, ledger: &Mutex<Ledger>) {
    let mut stream = BufReader::new(stream);
    let Some(writer) = introduced(&mut stream) else { return };
    let number = {
        let mut ledger = lock(ledger);
        ledger.writers.push(writer);
        ledger.writers.len() - 1
    };
    while let Some((token, said)) = asked(&mut stream) {
        let accepted = lock(ledger).write(number, token, said);
        let answer: &[u8] = if accepted { b"accepted\n" } else { b"refused\n" };
        if stream.get_mut().write_all(answer).is_err() {
            break;
        }
    }
    lock(ledger).writers[number].is_connected = false;
}

fn introduced(stream: &mut impl BufRead) -> Option<Writer> {
    let line = line(stream)?;
    let mut words = line.split(' ');
    Some(Writer {
        process: words.next()?.parse().ok()?,
        parent: words.next()?.parse().ok()?,
        instance: words.next()?.to_owned(),
        is_connected: true,
    })
}

fn asked(stream: &mut impl BufRead) -> Option<(u64, Duration)> {
    let line = line(stream)?;
    let (token, nanos) = line.split_once(' ')?;
    Some((token.parse().ok()?, Duration::from_nanos(nanos.parse().ok()?)))
}

fn line(stream: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (stream.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}

/// `storm writer`, the command that candidates run while they lead: writes its token all the time,
/// also after it was refused, for it is to be seen who stops it.
pub(crate) fn write_on(register: SocketAddr) -> io::Result<()> {
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| io::Error::other(format!("{name} is not set")))
    };
    let (token, instance) = (variable("FRAZIL_FENCE")?, variable("FRAZIL_INSTANCE")?);
    let (process, parent) = (std::process::id(), std::os::unix::process::parent_id());
    let mut stream = BufReader::new(TcpStream::connect(register)?);
    stream.get_mut().set_nodelay(true)?;
    stream.get_mut().write_all(format!("{process} {parent} {instance}\n").as_bytes())?;
    loop {
        let said = clock::unix().as_nanos();
        stream.get_mut().write_all(format!("{token} {said}\n").as_bytes())?;
        if line(&mut stream).is_none() {
            return Ok(());
        }
        clock::rest(PACE);
    }
}
