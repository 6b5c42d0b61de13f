//! The one kind of write: a slot's record together with its mark of birth and its presence.

use zookeeper_client as zk;
use zookeeper_client::{Acl, Acls, AuthId, CreateMode, MultiWriteResult, Permission, Stat};

use super::cell::Cell;
use super::failure::Failure;
use super::paths::Paths;
use super::session::{Committed, Deadline, Session};
use crate::error::ErrorKind;
use crate::nonce::Nonce;
use crate::record::Record;

/// Any version of a node, as long as it exists.
pub(super) const ANY: i32 = -1;

/// A slot's record to be replaced, if the slot is still what was read.
pub(super) struct Change<'a> {
    pub(super) cell: &'a Cell,
    pub(super) record: &'a Record,
    /// The count of writes that meta must have; `None` if meta does not matter.
    pub(super) meta: Option<i32>,
    pub(super) presence: Stay,
}

/// What becomes of the presence in a slot.
#[derive(Clone, Copy)]
pub(super) enum Stay {
    /// With this nonce, in the session that writes.
    Present(Nonce),
    Absent,
}

/// How a change ended.
pub(super) enum Changed {
    Done(Stat),
    /// The slot or meta is not what was read. Nothing was written.
    Conflict,
}

/// Writes to the tree of one namespace.
pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) paths: &'a Paths,
    pub(super) authenticated: bool,
}

impl Writer<'_> {
    pub(super) async fn change(
        &self,
        change: &Change<'_>,
        deadline: Deadline,
    ) -> Result<Changed, Failure> {
        let data = serde_json::to_vec(change.record).map_err(|error| {
            Failure::Definite(ErrorKind::InvalidConfig, format!("the record: {error}"))
        })?;
        let build = |session: i64, multi: &mut zk::MultiWriter<'_>| {
            if let Some(version) = change.meta {
                multi.add_check_version(&self.paths.meta(), version)?;
            }
            self.add_record(multi, change.cell, &data)?;
            self.add_presence(multi, change, session)
        };
        match self.session.commit(build, deadline).await? {
            // The record comes before everything else that is set.
            Committed::Done(results) => first_set(&results).map(Changed::Done),
            Committed::Refused(error) => {
                if error == zk::Error::NoNode {
                    self.make_parents(deadline).await?;
                }
                Ok(Changed::Conflict)
            }
        }
    }

    /// Creates what the other nodes are under, as far as it is missing.
    pub(super) async fn make_parents(&self, deadline: Deadline) -> Result<(), Failure> {
        let shared = [
            Acl::new(Permission::ALL, AuthId::authed()),
            Acl::new(Permission::READ | Permission::CREATE, AuthId::anyone()),
        ];
        // Namespaces of different users may share the root; what is theirs is below.
        let root = if self.authenticated { Acls::new(&shared) } else { Acls::anyone_all() };
        let root = CreateMode::Persistent.with_acls(root);
        let mut wanted = vec![self.paths.root().to_owned()];
        wanted.extend(self.paths.parents());
        let make = |client: zk::Client| {
            let (wanted, root) = (&wanted, &root);
            async move {
                // All asked for at once. Whether a node exists may be asked without permission;
                // to create one that exists may not.
                let looks: Vec<_> = wanted.iter().map(|path| client.check_stat(path)).collect();
                for (index, (path, look)) in wanted.iter().zip(looks).enumerate() {
                    if look.await?.is_some() {
                        continue;
                    }
                    let made = match index {
                        0 => client.mkdir(path, root).await,
                        _ => client.create(path, b"", &self.persistent()).await.map(drop),
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

    pub(super) fn persistent(&self) -> zk::CreateOptions<'static> {
        CreateMode::Persistent.with_acls(self.acls())
    }

    /// Who logged in keeps what it writes to itself.
    const fn acls(&self) -> Acls<'static> {
        if self.authenticated { Acls::creator_all() } else { Acls::anyone_all() }
    }

    fn add_record(
        &self,
        multi: &mut zk::MultiWriter<'_>,
        cell: &Cell,
        data: &[u8],
    ) -> Result<(), zk::Error> {
        let (path, born) = (self.paths.record(&cell.slot), self.paths.born(&cell.slot));
        match &cell.record {
            Some(record) => multi.add_set_data(&path, data, Some(record.stat.version))?,
            None => {
                multi.add_create(&path, b"", &self.persistent())?;
                // Servers do not tell the state of what a multi creates, but of what it sets.
                multi.add_set_data(&path, data, None)?;
            }
        }
        match (&cell.born, &cell.record) {
            (None, _) => multi.add_create(&born, b"", &self.persistent()),
            (Some(known), Some(_)) => multi.add_check_version(&born, known.stat.version),
            (Some(known), None) => multi.add_set_data(&born, b"", Some(known.stat.version)),
        }
    }

    fn add_presence(
        &self,
        multi: &mut zk::MultiWriter<'_>,
        change: &Change<'_>,
        session: i64,
    ) -> Result<(), zk::Error> {
        let path = self.paths.own(&change.cell.slot);
        let version = change.cell.own.as_ref().map(|own| own.stat.version);
        match change.presence {
            Stay::Present(nonce) if change.cell.is_own(nonce, session) => {
                multi.add_check_version(&path, version.unwrap_or(ANY))
            }
            Stay::Present(nonce) => {
                // That of an earlier session of the same holder: the record is still its own.
                if version.is_some() {
                    multi.add_delete(&path, version)?;
                }
                let ephemeral = CreateMode::Ephemeral.with_acls(self.acls());
                multi.add_create(&path, nonce.to_string().as_bytes(), &ephemeral)
            }
            Stay::Absent if version.is_some() => multi.add_delete(&path, version),
            Stay::Absent => Ok(()),
        }
    }
}

/// The state of the first node that a multi set.
pub(super) fn first_set(results: &[MultiWriteResult]) -> Result<Stat, Failure> {
    let set = results.iter().find_map(|result| match result {
        MultiWriteResult::SetData { stat } => Some(*stat),
        _ => None,
    });
    set.ok_or_else(|| Failure::Silent("the answer lacks the state of what was written".into()))
}
