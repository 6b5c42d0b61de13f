//! The signals that a server heeds.

use std::io::IsTerminal;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output::{self, Exit, Failure};

/// What a signal asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// To end in good order.
    End(output::Signal),
    /// To read the configuration again.
    Reload,
}

/// SIGINT, SIGTERM and SIGHUP.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Somebody was looking when it started.
    had_terminal: bool,
}

impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        let catch = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(Exit::Unavailable, format_args!("signals cannot be caught: {error}"))
            })
        };
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hang_up: catch(SignalKind::hangup())?,
            had_terminal: has_terminal(),
        })
    }

    pub(super) async fn next(&mut self) -> Call {
        tokio::select! {
            _ = self.interrupt.recv() => Call::End(output::Signal::Interrupt),
            _ = self.terminate.recv() => Call::End(output::Signal::Terminate),
            _ = self.hang_up.recv() => self.hung_up(),
        }
    }

    /// The next signal to end; nothing is read any more.
    pub(super) async fn next_end(&mut self) -> output::Signal {
        loop {
            if let Call::End(signal) = self.next().await {
                return signal;
            }
        }
    }

    /// The same signal says that the terminal was closed.
    fn hung_up(&self) -> Call {
        match self.had_terminal && !has_terminal() {
            true => Call::End(output::Signal::Terminate),
            false => Call::Reload,
        }
    }
}

fn has_terminal() -> bool {
    std::io::stderr().is_terminal()
}
