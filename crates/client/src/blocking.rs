//! The same for programs without a runtime: a thread of its own does the waiting.

use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, mpsc};

use arc_swap::ArcSwap;
use frazil_fork::Birthmark;
use frazil_id::{Id, Layout, Parts};
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

use crate::ask::{Answer, Ask};
use crate::builder::Builder;
use crate::error::Error;
use crate::server_info::ServerInfo;
use crate::stats::Stats;

/// IDs from servers, for programs that block. Like [`crate::Client`] a handle that is cheap to
/// clone; it may be used within a runtime, too, where it blocks as it does elsewhere.
///
/// ```no_run
/// let ids = frazil_client::blocking::Client::connect(["http://127.0.0.1:7780"])?;
/// let id = ids.next()?;
/// # Ok::<(), frazil_client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
    engines: Arc<Engines>,
}

/// The thread of the process that uses the client.
#[derive(Debug)]
struct Engines(ArcSwap<Engine>);

/// A thread with a runtime. It ends when the last handle of the client is gone.
#[derive(Debug)]
struct Engine {
    mark: Birthmark,
    handle: Handle,
    _stop: oneshot::Sender<()>,
}

impl Client {
    /// A client of these servers with the usual settings.
    ///
    /// # Errors
    /// If an endpoint makes no sense, or none answers within 5 s.
    pub fn connect(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, Error> {
        Self::connect_with(crate::Client::builder().endpoints(endpoints))
    }

    /// The same with settings.
    ///
    /// # Errors
    /// If a setting makes no sense, or no server answers within the deadline.
    pub fn connect_with(settings: Builder) -> Result<Self, Error> {
        let client = Self::build(settings)?;
        client.info()?;
        Ok(client)
    }

    /// The same without asking anybody anything yet.
    ///
    /// # Errors
    /// If a setting makes no sense, or no thread is to be had.
    pub fn build(settings: Builder) -> Result<Self, Error> {
        let engine = Engine::start()?;
        let inner = {
            let _home = engine.handle.enter();
            settings.build()?
        };
        Ok(Self { inner, engines: Arc::new(Engines(ArcSwap::from_pointee(engine))) })
    }

    /// As [`crate::Client::next`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn next(&self) -> Result<Id, Error> {
        match self.inner.take() {
            Some(id) => Ok(id),
            None => self.wait(),
        }
    }

    /// Apart, so that whoever finds an ID in the pool does not pay for what this needs.
    #[cold]
    #[inline(never)]
    fn wait(&self) -> Result<Id, Error> {
        self.run(|client| async move { client.next().await })
    }

    /// As [`crate::Client::try_next`].
    #[must_use]
    pub fn try_next(&self) -> Option<Id> {
        if let Some(id) = self.inner.take() {
            return Some(id);
        }
        let engine = self.engines.engine().ok()?;
        let _home = engine.handle.enter();
        self.inner.try_next()
    }

    /// As [`crate::Client::batch`].
    ///
    /// # Errors
    /// As there.
    pub fn batch(&self, count: usize) -> Result<Vec<Id>, Error> {
        self.run(move |client| async move { client.batch(count).await })
    }

    /// As [`crate::Client::info`].
    ///
    /// # Errors
    /// As there.
    pub fn info(&self) -> Result<ServerInfo, Error> {
        self.run(|client| async move { client.info().await })
    }

    /// As [`crate::Client::ask`].
    ///
    /// # Errors
    /// As there.
    pub fn ask(&self, ask: Ask) -> Result<Answer, Error> {
        self.run(move |client| async move { client.ask(ask).await })
    }

    /// As [`crate::Client::layout`].
    #[must_use]
    pub fn layout(&self) -> Option<Layout> {
        self.inner.layout()
    }

    /// As [`crate::Client::decode`].
    ///
    /// # Errors
    /// As there.
    pub fn decode(&self, id: Id) -> Result<Parts, Error> {
        self.inner.decode(id)
    }

    /// As [`crate::Client::unix_ms`].
    ///
    /// # Errors
    /// As there.
    pub fn unix_ms(&self, id: Id) -> Result<u64, Error> {
        self.inner.unix_ms(id)
    }

    /// As [`crate::Client::range`].
    ///
    /// # Errors
    /// As there.
    pub fn range(&self, unix_ms: Range<i64>) -> Result<RangeInclusive<Id>, Error> {
        self.inner.range(unix_ms)
    }

    /// As [`crate::Client::stats`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// As [`crate::Client::close`].
    pub fn close(&self) {
        self.inner.close();
    }

    /// Runs a call in the thread, and blocks until it is done.
    fn run<T: Send + 'static, F: Future<Output = Result<T, Error>> + Send + 'static>(
        &self,
        call: impl FnOnce(crate::Client) -> F,
    ) -> Result<T, Error> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let call = call(self.inner.clone());
        // Kept until the answer is there: the thread must not end before.
        let engine = self.engines.engine()?;
        engine.handle.spawn(async move {
            let _ = sender.send(call.await);
        });
        receiver.recv().unwrap_or(Err(Error::Closed))
    }
}

impl Engines {
    /// The thread of this process: a child has none, and starts one.
    fn engine(&self) -> Result<Arc<Engine>, Error> {
        let engine = self.0.load();
        if engine.mark.is_here() {
            return Ok(Arc::clone(&engine));
        }
        // The parent's is not dropped here: what it would wake does not exist.
        std::mem::forget(Arc::clone(&engine));
        self.0.compare_and_swap(&engine, Arc::new(Engine::start()?));
        Ok(self.0.load_full())
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        let engine = self.0.load_full();
        if !engine.mark.is_here() {
            std::mem::forget(engine);
        }
    }
}

impl Engine {
    fn start() -> Result<Self, Error> {
        let bad = |error| Error::invalid("no thread is to be had for the client").because(error);
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(bad)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name("frazil-client".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
            })
            .map_err(bad)?;
        Ok(Self { mark: Birthmark::new(), handle, _stop: stop })
    }
}
