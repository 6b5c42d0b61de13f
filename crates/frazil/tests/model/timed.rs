//! Leases while time goes by: the production plan, protocol and watchdog of two nodes on one store that
//! may lose the end of what it acknowledged, or all of it.

#[path = "timed/process.rs"]
mod process;
#[path = "timed/request.rs"]
mod request;
#[path = "timed/scope.rs"]
pub(crate) mod scope;
#[path = "timed/search.rs"]
pub(crate) mod search;
#[path = "timed/state.rs"]
mod state;
#[path = "timed/store.rs"]
mod store;

use std::fmt::{self, Debug, Write as _};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The end of something that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("the model's store answers at once"),
    }
}

/// A value that is compared by what it looks like: production values need not know of models.
#[derive(Clone, Debug)]
struct Printed<T> {
    value: T,
    print: u64,
}

impl<T: Debug> Printed<T> {
    fn new(value: T) -> Self {
        let mut hashed = Hashed(DefaultHasher::new());
        // Never fails: the hasher takes everything.
        let _ = write!(hashed, "{value:?}");
        Self { value, print: hashed.0.finish() }
    }
}

impl<T> PartialEq for Printed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl<T> Eq for Printed<T> {}

impl<T> Hash for Printed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.print.hash(state);
    }
}

struct Hashed(DefaultHasher);

impl fmt::Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
