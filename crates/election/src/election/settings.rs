//! The settings of an election, and how its durations must relate.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use frazil_coord::{NameError, Scheme, Slot, StoreUrl};

use super::clock::Clock;

/// How a candidate campaigns and leads. All candidates of an election should use the same times.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// How long the leader is leader without renewing: a crashed one is replaced after this.
    pub ttl: Duration,
    /// Between two renewals.
    pub heartbeat: Duration,
    /// How long a candidate waits before it looks again, should the store not have told of a
    /// change.
    pub retry: Duration,
    /// How much longer a candidate waits after a leader that was lost without resigning: for work
    /// that checks no token. Zero for work that does. After a leader that the store has forgotten
    /// the time to live is waited for as well.
    pub lock_delay: Duration,
    /// Who campaigns, for people to read. Nobody is recognised by it.
    pub instance: String,
    /// On which machine.
    pub host: String,
    /// What others should know of the leader: an address, for example.
    pub metadata: BTreeMap<String, String>,
    /// For strict scopes: how far ahead of now the leader may use times. `None` if it uses none.
    pub window: Option<Duration>,
    /// What tells the time.
    pub clock: Clock,
}

/// What clocks may run apart by, and a task be late, before two believe to lead: it is taken off
/// the leader's time.
pub(super) const GUARD: Duration = Duration::from_millis(250);
/// Clocks may run apart by this much, in parts per thousand.
pub(super) const RATE_PER_MILLE: u32 = 1;
/// Below this the guard would leave too little.
const TTL_MIN: Duration = Duration::from_secs(1);
/// A leader that is gone should be replaced some day.
const TTL_MAX: Duration = Duration::from_hours(1);
/// A scope whose leader crashed waits for as long.
const WINDOW_MAX: Duration = Duration::from_secs(3);
/// Leader information is read by everybody, at every change.
const METADATA_MAX_BYTES: usize = 4096;
/// What a name of an instance or a host may have.
const NAME_MAX_BYTES: usize = 256;

impl Default for Settings {
    fn default() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            ttl: Duration::from_secs(10),
            heartbeat: Duration::from_secs(3),
            retry: Duration::from_secs(2),
            lock_delay: Duration::from_secs(1),
            instance: format!("{host}:{}", std::process::id()),
            host,
            metadata: BTreeMap::new(),
            window: None,
            clock: Clock::default(),
        }
    }
}

/// Settings that do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// The time to live is too short or too long.
    Ttl(Duration),
    /// A lost renewal or two must not cost the leadership.
    Heartbeat {
        /// The heartbeat.
        heartbeat: Duration,
        /// The time to live.
        ttl: Duration,
    },
    /// Looking again at once, for ever, would keep the store busy; never would miss a change.
    Retry(Duration),
    /// A delay that nobody would wait for.
    LockDelay(Duration),
    /// A window that is too long, or is used up before it is renewed.
    Window {
        /// The window.
        window: Duration,
        /// The heartbeat.
        heartbeat: Duration,
    },
    /// A name is empty, too long, or has characters that steer a terminal.
    Name(&'static str),
    /// More is to be told than everybody should have to read.
    Metadata(usize),
}

/// Why somebody cannot be a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CandidateError {
    /// The name cannot name an election.
    Name(NameError),
    /// The settings do not go together.
    Settings(SettingsError),
    /// Workers are leased, not elected.
    Worker(Slot),
}

impl Settings {
    /// These, with another time to live, and a heartbeat and a retry interval that go with it.
    #[must_use]
    pub fn with_ttl(self, ttl: Duration) -> Self {
        Self { ttl, heartbeat: ttl * 3 / 10, retry: ttl / 5, ..self }
    }

    /// These, on a machine of another name, by which the instance is called too.
    #[must_use]
    pub fn with_host(self, host: String) -> Self {
        Self { instance: format!("{host}:{}", std::process::id()), host, ..self }
    }

    /// These, with another heartbeat.
    #[must_use]
    pub const fn with_heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// These, with another retry interval.
    #[must_use]
    pub const fn with_retry(mut self, retry: Duration) -> Self {
        self.retry = retry;
        self
    }

    /// These, with another lock delay.
    #[must_use]
    pub const fn with_lock_delay(mut self, lock_delay: Duration) -> Self {
        self.lock_delay = lock_delay;
        self
    }

    /// These, with another name of who campaigns.
    #[must_use]
    pub fn with_instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = instance.into();
        self
    }

    /// These, with what others should know of the leader.
    #[must_use]
    pub fn with_metadata(mut self, metadata: BTreeMap<String, String>) -> Self {
        self.metadata = metadata;
        self
    }

    /// These, with a window of times, for a strict scope.
    #[must_use]
    pub const fn with_window(mut self, window: Option<Duration>) -> Self {
        self.window = window;
        self
    }

    /// These, with another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Checks how the settings relate.
    ///
    /// # Errors
    /// The first that is not as it must be.
    pub fn checked(&self) -> Result<(), SettingsError> {
        let Self { ttl, heartbeat, retry, lock_delay, .. } = *self;
        if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
            return Err(SettingsError::Ttl(ttl));
        }
        if heartbeat.is_zero() || heartbeat > ttl / 3 {
            return Err(SettingsError::Heartbeat { heartbeat, ttl });
        }
        if !(Duration::from_millis(10)..=TTL_MAX).contains(&retry) {
            return Err(SettingsError::Retry(retry));
        }
        if lock_delay > TTL_MAX {
            return Err(SettingsError::LockDelay(lock_delay));
        }
        if let Some(window) = self.window
            && (window > WINDOW_MAX || window < heartbeat * 2)
        {
            return Err(SettingsError::Window { window, heartbeat });
        }
        let is_name = |text: &str| {
            (1..=NAME_MAX_BYTES).contains(&text.len()) && !text.contains(char::is_control)
        };
        if !is_name(&self.instance) {
            return Err(SettingsError::Name("instance"));
        }
        if !is_name(&self.host) {
            return Err(SettingsError::Name("host"));
        }
        let bytes = self.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > METADATA_MAX_BYTES { Err(SettingsError::Metadata(bytes)) } else { Ok(()) }
    }

    /// For how long a request that the store carried out makes one the leader, from when it was
    /// sent.
    pub(super) fn trust(&self) -> Duration {
        (self.ttl - self.ttl * RATE_PER_MILLE / 1000).saturating_sub(GUARD)
    }
}

/// A store's URL as an election with this time to live needs it, where the URL does not say
/// otherwise: requests are given up in time to try again, and a session lasts no longer.
#[must_use]
pub fn store_url(url: &StoreUrl, ttl: Duration) -> StoreUrl {
    let mut url = url.clone();
    let known = url.scheme.options();
    let mut set = |name: &str, value: Duration| {
        if known.contains(&name) {
            let text = format!("{}ms", value.as_millis().max(1));
            url.options.entry(name.to_owned()).or_insert(text);
        }
    };
    set("timeout", ttl / 4);
    if url.scheme == Scheme::ZooKeeper {
        let text = format!("{}ms", ttl.as_millis());
        url.options.entry("session".into()).or_insert(text);
    }
    url
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ttl(ttl) => {
                write!(f, "a TTL of {ttl:?} does not fit: use {TTL_MIN:?} to {TTL_MAX:?}")
            }
            Self::Heartbeat { heartbeat, ttl } => write!(
                f,
                "a heartbeat of {heartbeat:?} does not fit a TTL of {ttl:?}: use at most a third"
            ),
            Self::Retry(retry) => {
                write!(f, "a retry interval of {retry:?} does not fit: use 10ms to 1h")
            }
            Self::LockDelay(delay) => {
                write!(f, "a lock delay of {delay:?} is too long: use at most {TTL_MAX:?}")
            }
            Self::Window { window, heartbeat } => write!(
                f,
                "a window of {window:?} does not fit a heartbeat of {heartbeat:?}: use at least \
                 twice that and at most {WINDOW_MAX:?}"
            ),
            Self::Name(what) => write!(
                f,
                "the {what} needs a name of 1 to {NAME_MAX_BYTES} bytes without control characters"
            ),
            Self::Metadata(bytes) => write!(
                f,
                "{bytes} bytes of metadata are too many: use at most {METADATA_MAX_BYTES}"
            ),
        }
    }
}

impl std::error::Error for SettingsError {}

impl fmt::Display for CandidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(bad) => bad.fmt(f),
            Self::Settings(bad) => bad.fmt(f),
            Self::Worker(slot) => write!(f, "{slot} is a worker: workers are leased, not elected"),
        }
    }
}

impl std::error::Error for CandidateError {}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_defaults_go_together() {
        assert_eq!(Settings::default().checked(), Ok(()));
        assert!(Settings::default().trust() > seconds(9));
    }

    #[test]
    fn every_relation_can_fail() {
        let fails = |change: fn(&mut Settings), wanted: &str| {
            let mut settings = Settings::default();
            change(&mut settings);
            let said = settings.checked().expect_err(wanted).to_string();
            assert!(said.contains(wanted), "{said}");
        };
        fails(|s| s.ttl = Duration::from_millis(999), "a TTL of 999ms");
        fails(|s| s.ttl = seconds(3601), "a TTL of 3601s");
        fails(|s| s.heartbeat = seconds(4), "at most a third");
        fails(|s| s.heartbeat = Duration::ZERO, "at most a third");
        fails(|s| s.retry = Duration::ZERO, "retry interval of 0ns");
        fails(|s| s.lock_delay = seconds(3601), "lock delay");
        fails(|s| s.window = Some(seconds(3)), "a window of 3s");
        fails(|s| s.instance = String::new(), "the instance needs a name");
        fails(|s| s.host = "a\u{1b}[2J".into(), "the host needs a name");
        fails(|s| drop(s.metadata.insert("x".into(), "y".repeat(4096))), "4097 bytes");
    }

    #[test]
    fn a_url_is_fitted_to_the_time_to_live_unless_it_says_otherwise() {
        let fitted = |text: &str| {
            let url: StoreUrl = text.parse().unwrap();
            store_url(&url, seconds(10)).to_string()
        };
        assert_eq!(fitted("zk://h:1/x"), "zk://h:1/x?session=10000ms&timeout=2500ms");
        assert_eq!(fitted("zk://h:1?session=40s"), "zk://h:1?session=40s&timeout=2500ms");
        assert_eq!(fitted("redis://h:1?timeout=1s"), "redis://h:1?timeout=1s");
        assert_eq!(fitted("file:/tmp/x"), "file:/tmp/x");
    }
}
