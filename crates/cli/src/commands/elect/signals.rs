//! Signals that ask to end.

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output::{self, Exit, Failure};

/// SIGINT, SIGTERM and SIGHUP.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hang_up: catch(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) -> output::Signal {
        tokio::select! {
            _ = self.interrupt.recv() => output::Signal::Interrupt,
            _ = self.terminate.recv() => output::Signal::Terminate,
            _ = self.hang_up.recv() => output::Signal::HangUp,
        }
    }
}

pub(super) fn catch(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("signals cannot be caught: {error}"))
    })
}

/// What to send to pass a signal on.
pub(super) const fn number(signal: output::Signal) -> Number {
    match signal {
        output::Signal::HangUp => Number::HUP,
        output::Signal::Interrupt => Number::INT,
        output::Signal::Terminate => Number::TERM,
    }
}
