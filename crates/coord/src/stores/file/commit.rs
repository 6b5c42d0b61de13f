//! The write of a record, under the lock of its slot.

use std::sync::Arc;

use super::cell::LockedCell;
use super::directory::{Opened, Place};
use super::shared::{Holding, Shared};
use crate::error::Failure;
use crate::record::{Meta, Version, Versioned};
use crate::slot::{Group, Slot};
use crate::store::{Change, Commit, Committed, Look, PresenceChange, Present, Put};

impl Shared {
    pub(super) fn commit(&self, commit: &Commit) -> Result<Committed, Failure> {
        let _writing = self.writing();
        let holdings: Vec<_> = commit.changes.iter().map(|change| self.holding(change)).collect();
        for (change, holding) in commit.changes.iter().zip(&holdings) {
            if let Some(holding) = holding
                && holding.directory.place(&self.root)? == Place::Replaced
            {
                self.end(change);
                // All that the holder was given is gone, meta too, whatever is there now.
                return Ok(Committed::Conflict(Look::default()));
            }
        }
        let directory = self.enter()?;
        if let Some(nonce) = commit.served_once()
            && let Some(served) = self.served(nonce)?
        {
            let (meta, entries) = (self.meta()?, vec![served]);
            return Ok(Committed::Conflict(Look { meta, entries, ..Look::default() }));
        }
        // Held while the record is written, so that meta cannot move in between.
        let _meta_locked =
            commit.meta.map(|_| self.meta_cell().lock_shared_patiently()).transpose()?;
        let meta = self.meta()?;
        if commit.meta.is_some() && commit.meta != meta.as_ref().map(|meta| meta.version) {
            return self.conflict(commit, meta);
        }
        for (index, (change, holding)) in commit.changes.iter().zip(holdings).enumerate() {
            let has_namespace = meta.is_some() || change.present == Present::Nobody;
            if has_namespace && let Some(version) = self.attempt(change, holding, &directory)? {
                let look = Look { meta, ..Look::default() };
                return Ok(Committed::Done { index, version, expires: None, look });
            }
        }
        self.conflict(commit, meta)
    }

    /// This process's presence in a slot, for a change by its holder. It ends here if it is to end:
    /// whether or not the record can be written.
    fn holding(&self, change: &Change) -> Option<Holding> {
        let known = self.known();
        let holding = known.present.get(&change.slot)?;
        let is_holder = change.present == Present::Holder && Some(holding.nonce) == change.nonce;
        let holding = is_holder.then(|| holding.clone());
        drop(known);
        if change.presence_change == PresenceChange::Ended {
            self.end(change);
        }
        holding
    }

    /// Ends the presence of a change's holder, if it is this process's.
    fn end(&self, change: &Change) {
        if change.present == Present::Holder {
            let is_holder =
                |slot: &Slot, of: &Holding| *slot == change.slot && Some(of.nonce) == change.nonce;
            self.known().present.retain(|slot, holding| !is_holder(slot, holding));
        }
    }

    /// Makes the change if it is possible.
    fn attempt(
        &self,
        change: &Change,
        holding: Option<Holding>,
        directory: &Arc<Opened>,
    ) -> Result<Option<Version>, Failure> {
        let cell = self.cell(&change.slot);
        // Before the lock file is created: a refusal leaves nothing behind.
        let (version, found) = cell.find()?;
        if !change.is_as_read(version, &found) {
            return Ok(None);
        }
        let locked = match holding.and_then(|holding| holding.locked) {
            Some(locked) if locked.is_in_place()? => locked,
            _ => match cell.try_lock()? {
                Some(locked) => Arc::new(locked),
                None => return Ok(None),
            },
        };
        let (version, found) = locked.find()?;
        if !change.is_as_read(version, &found) {
            return Ok(None);
        }
        self.write(change, version, locked, directory).map(Some)
    }

    fn write(
        &self,
        change: &Change,
        old: Version,
        locked: Arc<LockedCell>,
        directory: &Arc<Opened>,
    ) -> Result<Version, Failure> {
        let keep = |locked| {
            if let (PresenceChange::For(_), Some(nonce)) =
                (change.presence_change, change.record.nonce)
            {
                let holding = Holding { nonce, locked, directory: directory.clone() };
                self.known().present.insert(change.slot.clone(), holding);
            }
        };
        match (change.present, change.presence_change) {
            // Only the horizon falls: until the disk has it, a successor finds a higher one.
            (Present::Holder, PresenceChange::Ended) => {
                Ok(locked.write_lazily(old, &change.record)?)
            }
            (Present::Holder, PresenceChange::For(_)) => {
                keep(Some(locked.clone()));
                locked.write(old, &change.record)
            }
            (Present::Nobody, _) => {
                let written = locked.write(old, &change.record);
                match &written {
                    Ok(_) => keep(Some(locked)),
                    // The record is there, and may not be on disk: it is found by its nonce, nobody
                    // is present in it, and so it is written again.
                    Err(Failure::Silent(_)) => keep(None),
                    Err(_) => {}
                }
                written
            }
        }
    }

    /// What is there instead of what was read.
    fn conflict(
        &self,
        commit: &Commit,
        meta: Option<Versioned<Meta>>,
    ) -> Result<Committed, Failure> {
        let mut entries = Vec::new();
        for change in &commit.changes {
            let entry = self.entry(&change.slot)?;
            // What was read is still there: somebody else has the lock.
            let is_passed_by = entry.version == change.version;
            if is_passed_by || entry.nonce() != change.nonce || meta.is_none() {
                self.end(change);
            }
            entries.push(entry);
        }
        Ok(Committed::Conflict(Look { meta, entries, ..Look::default() }))
    }

    pub(super) fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Failure> {
        let _writing = self.writing();
        self.enter()?;
        let cell = self.cell(slot);
        if slot.group() == Group::Workers || cell.find()?.0 != version {
            return Ok(Put::Conflict);
        }
        let Some(locked) = cell.try_lock()? else { return Ok(Put::Conflict) };
        if locked.find()?.0 != version {
            return Ok(Put::Conflict);
        }
        locked.erase()?;
        Ok(Put::Done(Version(0)))
    }
}
