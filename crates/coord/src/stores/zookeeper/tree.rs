//! The nodes of one namespace: reading them at one moment, and creating what they are under.

use std::sync::Mutex;
use std::time::Duration;

use frazil_zookeeper as zk;
use frazil_zookeeper::{Acl, CreateMode, Op, OpResult, Permissions, Stat};

use super::cell::{Cell, Snapshot, meta_of};
use super::clock::Clock;
use super::paths::{Paths, slot_of_mark};
use super::session::{Deadline, Get, Session};
use crate::error::ErrorKind;
use crate::error::Failure;
use crate::namespace::Namespace;
use crate::record::{Meta, UnixMs};
use crate::slot::{Group, Slot};
use crate::store::{Entry, Look};
use crate::time::boot_time;

/// One namespace's nodes, over one session.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) session: Session,
    pub(super) paths: Paths,
    clock: Clock,
    /// Whether it was opened to be used, and not to be read only.
    writes: bool,
    /// What the last look read, and when in boot time.
    pub(super) recent: Mutex<Option<(Duration, Snapshot)>>,
}

impl Tree {
    pub(super) fn new(session: Session, paths: Paths, writes: bool) -> Self {
        Self { session, paths, clock: Clock::default(), writes, recent: Mutex::default() }
    }

    /// Meta and some slots at one moment. `fresh`: a server that lags behind catches up first.
    pub(super) async fn snapshot(
        &self,
        slots: &[Slot],
        fresh: bool,
        deadline: Deadline,
    ) -> Result<Snapshot, Failure> {
        let gets: Vec<_> = Snapshot::gets(&self.paths, slots).collect();
        Ok(Snapshot::from_read(slots, self.session.read(&gets, fresh, deadline).await?))
    }

    /// The slots after a multi over what was read of them was refused. A server refuses once it
    /// knows all writes before, so that it need not catch up, unless the session is another.
    pub(super) async fn look_again(
        &self,
        refused: &Snapshot,
        slots: &[Slot],
        deadline: Deadline,
    ) -> Result<Snapshot, Failure> {
        let fresh = self.session.id() != refused.session;
        self.snapshot(slots, fresh, deadline).await
    }

    /// What a snapshot shows.
    pub(super) fn look(&self, snapshot: &Snapshot) -> Result<Look, Failure> {
        let removal = format_args!("delete {}", self.paths.meta()).to_string();
        let meta = snapshot.meta.as_ref().map(|node| meta_of(node, &removal)).transpose()?;
        let entries = snapshot.cells.iter().map(Cell::entry).collect();
        Ok(Look { meta, entries, clock: self.clock.at(boot_time()), ..Look::default() })
    }

    /// Every slot of a kind that has a record or a mark of use.
    pub(super) async fn list(
        &self,
        group: Group,
        deadline: Deadline,
    ) -> Result<Vec<Entry>, Failure> {
        let lists = [Get::Children(self.paths.group(group)), Get::Children(self.paths.use_marks())];
        let mut read = self.session.read(&lists, true, deadline).await?;
        let (records, marks) = (read.names(), read.names());
        let named = records.iter().filter_map(|name| Slot::named(group, name).ok());
        let marked = marks.iter().filter_map(|mark| slot_of_mark(group, mark));
        let mut slots: Vec<_> = named.chain(marked).collect();
        slots.sort_unstable();
        slots.dedup();
        let snapshot = self.snapshot(&slots, false, deadline).await?;
        Ok(snapshot.cells.iter().map(Cell::entry).collect())
    }

    /// Other namespaces under the same root. Those that belong to another user are left out.
    pub(super) async fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Failure> {
        let root = self.paths.root();
        let list = [Get::Children(root.to_owned())];
        let names = self.session.read(&list, false, self.session.deadline()).await?.names();
        let mut found = Vec::new();
        for name in names.iter().take(most) {
            let base = format!("{root}/{name}");
            let Some(namespace) = name.parse().ok().filter(|_| base != self.paths.base()) else {
                continue;
            };
            let meta = [Get::Data(format!("{base}/meta"))];
            let node = match self.session.read(&meta, false, self.session.deadline()).await {
                Ok(mut read) => read.node(),
                Err(Failure::Definite(ErrorKind::Denied, _)) => None,
                Err(failure) => return Err(failure),
            };
            if let Some(Ok(meta)) = node.map(|node| serde_json::from_slice(&node.data)) {
                found.push((namespace, meta));
            }
        }
        Ok(found)
    }

    /// Sets the clock if it is due, by a write that changes nothing; not where nothing is written.
    pub(super) async fn keep_clock(&self, deadline: Deadline) -> Result<(), Failure> {
        if !self.writes || !self.clock.is_due(boot_time()) {
            return Ok(());
        }
        let base = self.paths.base();
        let write = |client: zk::Client| async move {
            match client.set_data(base, b"", None).await {
                Err(zk::Error::NoNode) => Ok(None),
                written => written.map(Some),
            }
        };
        loop {
            match self.session.retry(deadline, write).await? {
                Some(stat) => {
                    self.told(&stat);
                    return Ok(());
                }
                None => self.make_parents(deadline).await?,
            }
        }
    }

    /// The time of a write that was answered just now. The clock is set by it.
    pub(super) fn told(&self, written: &Stat) -> Option<UnixMs> {
        let told = u64::try_from(written.mtime).ok()?;
        self.clock.set(told, boot_time());
        Some(told)
    }

    /// After a multi that was refused.
    pub(super) async fn refused(
        &self,
        error: &zk::Error,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        match error {
            zk::Error::NoNode => self.make_parents(deadline).await,
            _ => Ok(()),
        }
    }

    /// Creates what the other nodes are under, as far as it is missing.
    pub(super) async fn make_parents(&self, deadline: Deadline) -> Result<(), Failure> {
        // Namespaces of different users may share the root; what is theirs is below.
        let mut root = self.acl();
        if self.session.is_authenticated() {
            root.push(Acl::anyone(Permissions::READ | Permissions::CREATE));
        }
        let mut wanted = vec![self.paths.root().to_owned()];
        wanted.extend(self.paths.parents());
        let make = |client: zk::Client| {
            let (wanted, root) = (&wanted, &root);
            async move {
                // All asked for at once. Whether a node exists may be asked without permission;
                // to create one that exists may not.
                let looks: Vec<_> = wanted.iter().map(|path| client.exists(path)).collect();
                for (index, (path, look)) in wanted.iter().zip(looks).enumerate() {
                    if look.await?.is_some() {
                        continue;
                    }
                    let persistent = CreateMode::Persistent;
                    let made = match index {
                        0 => make_path(&client, path, root).await,
                        _ => client.create(path, b"", persistent, &self.acl()).await.map(drop),
                    };
                    match made {
                        Ok(()) | Err(zk::Error::NodeExists) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
        };
        self.session.retry(deadline, make).await
    }

    /// The creation of a node.
    pub(super) fn create(&self, path: String, data: &[u8], mode: CreateMode) -> Op {
        Op::create(path, data, mode, self.acl())
    }

    /// Who logged in keeps what it writes to itself.
    fn acl(&self) -> Vec<Acl> {
        let is_own = self.session.is_authenticated();
        let acl = if is_own { Acl::creator } else { Acl::anyone };
        vec![acl(Permissions::ALL)]
    }
}

/// Creates a node, and those above that there are not. They are asked for from below: above, others
/// may let nobody create anything.
async fn make_path(client: &zk::Client, path: &str, acl: &[Acl]) -> Result<(), zk::Error> {
    let mut missing = vec![path];
    while let Some(path) = missing.last() {
        match client.create(path, b"", CreateMode::Persistent, acl).await {
            Ok(_) | Err(zk::Error::NodeExists) => drop(missing.pop()),
            Err(zk::Error::NoNode) => match path.rsplit_once('/') {
                Some((above, _)) if !above.is_empty() => missing.push(above),
                _ => return Err(zk::Error::NoNode),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The state of the first node that a multi set.
pub(super) fn first_set(results: &[OpResult]) -> Result<Stat, Failure> {
    let set = results.iter().find_map(|result| match result {
        OpResult::Set(stat) => Some(*stat),
        _ => None,
    });
    set.ok_or_else(|| Failure::Silent("the answer lacks the state of what was written".into()))
}
