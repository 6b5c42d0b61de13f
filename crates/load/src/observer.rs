//! The observer of a measurement: what is shown to it, and how it ends the measurement early.

use std::fmt;
use std::time::Duration;

use crate::error::Error;
use crate::plan::Plan;
use crate::report::Sample;
use crate::tally::Tally;

/// Whoever looks at a measurement while it goes.
pub trait Observer {
    /// Something to know before the measurement begins.
    fn note(&mut self, _text: &str) {}

    /// The load begins now.
    fn begin(&mut self) {}

    /// How often it wants to see the measurement; never by default.
    fn frame(&self) -> Option<Duration> {
        None
    }

    /// The measurement of a server at this moment.
    fn show(&mut self, _snapshot: &Snapshot) {}

    /// The IDs that the library has issued in so much time.
    fn show_issued(&mut self, _elapsed: Duration, _ids: u64) {}

    /// The last answer is there.
    fn end(&mut self) {}

    /// Ends once somebody wants the measurement to end. A second time the answers that are still to
    /// come are not waited for.
    fn interrupted(&mut self) -> impl Future<Output = ()> {
        std::future::pending()
    }
}

/// An observer that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Observer for Quiet {}

/// The pages of the measured node, which tell its CPU time, its memory and its scopes.
pub trait Pages: Send + Sync + fmt::Debug {
    /// Where they are, as a URL.
    fn base(&self) -> &str;

    /// The status and the text of a page.
    ///
    /// # Errors
    ///
    /// There was no answer.
    fn get(&self, path: &str, within: Duration) -> Result<(u16, String), Error>;
}

/// A measurement at a moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The server and what it is asked.
    pub title: String,
    /// How long ago the load began.
    pub elapsed: Duration,
    /// How long nothing counts.
    pub warm_up: Duration,
    /// How long is measured after that.
    pub duration: Duration,
    /// Requests in a second that are intended, where there is a rate.
    pub rate: Option<u64>,
    /// One for each second.
    pub samples: Vec<Sample>,
    /// Requests that failed.
    pub errors: u64,
    /// What failed last.
    pub last_error: Option<String>,
    /// Whether nothing more is sent, and the last answers are waited for.
    pub is_ending: bool,
    /// Cores and bytes of memory of the server, lately.
    pub used: Option<(f64, u64)>,
    /// IDs that were checked, and what is wrong with them, where they are.
    pub checked: Option<(u64, u64)>,
}

impl Snapshot {
    /// A measurement that has not begun.
    pub fn new(plan: &Plan) -> Self {
        Self {
            title: format!("{} ({})", plan.address, plan.request()),
            elapsed: Duration::ZERO,
            warm_up: plan.warm_up,
            duration: plan.duration,
            rate: plan.rate,
            samples: Vec::new(),
            errors: 0,
            last_error: None,
            is_ending: false,
            used: None,
            checked: plan.verify.then_some((0, 0)),
        }
    }

    pub(crate) fn add_errors(&mut self, tally: &Tally) {
        self.errors += tally.errors();
        if let Some(name) = tally.errors.keys().next() {
            self.last_error = Some(name.clone());
        }
    }
}
