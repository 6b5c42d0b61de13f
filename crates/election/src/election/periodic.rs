//! At most one election a period, whoever is elected.
//!
//! The election's record says who was elected last and when, also after that leader is gone. A claim
//! replaces it in the step that takes the slot, and only if it is still as it was seen: of all who see
//! that a period is over one is elected, and the others see that somebody was.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::time::unix_ms;
use frazil_coord::{Error, UnixMs};
use tokio::sync::watch;

use super::candidate::{Candidate, Pace};
use super::info::LeaderInfo;
use super::leadership::Leadership;
use super::slot_watcher::View;

/// One who may be elected once a period: for work that runs at most once an hour or a day, however many
/// machines start it then.
///
/// ```
/// # async fn lead(candidate: frazil_election::Candidate) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use frazil_election::{Periodic, Turn};
///
/// let nightly = Periodic::new(candidate, Duration::from_secs(24 * 60 * 60));
/// match nightly.campaign(|last, left| println!("{} ran it; again in {left:?}", last.instance)).await? {
///     Turn::Elected(leadership) => println!("it runs here, under token {}", leadership.token()),
///     Turn::Taken(leader) => println!("{} has run it", leader.instance),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Periodic {
    every: Duration,
    candidate: Candidate,
}

/// Whose turn it is.
#[derive(Debug)]
pub enum Turn {
    /// Ours.
    Elected(Leadership),
    /// Somebody else was elected in this period.
    Taken(LeaderInfo),
}

/// What is left of a period is waited for if it is at most this part of it: cron is never on time to
/// the second, and would miss every other period.
const SOON: u32 = 20;

impl Periodic {
    /// A candidate that is elected only if nobody else was for this long.
    #[must_use]
    pub const fn new(candidate: Candidate, every: Duration) -> Self {
        Self { every, candidate }
    }

    /// The period.
    #[must_use]
    pub const fn every(&self) -> Duration {
        self.every
    }

    /// Waits until elected, or until somebody else is seen to have been elected in this period. The last
    /// twentieth of a period is waited for, which is told once: who began it, and how much is left.
    ///
    /// # Errors
    /// As those of [`Candidate::campaign`].
    pub async fn campaign(
        &self,
        wait: impl FnMut(&LeaderInfo, Duration) + Send,
    ) -> Result<Turn, Error> {
        let observer = self.candidate.observe();
        tokio::select! {
            biased;
            elected = self.candidate.campaign_paced(self.pace()) => elected.map(Turn::Elected),
            last = self.taken(observer.view(), wait) => Ok(Turn::Taken(last)),
        }
    }

    /// The slot is gone for only when no period runs.
    fn pace(&self) -> Pace {
        let period = self.clone();
        Arc::new(move |view| match period.running(view, unix_ms()) {
            None => Some(Duration::ZERO),
            Some(_) => None,
        })
    }

    async fn taken(
        &self,
        mut views: watch::Receiver<Arc<View>>,
        mut wait: impl FnMut(&LeaderInfo, Duration),
    ) -> LeaderInfo {
        let mut is_told = false;
        loop {
            let view = views.borrow_and_update().clone();
            if let Some((last, left)) = self.running(&view, unix_ms()) {
                if !is_soon_over(self.every, left) {
                    return last;
                }
                if !std::mem::replace(&mut is_told, true) {
                    wait(&last, left);
                }
            }
            // The observer outlives this; if not, there is nothing more to see.
            if views.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Who began the period that runs, and how long it goes on. What this process won too late to
    /// begin began none.
    fn running(&self, view: &View, now: UnixMs) -> Option<(LeaderInfo, Duration)> {
        let last = LeaderInfo::last(view.entries.get(self.candidate.name())?)?;
        let left = left_of(self.every, last.elected_ms, now)?;
        (!self.candidate.is(&last)).then_some((last, left))
    }
}

/// How long a period goes on that began then; `None` if it is over. A beginning that is more than a
/// period ahead is of a clock that was wrong, and would stop everybody for as long.
fn left_of(every: Duration, began: UnixMs, now: UnixMs) -> Option<Duration> {
    let every = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
    let runs = now.abs_diff(began) < every;
    runs.then(|| Duration::from_millis((began + every).saturating_sub(now)))
}

/// Whether what is left of a period is waited for.
fn is_soon_over(every: Duration, left: Duration) -> bool {
    left <= every / SOON
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cron_may_be_early_by_an_hour_a_day() {
        let (day, hour) = (Duration::from_hours(24), Duration::from_hours(1));
        assert!(is_soon_over(day, Duration::from_secs(4)) && is_soon_over(day, hour));
        assert!(!is_soon_over(day, hour * 2) && !is_soon_over(day, day));
    }

    #[test]
    fn a_period_ends_with_time_and_a_wrong_clock_begins_none() {
        let (every, began) = (Duration::from_secs(10), 1_000_000);
        let left = |now| left_of(every, began, now);
        assert_eq!(left(began), Some(every));
        assert_eq!(left(began + 9_999), Some(Duration::from_millis(1)));
        assert_eq!(left(began + 10_000), None);
        assert_eq!(left(began - 3_000), Some(Duration::from_secs(13)), "clocks differ");
        assert_eq!(left(began - 10_000), None, "nobody's clock differs so much");
    }
}
