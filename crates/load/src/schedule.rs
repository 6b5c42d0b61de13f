//! The schedule of requests.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::moment::now;

/// When a measurement takes place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Requests are sent from here on.
    pub(crate) start: Instant,
    /// And count from here on.
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

impl Times {
    /// Whether a request that is due then counts.
    pub(crate) fn count(&self, due: Instant) -> bool {
        self.begin <= due && due < self.end
    }
}

/// When one connection sends: as soon as it can, or at its share of a rate.
#[derive(Debug)]
pub(crate) enum Pace {
    Closed,
    Paced(Paced),
}

/// Requests at a rate that several connections share, one after the other.
#[derive(Debug)]
pub(crate) struct Paced {
    timer: Timer,
    series: Series,
    /// How many were due so far.
    past: u64,
}

/// The due times of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series {
    pub(crate) rate: u64,
    pub(crate) connections: u64,
    /// Which of the connections, from 0.
    pub(crate) place: u64,
}

impl Series {
    /// How long after the start the request with this number is due. Computed from the start each
    /// time, so that nothing adds up.
    fn due(&self, number: u64) -> Duration {
        let turn = u128::from(self.place) + u128::from(number) * u128::from(self.connections);
        let nanoseconds = turn * 1_000_000_000 / u128::from(self.rate);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// How many requests are due before so much time has passed.
    fn due_within(&self, span: Duration) -> u64 {
        let turns = (span.as_nanos() * u128::from(self.rate)).div_ceil(1_000_000_000);
        let own =
            turns.saturating_sub(u128::from(self.place)).div_ceil(u128::from(self.connections));
        u64::try_from(own).unwrap_or(u64::MAX)
    }
}

impl Pace {
    pub(crate) fn new(series: Option<Series>) -> io::Result<Self> {
        Ok(match series {
            None => Self::Closed,
            Some(series) => Self::Paced(Paced { timer: Timer::new()?, series, past: 0 }),
        })
    }

    /// A pace at which so many were asked for.
    #[cfg(test)]
    pub(crate) fn of(series: Series, past: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        Self::Paced(Paced { timer: Timer::new().unwrap(), series, past })
    }

    /// Waits until the next request is due and says since when; nothing once the time is up.
    pub(crate) async fn next(&mut self, times: &Times) -> io::Result<Option<Instant>> {
        let paced = match self {
            Self::Closed => return Ok(Some(now()).filter(|now| *now < times.end)),
            Self::Paced(paced) => paced,
        };
        let now = now();
        if now >= times.begin {
            // What was left of the warm-up is let go: a server that is asked for far more than it gives would answer
            // nothing else.
            paced.past = paced.past.max(paced.series.due_within(times.begin - times.start));
        }
        let due = times.start + paced.series.due(paced.past);
        if due >= times.end || now >= times.end {
            return Ok(None);
        }
        if due > now {
            paced.timer.wait(due - now).await?;
        }
        paced.past += 1;
        Ok(Some(due))
    }

    /// The requests that count and were not asked for yet.
    pub(crate) fn unsent(&self, times: &Times) -> Unsent {
        let Self::Paced(paced) = self else { return Unsent::default() };
        let since_start = |at: Instant| at.saturating_duration_since(times.start);
        let (begin, end) = (since_start(times.begin), since_start(times.end));
        let next = paced.past.max(paced.series.due_within(begin));
        let left = paced.series.due_within(end).saturating_sub(next);
        Unsent { waiting: (left > 0).then_some((paced.series, end)), next, left }
    }
}

/// Requests that were due and never sent, the oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unsent {
    /// When they were due, and when the measurement ended, since the start.
    waiting: Option<(Series, Duration)>,
    next: u64,
    left: u64,
}

impl Unsent {
    /// How many there are.
    pub(crate) const fn count(&self) -> u64 {
        self.left
    }

    /// Takes the oldest, and with it those that are the same to whoever counts times: how long it
    /// waited, and how many waited for at least as long as `least` makes of that.
    pub(crate) fn take(
        &mut self,
        least: impl FnOnce(Duration) -> Duration,
    ) -> Option<(Duration, u64)> {
        let (series, end) = self.waiting.filter(|_| self.left > 0)?;
        let waited = end.saturating_sub(series.due(self.next));
        // Those that were due at that time or before have waited for so long.
        let due = end.saturating_sub(least(waited)) + Duration::from_nanos(1);
        let alike = series.due_within(due).saturating_sub(self.next).clamp(1, self.left);
        (self.next, self.left) = (self.next + alike, self.left - alike);
        Some((waited, alike))
    }
}

/// A timer that is exact to microseconds; the runtime's own rounds up to milliseconds.
#[derive(Debug)]
struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    #[allow(deprecated, reason = "what replaces it is unsafe, and an OwnedFd is all it asks for")]
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?).map(Self)
    }

    /// Waits for longer than nothing.
    async fn wait(&self, span: Duration) -> io::Result<()> {
        // None at all would switch the timer off.
        let value = Timespec::try_from(span.max(Duration::from_nanos(1)))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut expirations = [0; 8];
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut expirations)?));
            match read {
                Ok(read) => return read.map(drop),
                // It has not rung after all.
                Err(_) => continue,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_left_of_the_warm_up_is_not_sent_in_the_time_that_counts() {
        let second = Duration::from_secs(1);
        let now = now();
        let series = Series { rate: 1_000_000, connections: 4, place: 3 };
        let pace = || Pace::Paced(Paced { timer: Timer::new().unwrap(), series, past: 7 });
        let warm = Times { start: now - second, begin: now + second, end: now + 2 * second };
        let due = pace().next(&warm).await.unwrap().unwrap();
        assert!(!warm.count(due) && due < now, "the warm-up goes on: {:?}", now - due);
        let counts = Times { start: now - 2 * second, begin: now - second, end: now + second };
        let mut pace = pace();
        let due = pace.next(&counts).await.unwrap().unwrap();
        assert!(counts.count(due), "{:?} before", counts.begin.saturating_duration_since(due));
        assert!(
            due - counts.begin <= Duration::from_micros(4),
            "none of those that count is left out"
        );
        let next = pace.next(&counts).await.unwrap().unwrap();
        assert_eq!(next - due, Duration::from_micros(4));
    }

    #[test]
    fn connections_take_turns_and_nothing_adds_up() {
        let series = |place| Series { rate: 3, connections: 2, place };
        let ms = |place, number| series(place).due(number).as_millis();
        assert_eq!([ms(0, 0), ms(1, 0), ms(0, 1), ms(1, 1)], [0, 333, 666, 1000]);
        assert_eq!(series(0).due(3_000_000), Duration::from_secs(2_000_000));
    }

    #[test]
    fn how_many_are_due_is_computed_as_they_come() {
        for (rate, connections, ms) in [(3, 2, 1000), (7, 3, 999), (1000, 1, 10), (1, 5, 3000)] {
            let span = Duration::from_millis(ms);
            for place in 0..connections {
                let series = Series { rate, connections, place };
                let counted = (0..).take_while(|number| series.due(*number) < span).count() as u64;
                assert_eq!(series.due_within(span), counted, "{series:?}");
            }
        }
        let most = Series { rate: 10_000_000, connections: 1, place: 0 };
        assert_eq!(most.due_within(Duration::from_hours(24)), 864_000_000_000);
    }

    #[test]
    fn what_was_due_and_not_sent_is_known() {
        let start = now();
        let times = Times { start, begin: start, end: start + Duration::from_secs(2) };
        let series = Series { rate: 10, connections: 1, place: 0 };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut pace = Pace::new(Some(series)).unwrap();
            assert_eq!(pace.unsent(&times).count(), 20);
            let late = Times { begin: start + Duration::from_millis(500), ..times };
            assert_eq!(pace.unsent(&late).count(), 15, "those of the warm-up do not count");
            assert_eq!(pace.next(&times).await.unwrap(), Some(start));
            assert_eq!(pace.unsent(&times).count(), 19);
            let over = Times { end: start, ..times };
            assert_eq!(pace.next(&over).await.unwrap(), None);
            let due = pace.next(&times).await.unwrap().unwrap();
            assert!(due == start + Duration::from_millis(100) && now() >= due);
        });
    }
}
