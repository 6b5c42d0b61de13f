//! What was read of a namespace, at one revision.

use std::collections::BTreeMap;

use etcd_client::{GetOptions, KeyValue, Txn, TxnOp, TxnOpResponse, TxnResponse};
use serde::Deserialize;

use super::failure::Failure;
use super::keys::{Keys, Place};
use super::remote::{Call, Nature};
use crate::error::ErrorKind;
use crate::nonce::Nonce;
use crate::record::{FORMAT, Meta, Record, Version, Versioned};
use crate::slot::{Group, Slot};
use crate::store::{Entry, Found, Presence};

/// Meta and slots as they were at one moment.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// Meta's version and text.
    meta: Option<Versioned<Vec<u8>>>,
    cells: BTreeMap<Slot, Cell>,
}

/// What was found of one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// The version of the record; 0 if there is none.
    pub(super) version: Version,
    /// The record, if it can be read.
    pub(super) record: Option<Record>,
    /// Whether somebody is present.
    pub(super) is_held: bool,
    /// The version of the marker; 0 if the slot was never used.
    pub(super) born: Version,
}

impl Sight {
    /// Looks at meta and one slot.
    pub(super) async fn of_slot(
        call: &Call<'_>,
        keys: &Keys,
        slot: &Slot,
    ) -> Result<Self, Failure> {
        let gets = [keys.meta(), keys.record(slot), keys.own(slot), keys.born(slot)];
        Self::read(call, keys, gets.map(|key| TxnOp::get(key, None))).await
    }

    /// Looks at meta and all slots of a kind.
    pub(super) async fn of_group(
        call: &Call<'_>,
        keys: &Keys,
        group: Group,
    ) -> Result<Self, Failure> {
        let all = || GetOptions::new().with_prefix();
        let gets = [
            TxnOp::get(keys.meta(), None),
            TxnOp::get(keys.records(group), Some(all())),
            TxnOp::get(keys.owns(group), Some(all().with_keys_only())),
            TxnOp::get(keys.borns(group), Some(all().with_keys_only())),
        ];
        Self::read(call, keys, gets).await
    }

    /// Looks at meta.
    pub(super) async fn of_meta(call: &Call<'_>, keys: &Keys) -> Result<Self, Failure> {
        Self::read(call, keys, [TxnOp::get(keys.meta(), None)]).await
    }

    /// One transaction that only reads: as of one revision, and confirmed by a majority.
    async fn read<const N: usize>(
        call: &Call<'_>,
        keys: &Keys,
        gets: [TxnOp; N],
    ) -> Result<Self, Failure> {
        let answer = call.transact(Nature::Reads, Txn::new().and_then(gets)).await?;
        let mut sight = Self::default();
        for response in answer.op_responses() {
            if let TxnOpResponse::Get(mut found) = response {
                found.take_kvs().into_iter().for_each(|kv| sight.note(keys, kv));
            }
        }
        Ok(sight)
    }

    fn note(&mut self, keys: &Keys, kv: KeyValue) {
        let version = version(kv.mod_revision());
        match keys.place(kv.key()) {
            Some(Place::Meta) => {
                let (_, value) = kv.into_key_value();
                self.meta = Some(Versioned { version, value });
            }
            Some(Place::Record(slot)) => {
                let cell = self.cells.entry(slot).or_default();
                cell.version = version;
                cell.record = serde_json::from_slice(kv.value()).ok();
            }
            Some(Place::Own(slot)) => self.cells.entry(slot).or_default().is_held = true,
            Some(Place::Born(slot)) => self.cells.entry(slot).or_default().born = version,
            // Somebody else's key under our prefix is none of our business.
            None => {}
        }
    }

    /// The version of meta, if it exists.
    pub(super) fn meta_version(&self) -> Option<Version> {
        self.meta.as_ref().map(|meta| meta.version)
    }

    /// Meta.
    pub(super) fn meta(&self, call: &Call<'_>) -> Result<Option<Versioned<Meta>>, crate::Error> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Some(Versioned { version, value }) = &self.meta else { return Ok(None) };
        // A newer format may have other fields, so its number is looked at first.
        match serde_json::from_slice::<Format>(value) {
            Ok(Format { format }) if format > FORMAT => {
                let why = format_args!("meta has format {format}, this version knows {FORMAT}");
                return Err(call.problem(ErrorKind::NewerFormat, why));
            }
            _ => {}
        }
        match serde_json::from_slice(value) {
            Ok(value) => Ok(Some(Versioned { version: *version, value })),
            Err(error) => Err(call.problem(ErrorKind::Corrupt, format_args!("meta: {error}"))),
        }
    }

    /// What was found of a slot.
    pub(super) fn cell(&self, slot: &Slot) -> Cell {
        self.cells.get(slot).cloned().unwrap_or_default()
    }

    /// The slot that carries a nonce.
    pub(super) fn carrier(&self, nonce: Nonce) -> Option<(&Slot, &Cell)> {
        let carries = |cell: &Cell| cell.record.as_ref().is_some_and(|r| r.nonce == Some(nonce));
        self.cells.iter().find(|(_, cell)| carries(cell))
    }

    /// Every slot that was found.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.cells.iter().map(|(slot, cell)| cell.entry(slot.clone())).collect()
    }
}

impl Cell {
    pub(super) fn found(&self) -> Found {
        match &self.record {
            Some(record) => Found::Known(record.clone()),
            // Presence alone is a trace of use too.
            None if self.version == Version(0) && self.born == Version(0) && !self.is_held => {
                Found::New
            }
            None => Found::Lost,
        }
    }

    fn entry(&self, slot: Slot) -> Entry {
        let presence = match self.is_held {
            // Asking each lease for its rest would cost a request for every holder.
            true => Presence::Held { expires_in: None },
            false => Presence::Free,
        };
        Entry { slot, version: self.version, found: self.found(), presence }
    }
}

/// The version of all that a successful transaction has written.
pub(super) fn written(answer: &TxnResponse) -> Version {
    version(answer.header().map_or(0, etcd_client::ResponseHeader::revision))
}

/// A revision of etcd as a version; etcd's are not negative.
fn version(revision: i64) -> Version {
    Version(u64::try_from(revision).unwrap_or(0))
}

/// A version as a revision of etcd. One that etcd cannot have given equals none that it has.
pub(super) fn revision(version: Version) -> i64 {
    i64::try_from(version.0).unwrap_or(i64::MAX)
}
