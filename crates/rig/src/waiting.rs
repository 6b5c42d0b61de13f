//! Waiting with a limit: the only place that reads the clock or sleeps.

use std::io;
use std::time::{Duration, Instant};

/// How often a condition is looked at: short against a server's start, long against a look.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How long a server may take to become ready. Java on a busy two-core machine needs most of it.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(40);

/// How long a cluster may take to agree on something.
pub(crate) const AGREE_LIMIT: Duration = Duration::from_secs(20);

/// Looks at `condition` every few milliseconds until it holds.
///
/// # Errors
///
/// [`io::ErrorKind::TimedOut`], naming `what`, if it does not hold within `limit`.
pub fn wait_until(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> bool,
) -> io::Result<()> {
    wait_for(what, limit, || Ok(condition().then_some(())))
}

/// Asks `attempt` until it yields a value; its error ends the waiting at once.
pub(crate) fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut attempt: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<T> {
    let end = now() + limit;
    loop {
        if let Some(value) = attempt()? {
            return Ok(value);
        }
        if now() >= end {
            let message = format!("waited {limit:?} in vain for: {what}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        rest();
    }
}

/// The time on the monotonic clock, for deadlines and for the proxy's delays.
#[expect(clippy::disallowed_methods, reason = "deadlines against real processes need real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a foreign process offers nothing else to wait on")]
fn rest() {
    std::thread::sleep(LOOK_EVERY);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_never_holds_is_named_in_the_error() {
        let error = wait_until("pigs to fly", Duration::from_millis(20), || false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("pigs to fly"), "{error}");
    }

    #[test]
    fn a_condition_is_looked_at_until_it_holds() {
        let mut looks = 0;
        wait_until("three looks", Duration::from_secs(5), || {
            looks += 1;
            looks == 3
        })
        .unwrap();
        assert_eq!(looks, 3);
    }
}
