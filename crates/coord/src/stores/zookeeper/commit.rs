//! Writes: a slot's record together with its mark of use and its presence, and meta.

use std::time::Duration;

use frazil_zookeeper::{CreateMode, Op, SessionId, Stat};

use super::cell::{Cell, Snapshot, version_of, version_of_meta};
use super::session::{Deadline, Sent};
use super::tree::{Tree, first_set};
use crate::error::Failure;
use crate::nonce::Nonce;
use crate::record::{Meta, Version, json};
use crate::slot::Slot;
use crate::store::{Change, Commit, Committed, Look, PresenceChange, Present, Put};
use crate::sync::lock;
use crate::time::{boot_time, millis};

/// For how long what was read is good enough to be written over: for the moment in which a claim is
/// decided. The longer, the more could be deleted and created again with the same counts of writes.
const RECENT: Duration = Duration::from_millis(100);

impl Tree {
    /// Makes the change if all is as it names it.
    pub(super) async fn commit(
        &self,
        commit: &Commit,
        change: &Change,
        deadline: Deadline,
    ) -> Result<Committed, Failure> {
        let mut silent = None;
        loop {
            match self.try_commit(commit, change, deadline).await {
                Ok(committed) => return Ok(committed),
                // As when another client took the session up. The same is sent again: both name
                // what was read, so that at most one is carried out.
                Err(failure @ Failure::Silent(_)) => silent = Some(failure),
                // This says nothing of what was sent before.
                Err(failure) => return Err(silent.unwrap_or(failure)),
            }
        }
    }

    async fn try_commit(
        &self,
        commit: &Commit,
        change: &Change,
        deadline: Deadline,
    ) -> Result<Committed, Failure> {
        let slots = std::slice::from_ref(&change.slot);
        let mut snapshot = match self.recent(commit, change) {
            Some(recent) => recent,
            None => self.snapshot(slots, true, deadline).await?,
        };
        loop {
            // Before anything is written: meta that cannot be read is an error.
            let look = self.look(&snapshot)?;
            let Some(cell) = snapshot.possible(commit, change) else {
                return Ok(Committed::Conflict(look));
            };
            if let Some(stat) = self.change(&snapshot, cell, change, deadline).await? {
                return Ok(self.done(change, &stat, look));
            }
            snapshot = self.look_again(&snapshot, slots, deadline).await?;
        }
    }

    fn done(&self, change: &Change, stat: &Stat, look: Look) -> Committed {
        let clock = self.told(stat);
        // Presence lasts for at least a session from the write.
        let lasts = millis(self.session.lasts());
        let expires = match change.presence_change {
            PresenceChange::For(_) => clock.map(|now| now.saturating_add(lasts)),
            PresenceChange::Ended => None,
        };
        // Meta is what it was in the look: the multi checked it.
        let look = Look { entries: Vec::new(), clock, ..look };
        Committed::Done { index: 0, version: version_of(stat), expires, look }
    }

    /// Keeps what was read for the commit that is decided by it.
    pub(super) fn remember(&self, snapshot: Snapshot) {
        *lock(&self.recent) = Some((boot_time(), snapshot));
    }

    /// What the last look read of the slot, if the change comes from that look. Holders decide by
    /// what they knew long before, and read.
    fn recent(&self, commit: &Commit, change: &Change) -> Option<Snapshot> {
        let (read, snapshot) = lock(&self.recent).take()?;
        let is_recent = boot_time().saturating_sub(read) <= RECENT;
        let is_decided_by_it = is_recent && change.present == Present::Nobody;
        let cell = snapshot.possible(commit, change).filter(|_| is_decided_by_it)?.clone();
        Some(Snapshot { cells: vec![cell], ..snapshot })
    }

    /// Writes a change over what was read. `None`: it is not what was read any more.
    async fn change(
        &self,
        read: &Snapshot,
        cell: &Cell,
        change: &Change,
        deadline: Deadline,
    ) -> Result<Option<Stat>, Failure> {
        let mut ops = Vec::new();
        if let Some(meta) = &read.meta {
            ops.push(Op::check(self.paths.meta(), meta.stat.version));
        }
        self.add_record(&mut ops, cell, json(&change.record));
        match change.presence_change {
            PresenceChange::For(_) => {
                self.add_presence(&mut ops, cell, change.record.nonce, read.session);
            }
            PresenceChange::Ended => self.add_absence(&mut ops, cell),
        }
        match self.session.send(read.session, &ops, deadline).await? {
            // The record comes before everything else that is set.
            Sent::Done(results) => first_set(&results).map(Some),
            Sent::Refused(error) => self.refused(&error, deadline).await.map(|()| None),
        }
    }

    fn add_record(&self, ops: &mut Vec<Op>, cell: &Cell, data: String) {
        let (path, born) = (self.paths.record(&cell.slot), self.paths.born(&cell.slot));
        match &cell.record {
            Some(record) => ops.push(Op::set_data(path, data, Some(record.stat.version))),
            None => {
                ops.push(self.create(path.clone(), b"", CreateMode::Persistent));
                // Servers do not tell the state of what a multi creates, but of what it sets.
                ops.push(Op::set_data(path, data, None));
            }
        }
        ops.push(match (&cell.born, &cell.record) {
            (None, _) => self.create(born, b"", CreateMode::Persistent),
            (Some(known), Some(_)) => Op::check(born, known.stat.version),
            (Some(known), None) => Op::set_data(born, "", Some(known.stat.version)),
        });
    }

    /// Presence in the session that writes.
    fn add_presence(
        &self,
        ops: &mut Vec<Op>,
        cell: &Cell,
        nonce: Option<Nonce>,
        session: SessionId,
    ) {
        let path = self.paths.own(&cell.slot);
        let mark = nonce.map(|nonce| nonce.to_string()).unwrap_or_default();
        if let Some(own) = &cell.own {
            if own.stat.ephemeral_owner == session.0 && own.data == mark.as_bytes() {
                return ops.push(Op::check(path, own.stat.version));
            }
            // That of an earlier session of the same holder: the record is still its own.
            ops.push(Op::delete(path.clone(), Some(own.stat.version)));
        }
        ops.push(self.create(path, mark.as_bytes(), CreateMode::Ephemeral));
    }

    /// Nobody is present afterwards, and nobody else was before.
    fn add_absence(&self, ops: &mut Vec<Op>, cell: &Cell) {
        let path = self.paths.own(&cell.slot);
        if let Some(own) = &cell.own {
            return ops.push(Op::delete(path, Some(own.stat.version)));
        }
        // No operation checks that a node does not exist, but creating it does.
        ops.push(self.create(path.clone(), b"", CreateMode::Persistent));
        ops.push(Op::delete(path, None));
    }

    /// Replaces the version of meta that was read; `None`: it must not exist.
    pub(super) async fn put_meta(
        &self,
        expected: Option<Version>,
        meta: &Meta,
        deadline: Deadline,
    ) -> Result<Put, Failure> {
        let (path, data) = (self.paths.meta(), json(meta));
        loop {
            let read = self.snapshot(&[], true, deadline).await?;
            if read.meta_version() != expected || read.meta.is_some() != expected.is_some() {
                return Ok(Put::Conflict);
            }
            let version = read.meta.as_ref().map(|node| node.stat.version);
            let mut ops = vec![Op::set_data(&*path, &*data, version)];
            if version.is_none() {
                ops.insert(0, self.create(path.clone(), b"", CreateMode::Persistent));
            }
            match self.session.send(read.session, &ops, deadline).await? {
                Sent::Done(results) => {
                    let stat = first_set(&results)?;
                    self.told(&stat);
                    return Ok(Put::Done(version_of_meta(&stat, meta.incarnation)));
                }
                Sent::Refused(error) => self.refused(&error, deadline).await?,
            }
        }
    }

    /// Removes a slot that nobody is present in.
    pub(super) async fn forget(
        &self,
        slot: &Slot,
        version: Version,
        deadline: Deadline,
    ) -> Result<Put, Failure> {
        let slots = std::slice::from_ref(slot);
        let mut snapshot = self.snapshot(slots, true, deadline).await?;
        loop {
            let may_go = |cell: &&Cell| cell.version() == version && cell.own.is_none();
            let Some(cell) = snapshot.cells.first().filter(may_go) else {
                return Ok(Put::Conflict);
            };
            let mut ops = Vec::new();
            self.add_absence(&mut ops, cell);
            for (node, path) in
                [(&cell.record, self.paths.record(slot)), (&cell.born, self.paths.born(slot))]
            {
                let version = node.as_ref().map(|node| node.stat.version);
                ops.extend(version.map(|version| Op::delete(path, Some(version))));
            }
            match self.session.send(snapshot.session, &ops, deadline).await? {
                Sent::Done(_) => return Ok(Put::Done(Version(0))),
                Sent::Refused(error) => self.refused(&error, deadline).await?,
            }
            snapshot = self.look_again(&snapshot, slots, deadline).await?;
        }
    }
}

impl Snapshot {
    /// The cell of a change whose conditions hold.
    fn possible(&self, commit: &Commit, change: &Change) -> Option<&Cell> {
        let is_meta = |read| self.meta_version() == Some(read);
        let cell = self.cells.iter().find(|cell| cell.slot == change.slot)?;
        let may_be_present = match (&cell.own, change.present) {
            (None, _) => true,
            (Some(_), Present::Nobody) => false,
            (Some(own), Present::Holder) => {
                change.nonce.is_some_and(|nonce| own.data == nonce.to_string().as_bytes())
            }
        };
        let is_same = change.is_as_read(cell.version(), &cell.found());
        (commit.meta.is_none_or(is_meta) && is_same && may_be_present).then_some(cell)
    }
}
