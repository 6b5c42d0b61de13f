//! The settings of a client.

use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, thread};

use frazil_id::Layout;

use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::host::Target;
use crate::inner::Inner;
use crate::observer::Observer;
use crate::secret::Keyring;
use crate::sizing::Bounds;
use crate::tls::Trust;

/// The most IDs of one request, unless servers say less.
pub(crate) const COUNT_MAX: u32 = 100_000;
/// A scope's name is not longer at servers.
const SCOPE_BYTES_MAX: usize = 64;
/// Fewer than these are not fetched ahead: the round trip costs more than the IDs.
const LEAST: u32 = 16;
/// What the first buffer has.
const FIRST: u32 = 1000;
/// How often other servers are looked for: soon enough for who joins, and rare beside the requests for
/// IDs.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(10);

/// The settings of a client; [`connect`](Self::connect) or [`build`](Self::build) ends them.
///
/// ```no_run
/// # async fn run() -> Result<(), frazil_client::Error> {
/// let ids = frazil_client::Client::builder()
///     .endpoint("https://ids-1.example:7780")
///     .endpoint("https://ids-2.example:7780")
///     .key_file("/run/secrets/frazil")
///     .scope("orders")
///     .connect()
///     .await?;
/// let id = ids.next().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "nothing is done before connect() or build()"]
pub struct Builder {
    endpoints: Vec<String>,
    scope: String,
    key: Option<KeySource>,
    ca: Option<PathBuf>,
    identity: Option<Identity>,
    layout: Option<Layout>,
    prefetch: u32,
    max_age: Duration,
    deadline: Duration,
    backoff: RangeInclusive<Duration>,
    discovery: Option<Duration>,
    zone: Option<String>,
    observer: Option<Arc<dyn Observer>>,
}

#[derive(Clone)]
enum KeySource {
    Text(String),
    File(PathBuf),
}

/// Files with a certificate and its private key.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "TLS alone has a use for them"))]
pub(crate) struct Identity {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// Settings that make sense.
pub(crate) struct Options {
    pub(crate) targets: Vec<Target>,
    ca: Option<PathBuf>,
    identity: Option<Identity>,
    /// How often other servers are looked for; `None`: never.
    pub(crate) discovery: Option<Duration>,
    pub(crate) zone: Option<String>,
    pub(crate) layout: Option<Layout>,
    /// `None`: nothing is fetched ahead.
    pub(crate) prefetch: Option<Bounds>,
    /// For how many threads at once the pool has IDs of their own. 1: they all share one order.
    pub(crate) threads: usize,
    pub(crate) max_age: Duration,
    pub(crate) deadline: Duration,
    pub(crate) backoff: RangeInclusive<Duration>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            endpoints: Vec::new(),
            scope: String::new(),
            key: None,
            ca: None,
            identity: None,
            layout: None,
            prefetch: COUNT_MAX,
            max_age: Duration::from_secs(2),
            deadline: Duration::from_secs(5),
            backoff: Duration::from_millis(5)..=Duration::from_secs(1),
            discovery: Some(DISCOVERY_INTERVAL),
            zone: None,
            observer: None,
        }
    }

    /// Adds a server: `http://HOST:7780`, `https://HOST`, `grpc://HOST:7781` or `grpcs://HOST`.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoints.push(url.into());
        self
    }

    /// Adds several servers. All must be of one namespace, or at least of one layout.
    pub fn endpoints(mut self, urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.endpoints.extend(urls.into_iter().map(Into::into));
        self
    }

    /// Asks for IDs of a declared scope. IDs of a strict scope increase across the cluster as they
    /// are issued; from a pool they come in that order only if one client alone uses the scope, so
    /// use `prefetch(0)` where the order between clients matters. Threads that share a client with
    /// a scope share one counter, which keeps that order and scales less.
    pub fn scope(mut self, name: impl Into<String>) -> Self {
        self.scope = name.into();
        self
    }

    /// The key that is shown to servers.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(KeySource::Text(key.into()));
        self
    }

    /// A file with the key as its one line. It is read again when a server does not take the key any
    /// more.
    pub fn key_file(mut self, path: impl AsRef<Path>) -> Self {
        self.key = Some(KeySource::File(path.as_ref().to_owned()));
        self
    }

    /// A file with the authorities to trust, in PEM form, instead of the machine's.
    pub fn ca(mut self, path: impl AsRef<Path>) -> Self {
        self.ca = Some(path.as_ref().to_owned());
        self
    }

    /// Files with our own certificate and its private key, in PEM form, for servers that ask who we
    /// are.
    pub fn identity(mut self, cert: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        let (cert, key) = (cert.as_ref().to_owned(), key.as_ref().to_owned());
        self.identity = Some(Identity { cert, key });
        self
    }

    /// The layout of the IDs, which is otherwise learned from the servers. One that differs from
    /// theirs is an error when they are first asked.
    pub const fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// The most IDs that are fetched ahead at once: 100,000 unless told otherwise. How many it is
    /// follows the rate at which they are used. 0: none are, and every `next` asks a server,
    /// together with those that are waiting at that moment.
    pub const fn prefetch(mut self, most: u32) -> Self {
        self.prefetch = most;
        self
    }

    /// IDs that were asked for longer ago are dropped (2 s), so that their times stay honest. Time
    /// in which the machine is suspended counts.
    pub const fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// How long a call may take with all its attempts (5 s).
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long an endpoint that failed is left alone: the first time, and at most (5 ms to 1 s). A
    /// server that says when to come back is believed.
    pub const fn backoff(mut self, pauses: RangeInclusive<Duration>) -> Self {
        self.backoff = pauses;
        self
    }

    /// Whether other servers are learned from those that are given (yes): they are asked about their
    /// cluster (`GET /v1/cluster`, so one of them must be an `http://` or `https://` endpoint), and
    /// an address that a node advertises is used after it has answered. Beside a given endpoint with
    /// TLS none without is used. The given ones are always kept.
    pub const fn discover(mut self, is_wanted: bool) -> Self {
        self.discovery = if is_wanted { Some(DISCOVERY_INTERVAL) } else { None };
        self
    }

    /// The same, and how often the cluster is asked about (10 s) while the client is in use.
    pub const fn discover_every(mut self, interval: Duration) -> Self {
        self.discovery = Some(interval);
        self
    }

    /// Where this program runs: servers of the same zone (`frazil serve --zone`) are asked first, and
    /// others while none of them is well.
    pub fn zone(mut self, name: impl Into<String>) -> Self {
        self.zone = Some(name.into());
        self
    }

    /// Is told of what the client does: a function, or what implements [`Observer`], in an [`Arc`] or not.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// The same with an observer that the caller keeps, too.
    pub fn shared_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// A client that has asked a server what it is.
    ///
    /// # Errors
    /// If a setting makes no sense, or no server answers within the deadline.
    pub async fn connect(self) -> Result<Client, Error> {
        let client = self.build()?;
        client.info().await?;
        Ok(client)
    }

    /// A client that has asked nobody anything yet.
    ///
    /// # Errors
    /// If a setting makes no sense.
    pub fn build(self) -> Result<Client, Error> {
        Ok(Client::new(self.inner()?))
    }

    pub(crate) fn inner(self) -> Result<Inner, Error> {
        Ok(Inner::new(self.options()?))
    }

    fn options(self) -> Result<Options, Error> {
        if self.endpoints.is_empty() {
            return Err(Error::invalid("no endpoint is given: name one, such as http://HOST:7780"));
        }
        if self.deadline.is_zero() || self.max_age.is_zero() || self.backoff.start().is_zero() {
            return Err(Error::invalid("deadline, max_age and backoff must be more than nothing"));
        }
        if self.discovery.is_some_and(|interval| interval.is_zero()) {
            return Err(Error::invalid("discover_every must be more than nothing"));
        }
        if self.backoff.is_empty() {
            return Err(Error::invalid("the first pause of backoff is longer than the longest"));
        }
        let targets = self.targets()?;
        let most = self.prefetch.min(COUNT_MAX);
        let bounds = Bounds { least: LEAST.min(most), first: FIRST.min(most), most };
        // Scopes are what order is promised for.
        let threads = match self.scope.is_empty() {
            true => thread::available_parallelism().map_or(1, NonZero::get),
            false => 1,
        };
        Ok(Options {
            targets,
            ca: self.ca,
            identity: self.identity,
            discovery: self.discovery,
            zone: self.zone.filter(|zone| !zone.is_empty()),
            threads,
            layout: self.layout,
            prefetch: (most > 0).then_some(bounds),
            max_age: self.max_age,
            deadline: self.deadline,
            backoff: self.backoff,
            observer: self.observer,
        })
    }

    fn targets(&self) -> Result<Vec<Target>, Error> {
        if self.scope.len() > SCOPE_BYTES_MAX {
            return Err(Error::invalid("the scope's name is longer than any that can be declared"));
        }
        let endpoints = self.endpoints.iter().map(|text| Endpoint::parse(text));
        let endpoints: Vec<Endpoint> = endpoints.collect::<Result<_, _>>()?;
        let key = match &self.key {
            None => None,
            Some(KeySource::Text(text)) => Some(Keyring::fixed(text)?),
            Some(KeySource::File(path)) => Some(Keyring::of_file(path)?),
        };
        let key = key.map(Arc::new);
        let needs_trust = endpoints.iter().any(|endpoint| endpoint.is_secure);
        let trust = || Trust::new(self.ca.as_deref(), self.identity.as_ref()).map(Arc::new);
        let trust = needs_trust.then(trust).transpose()?;
        let targets = endpoints.into_iter().map(|endpoint| Target {
            endpoint,
            trust: trust.clone(),
            key: key.clone(),
            scope: self.scope.clone(),
        });
        Ok(targets.collect())
    }
}

impl Options {
    /// Another server, which is spoken with as with the given ones; `None` if it needs TLS and that
    /// is not to be had.
    pub(crate) fn target(&self, endpoint: Endpoint) -> Option<Target> {
        let like = self.targets.first()?;
        let trust = match self.targets.iter().find_map(|target| target.trust.clone()) {
            None if endpoint.is_secure => {
                Some(Trust::new(self.ca.as_deref(), self.identity.as_ref()).ok()?.into())
            }
            known => known,
        };
        Some(Target { endpoint, trust, ..like.clone() })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("endpoints", &self.endpoints.len())
            .field("scope", &self.scope)
            .field("has_key", &self.key.is_some())
            .field("prefetch", &self.prefetch)
            .field("max_age", &self.max_age)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let good = || Builder::new().endpoint("http://ids");
        let second = Duration::from_secs(1);
        for bad in [
            Builder::new(),
            good().endpoint("ids"),
            good().key(" "),
            good().key("two\nlines"),
            good().key_file("/nowhere/at/all"),
            good().deadline(Duration::ZERO),
            good().max_age(Duration::ZERO),
            good().backoff(second * 2..=second),
            good().scope("x".repeat(65)),
            good().discover_every(Duration::ZERO),
        ] {
            let error = bad.build().unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }) && !error.is_retryable(), "{error}");
        }
        good().build().unwrap();
    }

    #[test]
    fn a_key_is_in_no_debug_output() {
        let builder = Builder::new().endpoint("http://ids").key("fzk_very_secret");
        let printed = format!("{builder:?} {:?}", builder.clone().build().unwrap());
        assert!(!printed.contains("secret"), "{printed}");
        // The control: it is there to be shown to servers.
        let targets = builder.targets().unwrap();
        let key = targets[0].key.as_ref().unwrap().current();
        let shown = key.header().to_str().unwrap().to_owned();
        assert_eq!(shown, "Bearer fzk_very_secret");
        assert!(!format!("{targets:?}").contains("secret"));
    }
}
