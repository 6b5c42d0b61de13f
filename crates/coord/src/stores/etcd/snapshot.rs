//! A namespace as it was read at one revision.

use std::collections::{BTreeMap, BTreeSet};

use frazil_etcd::{KeyValue, OperationResponse, RangeRequest, RequestOp, TxnRequest, TxnResponse};

use super::failure::Failure;
use super::keys::{self, KeyTarget, Keys};
use super::remote::{Call, RequestEffect};
use crate::record::{Version, Versioned, parse_meta};
use crate::slot::{Group, Slot};
use crate::store::{Entry, Found, Look, Presence};

/// How many slots are read one by one. Servers take 128 operations in a transaction, unless told
/// otherwise, and a slot is three of them.
const SLOTS_MAX: usize = 32;

/// Set in the version of a slot that was used and has no record, beside the revision of its marker;
/// revisions do not have it. So a slot that was used in between is not taken for one that never was.
const NO_RECORD: u64 = 1 << 63;

/// Meta and slots as they were at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Meta's revision and text.
    meta: Option<(i64, Vec<u8>)>,
    cells: BTreeMap<Slot, Cell>,
    /// The claim that was asked for.
    claim: Option<ServedClaim>,
}

/// That a commit of several changes was served before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServedClaim {
    pub(super) revision: i64,
    /// With which slot.
    pub(super) slot: Option<Slot>,
}

/// What was found of one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// The revision of the record, and its text.
    record: Option<(i64, Vec<u8>)>,
    /// The revision of the marker; 0 if the slot was never used.
    born: i64,
    is_held: bool,
}

/// What a version says of the keys of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revisions {
    /// It was never used.
    Unused,
    /// Its record is gone, and its marker has this revision.
    Marker(i64),
    /// Its record has this revision.
    Record(i64),
}

impl Snapshot {
    /// Looks at meta and these slots.
    pub(super) async fn of_slots(
        call: &Call<'_>,
        keys: &Keys,
        slots: &[Slot],
    ) -> Result<Self, Failure> {
        let gets = match slots.len() {
            0..=SLOTS_MAX => Self::gets(keys, slots.iter()),
            _ => {
                let groups: BTreeSet<Group> = slots.iter().map(Slot::group).collect();
                let whole = groups.into_iter().flat_map(|group| group_gets(keys, group));
                [RequestOp::get(keys.meta())].into_iter().chain(whole).collect()
            }
        };
        Self::read(call, keys, gets).await
    }

    /// Looks at meta and all slots of a kind.
    pub(super) async fn of_group(
        call: &Call<'_>,
        keys: &Keys,
        group: Group,
    ) -> Result<Self, Failure> {
        let [records, owns, borns] = group_gets(keys, group);
        let gets = vec![RequestOp::get(keys.meta()), records, owns, borns];
        Self::read(call, keys, gets).await
    }

    /// What reads meta and slots within a transaction.
    pub(super) fn gets<'a>(keys: &Keys, slots: impl Iterator<Item = &'a Slot>) -> Vec<RequestOp> {
        let of_slot = |slot| [keys.record(slot), keys.own(slot), keys.born(slot)];
        let all = [keys.meta()].into_iter().chain(slots.flat_map(of_slot));
        all.map(RequestOp::get).collect()
    }

    /// One transaction that only reads: as of one revision, and confirmed by a majority.
    async fn read(call: &Call<'_>, keys: &Keys, gets: Vec<RequestOp>) -> Result<Self, Failure> {
        let txn = TxnRequest { success: gets, ..TxnRequest::default() };
        Ok(Self::of(keys, call.transact(RequestEffect::Reads, &txn).await?))
    }

    /// What the reads within a transaction have found.
    pub(super) fn of(keys: &Keys, answer: TxnResponse) -> Self {
        let mut snapshot = Self::default();
        for response in answer.responses {
            if let Some(OperationResponse::ResponseRange(found)) = response.response {
                found.kvs.into_iter().for_each(|kv| snapshot.note(keys, kv));
            }
        }
        snapshot
    }

    fn note(&mut self, keys: &Keys, kv: KeyValue) {
        let KeyValue { key, mod_revision: revision, value: text } = kv;
        match keys.place(&key) {
            Some(KeyTarget::Meta) => self.meta = Some((revision, text)),
            Some(KeyTarget::Record(slot)) => self.note_cell(slot).record = Some((revision, text)),
            Some(KeyTarget::Own(slot)) => self.note_cell(slot).is_held = true,
            Some(KeyTarget::Born(slot)) => self.note_cell(slot).born = revision,
            Some(KeyTarget::Claim) => {
                let slot = std::str::from_utf8(&text).ok().and_then(keys::slot);
                self.claim = Some(ServedClaim { revision, slot });
            }
            // Somebody else's key under our prefix is none of our business.
            None => {}
        }
    }

    fn note_cell(&mut self, slot: Slot) -> &mut Cell {
        self.cells.entry(slot).or_default()
    }

    /// The claim that was asked for, if it was served.
    pub(super) const fn served_claim(&self) -> Option<&ServedClaim> {
        self.claim.as_ref()
    }

    /// What was found of a slot.
    pub(super) fn cell(&self, slot: &Slot) -> Option<&Cell> {
        self.cells.get(slot)
    }

    /// Every slot that was found.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.cells.iter().map(|(slot, cell)| cell.entry(slot.clone())).collect()
    }

    /// Meta and every slot that was found.
    pub(super) fn look(&self, keys: &Keys) -> Result<Look, Failure> {
        let meta = self.meta.as_ref().map(|(revision, text)| {
            let value = parse_meta(text, format_args!("etcdctl del {}", keys.meta()))?;
            Ok(Versioned { version: version(*revision), value })
        });
        let meta = meta.transpose().map_err(|(kind, why)| Failure::Refused(kind, why))?;
        Ok(Look { meta, entries: self.entries(), ..Look::default() })
    }

    /// Meta and these slots, also those that were never used.
    pub(super) fn look_at<'a>(
        &self,
        keys: &Keys,
        slots: impl Iterator<Item = &'a Slot>,
    ) -> Result<Look, Failure> {
        let entry = |slot: &Slot| match self.cells.get(slot) {
            Some(cell) => cell.entry(slot.clone()),
            None => Entry::unused(slot.clone()),
        };
        Ok(Look { entries: slots.map(entry).collect(), ..self.look(keys)? })
    }
}

fn group_gets(keys: &Keys, group: Group) -> [RequestOp; 3] {
    let keys_only = |prefix| RangeRequest { keys_only: true, ..RangeRequest::prefix(prefix) };
    [
        RangeRequest::prefix(keys.records(group)).into(),
        keys_only(keys.owns(group)).into(),
        keys_only(keys.borns(group)).into(),
    ]
}

impl Cell {
    /// The text of the record.
    pub(super) fn text(&self) -> Option<&[u8]> {
        self.record.as_ref().map(|(_, text)| &text[..])
    }

    pub(super) fn version(&self) -> Version {
        match &self.record {
            Some((revision, _)) => version(*revision),
            None if self.born == 0 => Version(0),
            None => Version(version(self.born).0 | NO_RECORD),
        }
    }

    pub(super) fn found(&self) -> Found {
        // Presence alone is a trace of use too.
        Found::of(self.text(), self.born != 0 || self.is_held)
    }

    fn entry(&self, slot: Slot) -> Entry {
        let presence = match self.is_held {
            // Asking each lease for its rest would cost a request for every holder.
            true => Presence::Held { expires_in: None },
            false => Presence::Free,
        };
        Entry { slot, version: self.version(), found: self.found(), presence }
    }
}

/// What a version that was read says of the keys of a slot.
pub(super) fn revisions(version: Version) -> Revisions {
    match version.0 {
        0 => Revisions::Unused,
        marker if marker & NO_RECORD != 0 => Revisions::Marker(revision(marker & !NO_RECORD)),
        record => Revisions::Record(revision(record)),
    }
}

/// The version of all that a successful transaction has written.
pub(super) fn written(answer: &TxnResponse) -> Version {
    version(answer.header.map_or(0, |header| header.revision))
}

/// A revision of etcd as a version; etcd's are not negative.
fn version(revision: i64) -> Version {
    Version(u64::try_from(revision).unwrap_or(0))
}

/// A number as a revision of etcd. One that etcd cannot have given equals none that it has.
pub(super) fn revision(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
