//! ZooKeeper: records in persistent nodes, presence in ephemeral ones, every act one multi.
//!
//! Needs ZooKeeper 3.6, for reads of several nodes at one moment and for persistent watches.
//!
//! Presence lasts as long as the session: the option `session` of the URL (30 s), within the
//! bounds that the servers set. A claim must not want presence for longer than that, and gets it
//! for no less; a holder that dies is noticed after a session, however short its claim was.

mod cell;
mod clock;
mod commit;
mod endpoints;
mod failure;
mod free_slots;
mod guarantees;
mod paths;
mod session;
mod tree;
mod unreachable;
mod watching;

use std::fmt;

use async_trait::async_trait;
use tokio::time::timeout_at;

use self::endpoints::Endpoints;
use self::guarantees::Setup;
use self::paths::Paths;
use self::session::{Get, Session};
use self::tree::Tree;
use crate::error::{Error, ErrorKind, Failure};
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::namespace::Namespace;
use crate::record::{Meta, Version};
use crate::slot::{Group, Slot};
use crate::store::{
    Act, Changes, Commit, Committed, Entry, FreeSlots, Look, PresenceChange, Put, Store, Wanted,
    Watched,
};
use crate::timing::Timing;
use crate::url::StoreUrl;

/// A namespace in ZooKeeper, over one session.
pub struct ZooKeeperStore {
    url: StoreUrl,
    namespace: Namespace,
    tree: Tree,
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

    async fn enter(url: &StoreUrl, namespace: &Namespace, writes: bool) -> Result<Self, Error> {
        let fail = |failure: Failure| failure.into_error("connect", url);
        let paths = Paths::new(url, namespace).map_err(|why| url.unusable(why))?;
        let endpoints = Endpoints::new(url)?;
        let deadline = tokio::time::Instant::now() + endpoints.timeout;
        let late = || Failure::unavailable("no server answered within the time-out");
        let client = match timeout_at(deadline, endpoints.open(None)).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(fail(Failure::from(error).of_read())),
            Err(_) => return Err(fail(late())),
        };
        let setup = Setup::look(&client, &endpoints, deadline).await;
        let tree = Tree::new(Session::new(endpoints, client), paths, writes);
        if writes {
            tree.make_parents(deadline).await.map_err(fail)?;
            tree.keep_clock(deadline).await.map_err(fail)?;
        }
        let readable = [Get::Data(tree.paths.meta()), Get::Children(tree.paths.owners())];
        tree.session.read(&readable, false, deadline).await.map_err(fail)?;
        Ok(Self { url: url.clone(), namespace: namespace.clone(), tree, setup })
    }

    /// # Errors
    /// If presence is to last for longer than a session: a leader would believe to lead for longer
    /// than its presence lasts.
    fn check_stay(&self, act: Act, presence_change: PresenceChange) -> Result<(), Failure> {
        let lasts = self.tree.session.lasts();
        match presence_change {
            PresenceChange::For(ttl) if act == Act::Acquire && ttl > lasts => {
                let why = format!(
                    "presence for {ttl:?} is wanted and a session lasts {lasts:?}: raise the \
                     option session of the URL, and maxSessionTimeout of the servers if need be"
                );
                Err(Failure::Definite(ErrorKind::InvalidConfig, why.into()))
            }
            PresenceChange::For(_) | PresenceChange::Ended => Ok(()),
        }
    }

    fn fails(&self, act: Act) -> impl Fn(Failure) -> Error {
        move |failure| failure.into_error(act.word(), &self.url)
    }
}

#[async_trait]
impl Store for ZooKeeperStore {
    fn guarantees(&self) -> Guarantees {
        self.setup.guarantees()
    }

    async fn diagnose(&self, timing: &Timing) -> Result<Vec<Finding>, Error> {
        Ok(self.setup.findings(timing))
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let deadline = self.tree.session.deadline();
        let read = async {
            self.tree.keep_clock(deadline).await?;
            let snapshot = self.tree.snapshot(slots, true, deadline).await?;
            let look = self.tree.look(&snapshot)?;
            self.tree.remember(snapshot);
            Ok(look)
        };
        read.await.map_err(self.fails(Act::Read))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let deadline = self.tree.session.deadline();
        self.tree.list(group, deadline).await.map_err(self.fails(Act::List))
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        let deadline = self.tree.session.deadline();
        self.tree.free_slots(wanted, deadline).await.map_err(self.fails(Act::FreeSlots))
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        let Some(change) = commit.changes.first() else {
            return Ok(Committed::Conflict(self.read(&[]).await?));
        };
        let fails = self.fails(commit.act);
        self.check_stay(commit.act, change.presence_change).map_err(&fails)?;
        let deadline = self.tree.session.deadline();
        self.tree.commit(commit, change, deadline).await.map_err(fails)
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let deadline = self.tree.session.deadline();
        let put = self.tree.put_meta(expected, meta, deadline).await;
        put.map_err(self.fails(Act::PutMeta))
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        if slot.group() == Group::Workers {
            return Ok(Put::Conflict);
        }
        let deadline = self.tree.session.deadline();
        let forgotten = self.tree.forget(slot, version, deadline).await;
        forgotten.map_err(self.fails(Act::Forget))
    }

    async fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Error> {
        let found = self.tree.neighbours(most).await;
        found.map_err(self.fails(Act::List))
    }

    fn namespace(&self) -> Option<&Namespace> {
        Some(&self.namespace)
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        let deadline = self.tree.session.deadline();
        self.tree.watch(watched, deadline).await.map_err(self.fails(Act::Watch))
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
