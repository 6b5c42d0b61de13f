//! The handle.

use std::ops::{Range, RangeInclusive};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use frazil_id::{Id, Layout, Parts};
use tokio::time::{Instant, timeout_at};

use crate::ask::{Answer, Ask};
use crate::builder::Builder;
use crate::call;
use crate::error::Error;
use crate::fetch;
use crate::inner::Inner;
use crate::observer::Event;
use crate::server_info::ServerInfo;
use crate::stats::Stats;

/// The servers to ask, separated by commas.
const ENDPOINTS_VARIABLE: &str = "FRAZIL_ENDPOINTS";
/// The file with the key, if one is needed.
const KEY_FILE_VARIABLE: &str = "FRAZIL_KEY_FILE";
/// Where the program runs, if that is known.
const ZONE_VARIABLE: &str = "FRAZIL_ZONE";

/// IDs from servers. A handle: clones are cheap, share everything, and may go to other threads.
///
/// IDs come from a pool that is filled ahead, so that `next` hardly ever waits. They are unique
/// whatever happens; a thread gets those of one answer in order, and nearly so those of one client.
/// Between clients there is no order but that of their times, which are up to
/// [`max_age`](Builder::max_age) old.
///
/// ```no_run
/// # async fn run() -> Result<(), frazil_client::Error> {
/// let ids = frazil_client::Client::connect(["http://127.0.0.1:7780"]).await?;
/// let id = ids.next().await?;
/// println!("{id} was issued by worker {}", ids.decode(id)?.worker);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

impl Client {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// What it knows of the servers' limit.
    #[cfg(test)]
    pub(crate) fn count_limit(&self) -> &crate::count_limit::CountLimit {
        &self.inner.limit
    }

    /// Asks for settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A client of these servers with the usual settings.
    ///
    /// # Errors
    /// If an endpoint makes no sense, or none answers within 5 s.
    pub async fn connect(
        endpoints: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, Error> {
        Self::builder().endpoints(endpoints).connect().await
    }

    /// The settings that the environment has: `FRAZIL_ENDPOINTS` (separated by commas),
    /// `FRAZIL_KEY_FILE` and `FRAZIL_ZONE`.
    ///
    /// # Errors
    /// If `FRAZIL_ENDPOINTS` is not set, or a variable is not text.
    pub fn from_env() -> Result<Builder, Error> {
        from_variables(|name| std::env::var_os(name))
    }

    /// The next ID: from the pool, or as soon as a server has answered.
    ///
    /// # Errors
    /// If no server gives one within the deadline; see [`Error::is_retryable`].
    pub async fn next(&self) -> Result<Id, Error> {
        match self.inner.take() {
            Some(id) => Ok(id),
            None => in_task(&self.inner, wait(self.inner.clone())).await,
        }
    }

    /// The next ID if the pool has one. If not, it is being filled, and `None`.
    #[must_use]
    pub fn try_next(&self) -> Option<Id> {
        let taken = self.inner.take();
        if taken.is_none() {
            let state = self.inner.state();
            state.refill(&self.inner);
        }
        taken
    }

    /// Exactly so many IDs, straight from a server and not from the pool; what is more than
    /// servers give at once is asked for in parts, each in ascending order.
    ///
    /// # Errors
    /// If not all of them can be had within the deadline.
    pub async fn batch(&self, count: usize) -> Result<Vec<Id>, Error> {
        in_task(&self.inner, batch(self.inner.clone(), count)).await
    }

    /// What a server says of itself. The layout is noted for [`decode`](Self::decode).
    ///
    /// # Errors
    /// If no server answers, or one has another layout than was expected.
    pub async fn info(&self) -> Result<ServerInfo, Error> {
        in_task(&self.inner, info(self.inner.clone())).await
    }

    /// Asks a server something else than IDs, over HTTP: with a nonce, within the budget for retries,
    /// and with the key and the TLS of the client.
    ///
    /// # Errors
    /// If no server answers in time, or one refuses; or if no endpoint speaks HTTP.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, Error> {
        in_task(&self.inner, other(self.inner.clone(), ask)).await
    }

    /// The layout of the IDs, if it is known.
    #[must_use]
    pub fn layout(&self) -> Option<Layout> {
        self.inner.layout()
    }

    /// Takes an ID apart, without asking anybody.
    ///
    /// # Errors
    /// If the layout is not known yet, or the ID is of another one.
    pub fn decode(&self, id: Id) -> Result<Parts, Error> {
        Ok(self.known_layout()?.decode(id)?)
    }

    /// When an ID was issued, in Unix milliseconds, by its own bits.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn unix_ms(&self, id: Id) -> Result<u64, Error> {
        let layout = self.known_layout()?;
        Ok(layout.unix_ms(layout.decode(id)?.tick))
    }

    /// The lowest and the highest ID that can have been issued in a stretch of Unix milliseconds,
    /// for queries such as `WHERE id BETWEEN ? AND ?`.
    ///
    /// # Errors
    /// If the layout is not known yet, the stretch is empty, or the layout does not reach it.
    pub fn range(&self, unix_ms: Range<i64>) -> Result<RangeInclusive<Id>, Error> {
        Ok(Id::range(&self.known_layout()?, unix_ms)?)
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.state().stats()
    }

    /// Ends the client and all its clones: what was fetched is dropped, and those who wait are told
    /// so. What is in flight is dropped when it arrives.
    pub fn close(&self) {
        self.inner.state().close();
    }

    fn known_layout(&self) -> Result<Layout, Error> {
        self.layout().ok_or(Error::NoLayout)
    }

    #[cfg(feature = "blocking")]
    pub(crate) fn take(&self) -> Option<Id> {
        self.inner.take()
    }
}

fn from_variables(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Result<Builder, Error> {
    let endpoints = variable(ENDPOINTS_VARIABLE).filter(|text| !text.is_empty()).ok_or_else(|| {
        Error::invalid(format_args!(
            "{ENDPOINTS_VARIABLE} is not set: name the servers, as in http://a:7780,http://b:7780"
        ))
    })?;
    let endpoints = endpoints
        .into_string()
        .map_err(|_| Error::invalid(format_args!("{ENDPOINTS_VARIABLE} is not text")))?;
    let builder = Client::builder().endpoints(endpoints.split(',').map(str::trim));
    let builder = match variable(KEY_FILE_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => builder.key_file(path),
        None => builder,
    };
    Ok(match variable(ZONE_VARIABLE) {
        Some(zone) => builder.zone(
            zone.into_string()
                .map_err(|_| Error::invalid(format_args!("{ZONE_VARIABLE} is not text")))?,
        ),
        None => builder,
    })
}

/// A call that has not begun. Boxed, so that it is compiled here and not in every crate that makes one.
type Call<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// Runs a call where there are timers and connections: here, or in the runtime that the client was
/// made in.
async fn in_task<T: Send + 'static>(inner: &Arc<Inner>, call: Call<T>) -> Result<T, Error> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return call.await;
    }
    let Some(home) = inner.runtime() else {
        return Err(Error::invalid(
            "there is no tokio runtime here: call this within one, or use blocking::Client",
        ));
    };
    home.spawn(call).await.unwrap_or_else(|_| {
        Err(Error::invalid(
            "the runtime that the client was made in has ended: make another client",
        ))
    })
}

/// Joins those who wait, until there is an ID of this process.
fn wait(inner: Arc<Inner>) -> Call<Id> {
    Box::pin(async move {
        let began = Instant::now();
        let within = inner.options.deadline;
        loop {
            // Somebody else's request may have brought some, and a child begins anew here.
            let state = Arc::clone(&inner.state());
            if let Some(id) = inner.take() {
                return Ok(id);
            }
            let place = state.waiters().join()?;
            if place.must_fetch {
                fetch::start(&inner, &state);
            }
            let outcome = match timeout_at(began + within, place.outcome).await {
                Ok(Ok(outcome)) => outcome,
                // Whoever fetched is gone.
                Ok(Err(_)) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Err(_) => Err(Error::Late { within, last: state.last_failure() }),
            };
            // It must not be the parent's.
            if state.mark.is_here() {
                state.note(&Event::Waited { latency: began.elapsed() });
                return outcome;
            }
        }
    })
}

fn batch(inner: Arc<Inner>, count: usize) -> Call<Vec<Id>> {
    Box::pin(async move {
        let deadline = deadline(inner.options.deadline);
        loop {
            let state = Arc::clone(&inner.state());
            state.check_open()?;
            let ids = call::exactly(&inner, &state, count, deadline).await?;
            // What the parent asked for is the parent's.
            if state.mark.is_here() {
                return Ok(ids);
            }
        }
    })
}

fn info(inner: Arc<Inner>) -> Call<ServerInfo> {
    Box::pin(async move {
        let state = Arc::clone(&inner.state());
        state.check_open()?;
        call::info(&inner, &state, deadline(inner.options.deadline)).await
    })
}

fn other(inner: Arc<Inner>, ask: Ask) -> Call<Answer> {
    Box::pin(async move {
        let state = Arc::clone(&inner.state());
        state.check_open()?;
        let within = ask.within.unwrap_or(inner.options.deadline);
        match call::other(&inner, &state, ask, deadline(within)).await {
            Err(Error::Late { last, .. }) => Err(Error::Late { within, last }),
            answered => answered,
        }
    })
}

fn deadline(within: Duration) -> Instant {
    Instant::now() + within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_where_servers_are() {
        let set = |endpoints: &'static str, key: &'static str| {
            move |name: &str| match name {
                "FRAZIL_ENDPOINTS" => Some(endpoints.into()),
                "FRAZIL_KEY_FILE" => Some(key.into()),
                _ => None,
            }
        };
        from_variables(set("http://a, http://b:1", "")).unwrap().build().unwrap();
        assert!(matches!(from_variables(|_| None), Err(Error::Invalid { .. })));
        assert!(matches!(from_variables(set("", "")), Err(Error::Invalid { .. })));
        assert!(from_variables(set("http://a,,", "")).unwrap().build().is_err());
        let error = from_variables(set("http://a", "/nowhere")).unwrap().build().unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }
}
