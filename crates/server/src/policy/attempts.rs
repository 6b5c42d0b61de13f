//! Failed attempts: an address that shows wrong keys again and again waits longer and longer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_wire::{ApiError, Reason};

use crate::net::connection_limits::address_group;

/// So long a failure counts; after a pause as long without one, everything is forgotten.
const WINDOW: Duration = Duration::from_mins(1);
/// The first pause; each failure after it doubles the next.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// Addresses that are remembered. Beyond it those are forgotten that failed least recently.
const PEERS_MAX: usize = 10_000;

/// The failures of all addresses.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// So many within the window are let pass.
    most: u32,
    peers: Mutex<Peers>,
    /// When the last pause of anybody ends, in milliseconds of boot time; 0 before the first.
    last_pause_ends: AtomicU64,
}

/// In two halves: when the younger is full, it replaces the older.
#[derive(Debug, Default)]
struct Peers {
    young: HashMap<IpAddr, Failures>,
    old: HashMap<IpAddr, Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    /// When the first of them was.
    since: Duration,
    /// When the pause after the last one ends, if they are many.
    pause_ends: Option<Duration>,
}

impl Attempts {
    pub(crate) fn new(most: u32) -> Self {
        Self { most, peers: Mutex::default(), last_pause_ends: AtomicU64::new(0) }
    }

    /// Whether somebody from that address may show a key.
    ///
    /// # Errors
    /// If it has to wait, and for how long.
    pub(crate) fn check(&self, peer: IpAddr) -> Result<(), ApiError> {
        // Relaxed: a pause that begins at this moment may be missed. Nobody has one as a rule, and
        // then neither a clock nor the table is looked at.
        match self.last_pause_ends.load(Ordering::Relaxed) {
            0 => Ok(()),
            ends => self.check_at(peer, ends, boot_time()),
        }
    }

    fn check_at(&self, peer: IpAddr, ends: u64, now: Duration) -> Result<(), ApiError> {
        if millis(now) >= ends {
            return Ok(());
        }
        let pause_ends = self.peers().get(address_group(peer)).and_then(|known| known.pause_ends);
        match pause_ends.map(|ends| ends.saturating_sub(now)) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(wait) => {
                let detail = "too many wrong keys were shown from this address: none is looked at";
                Err(ApiError::new(Reason::TooManyAttempts, detail).retry_after(wait))
            }
        }
    }

    /// Notes a wrong key; tells how long the address has to wait, if it has.
    pub(crate) fn failed(&self, peer: IpAddr) -> Option<Duration> {
        self.failed_at(peer, boot_time())
    }

    fn failed_at(&self, peer: IpAddr, now: Duration) -> Option<Duration> {
        let mut peers = self.peers();
        let before = peers.get(address_group(peer)).filter(|before| !before.is_over(now));
        let count = before.map_or(1, |before| before.count.saturating_add(1));
        let pause = pause(count, self.most);
        let since = before.map_or(now, |before| before.since);
        let pause_ends = pause.map(|pause| now + pause);
        peers.put(address_group(peer), Failures { count, since, pause_ends });
        if let Some(ends) = pause_ends {
            // Relaxed: see `check`.
            self.last_pause_ends.fetch_max(millis(ends).saturating_add(1), Ordering::Relaxed);
        }
        pause
    }

    fn peers(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failures {
    /// Whether they count no more: a minute after the first of a few, or after the pause of many.
    fn is_over(&self, now: Duration) -> bool {
        // Without a pause they count from the first on, with one from its end on.
        now >= self.since.max(self.pause_ends.unwrap_or_default()) + WINDOW
    }
}

impl Peers {
    fn get(&self, peer: IpAddr) -> Option<Failures> {
        self.young.get(&peer).or_else(|| self.old.get(&peer)).copied()
    }

    fn put(&mut self, peer: IpAddr, failures: Failures) {
        if self.young.len() >= PEERS_MAX / 2 && !self.young.contains_key(&peer) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(peer, failures);
    }
}

/// How long to wait after so many failures, of which so many are let pass.
fn pause(count: u32, most: u32) -> Option<Duration> {
    let beyond = count.checked_sub(most)?;
    Some(PAUSE_MIN.saturating_mul(1 << beyond.min(6)).min(PAUSE_MAX))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(1000 + seconds)
    }

    /// How long an address still has to wait.
    fn wait(attempts: &Attempts, peer: IpAddr, now: Duration) -> Option<Duration> {
        let ends = attempts.last_pause_ends.load(Ordering::Relaxed);
        attempts.check_at(peer, ends, now).err().and_then(|error| error.retry_after)
    }

    #[test]
    fn the_tenth_failure_and_those_after_it_cost_a_growing_pause() {
        let (attempts, peer) = (Attempts::new(10), ip("192.0.2.7"));
        for second in 0..9 {
            assert_eq!(attempts.failed_at(peer, at(second)), None);
            assert_eq!(wait(&attempts, peer, at(second)), None);
        }
        let mut now = at(9);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            let pause = Duration::from_secs(seconds);
            assert_eq!(attempts.failed_at(peer, now), Some(pause));
            assert_eq!(wait(&attempts, peer, now), Some(pause));
            // Others are let pass all the while.
            assert_eq!(wait(&attempts, ip("192.0.2.8"), now), None);
            now += pause;
            assert_eq!(wait(&attempts, peer, now), None);
        }
        // A quiet minute after the pause everything is forgotten.
        assert_eq!(attempts.failed_at(peer, now + WINDOW), None);
    }

    #[test]
    fn a_few_failures_are_forgotten_after_a_minute() {
        let (attempts, peer) = (Attempts::new(3), ip("192.0.2.7"));
        for second in [0, 50, 60, 70] {
            assert_eq!(attempts.failed_at(peer, at(second)), None, "{second}");
        }
        assert!(attempts.failed_at(peer, at(80)).is_some());
    }

    #[test]
    fn an_ipv6_network_is_one_peer() {
        let attempts = Attempts::new(2);
        assert_eq!(attempts.failed_at(ip("2001:db8::1"), at(0)), None);
        assert!(attempts.failed_at(ip("2001:db8::2"), at(0)).is_some());
        assert!(wait(&attempts, ip("2001:db8::3"), at(0)).is_some());
        assert_eq!(wait(&attempts, ip("2001:db8:0:1::3"), at(0)), None);
    }

    #[test]
    fn only_so_many_addresses_are_remembered_and_the_oldest_are_forgotten() {
        let attempts = Attempts::new(1);
        for number in 0..3 * u32::try_from(PEERS_MAX).unwrap() {
            attempts.failed_at(IpAddr::V4(number.into()), at(0));
            let peers = attempts.peers();
            assert!(peers.young.len() + peers.old.len() <= PEERS_MAX);
        }
        let last = u32::try_from(3 * PEERS_MAX).unwrap() - 1;
        assert!(wait(&attempts, IpAddr::V4(last.into()), at(0)).is_some());
        assert_eq!(wait(&attempts, ip("0.0.0.0"), at(0)), None);
    }
}
