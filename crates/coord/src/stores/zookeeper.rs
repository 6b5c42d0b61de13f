//! ZooKeeper: records in persistent nodes, presence in ephemeral ones, every act one multi.
//!
//! Needs ZooKeeper 3.6, for reads of several nodes at one moment and for persistent watches.
//!
//! Presence lasts as long as the session: the option `session` of the URL (30 s), within the
//! bounds that the servers set. A claim must not want presence for longer than that, and gets it
//! for no less; a holder that dies is noticed after a session, however short its claim was.

mod cell;
mod claim;
mod door;
mod failure;
mod meta;
mod paths;
mod probe;
mod promise;
mod session;
mod tenure;
mod watch;
mod write;

use std::fmt;

use async_trait::async_trait;
use tokio::time::timeout_at;
use zookeeper_client as zk;

use self::cell::{Cell, look};
use self::claim::{Acquisition, Range};
use self::door::Door;
use self::failure::Failure;
use self::paths::{Paths, slot_of_mark};
use self::promise::Setup;
use self::session::{Get, Got, Session};
use self::write::Writer;
use crate::error::{Error, ErrorKind};
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::lease::{Acquired, Ask, Choice, Claim, Extended, Released, Tenure};
use crate::namespace::Namespace;
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::slot::{Group, Slot};
use crate::store::{Changes, Entry, Put, Store};
use crate::timing::Timing;
use crate::url::StoreUrl;

/// A namespace in ZooKeeper, over one session.
pub struct ZooKeeperStore {
    url: StoreUrl,
    paths: Paths,
    session: Session,
    authenticated: bool,
    setup: Setup,
}

impl ZooKeeperStore {
    /// Connects, makes the namespace's nodes if there are none, and sees that they can be read.
    ///
    /// # Errors
    /// If no server can be reached or lets us in within the time-out, if the nodes belong to
    /// another user, or if the URL makes no sense.
    pub async fn connect(url: &StoreUrl, namespace: &Namespace) -> Result<Self, Error> {
        Self::enter(url, namespace, true).await
    }

    /// Connects to read: no node is created.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn look(url: &StoreUrl, namespace: &Namespace) -> Result<Self, Error> {
        Self::enter(url, namespace, false).await
    }

    async fn enter(url: &StoreUrl, namespace: &Namespace, makes: bool) -> Result<Self, Error> {
        let fail = |failure: Failure| error("connect", url, failure);
        let invalid = |why| fail(Failure::Definite(ErrorKind::InvalidConfig, why));
        let paths = Paths::new(url, namespace).map_err(invalid)?;
        let door = Door::new(url)?;
        let deadline = tokio::time::Instant::now() + door.timeout;
        let late = || Failure::unavailable("no server answered within the time-out");
        let client = match timeout_at(deadline, door.open(None)).await {
            Ok(Ok(client)) => client,
            Ok(Err(zk::Error::NoHosts)) => {
                let why = timeout_at(deadline, probe::diagnose(&door)).await;
                return Err(fail(why.unwrap_or_else(|_| late())));
            }
            Ok(Err(zk::Error::AuthFailed)) => return Err(fail(zk::Error::AuthFailed.into())),
            Ok(Err(zk::Error::Timeout)) | Err(_) => return Err(fail(late())),
            // All else is said before anything is sent: of certificates and keys.
            Ok(Err(other)) => return Err(invalid(other.to_string())),
        };
        let setup = Setup::look(&client, &door, deadline).await;
        let authenticated = door.authenticated;
        let session = Session::new(door, client);
        let store = Self { url: url.clone(), paths, session, authenticated, setup };
        if makes {
            let made = store.writer().make_parents(deadline).await;
            made.map_err(|failure| fail(failure.of_read()))?;
        }
        let readable = [Get::Data(store.paths.meta()), Get::Children(store.paths.owners())];
        store.session.read(&readable, false, deadline).await.map_err(fail)?;
        Ok(store)
    }

    const fn writer(&self) -> Writer<'_> {
        let Self { session, paths, authenticated, .. } = self;
        Writer { session, paths, authenticated: *authenticated }
    }

    /// Every slot of a kind that has a record or a mark of birth.
    async fn all(&self, group: Group) -> Result<Vec<Cell>, Failure> {
        let deadline = self.session.deadline();
        let lists = [Get::Children(self.paths.group(group)), Get::Children(self.paths.births())];
        let mut got = self.session.read(&lists, true, deadline).await?.into_iter();
        let mut names = || match got.next() {
            Some(Got::Children(names)) => names,
            Some(Got::Data(_)) | None => Vec::new(),
        };
        let (records, births) = (names(), names());
        let named = records.iter().filter_map(|name| Slot::named(group, name).ok());
        let marked = births.iter().filter_map(|mark| slot_of_mark(group, mark));
        let mut slots: Vec<_> = named.chain(marked).collect();
        slots.sort_unstable();
        slots.dedup();
        Ok(look(&self.session, &self.paths, &slots, false, deadline).await?.1)
    }

    fn fails(&self, act: &'static str) -> impl Fn(Failure) -> Error {
        move |failure| error(act, &self.url, failure)
    }
}

fn error(act: &'static str, url: &StoreUrl, failure: Failure) -> Error {
    let (kind, why) = failure.into_parts();
    Error::new(kind, act, url, why)
}

#[async_trait]
impl Store for ZooKeeperStore {
    fn guarantees(&self) -> Guarantees {
        self.setup.guarantees()
    }

    async fn diagnose(&self, timing: &Timing) -> Result<Vec<Finding>, Error> {
        Ok(self.setup.findings(timing))
    }

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        let deadline = self.session.deadline();
        let removal = format_args!("delete {}", self.paths.meta()).to_string();
        let read = meta::get(&self.writer(), deadline).await.map_err(self.fails("read meta"));
        read.map_err(|error| error.with_way_out(removal))
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let deadline = self.session.deadline();
        let put = meta::put(&self.writer(), expected, meta, deadline).await;
        put.map_err(self.fails("write meta"))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let cells = self.all(group).await.map_err(self.fails("list"))?;
        Ok(cells.into_iter().map(Cell::into_entry).collect())
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        let lasts = self.session.lasts();
        if claim.ttl > lasts {
            // A leader would believe to lead for longer than its presence lasts.
            let why = format!(
                "presence for {:?} is wanted and a session lasts {lasts:?}: raise the option \
                 session of the URL, and maxSessionTimeout of the servers if need be",
                claim.ttl
            );
            return Err(Error::new(ErrorKind::InvalidConfig, "acquire", &self.url, why));
        }
        let deadline = self.session.deadline();
        let acquisition = Acquisition { writer: self.writer(), claim, deadline };
        let acquired = match &claim.choice {
            Choice::This(slot, read) => acquisition.this(slot, *read).await,
            Choice::Any { first, last, favourite } => {
                let range = Range { first: *first, last: *last, favourite: *favourite };
                acquisition.any(range).await
            }
        };
        acquired.map_err(self.fails("acquire"))
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        let deadline = self.session.deadline();
        let extended = tenure::extend(&self.writer(), tenure, ask, deadline).await;
        extended.map_err(self.fails("extend"))
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        let deadline = self.session.deadline();
        let released = tenure::release(&self.writer(), tenure, last, deadline).await;
        released.map_err(self.fails("release"))
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        let deadline = self.session.deadline();
        let put = tenure::put(&self.writer(), slot, expected, record, deadline).await;
        put.map_err(self.fails("put"))
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        let deadline = self.session.deadline();
        watch::watch(&self.writer(), group, deadline).await.map_err(self.fails("watch"))
    }
}

impl fmt::Display for ZooKeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl fmt::Debug for ZooKeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
