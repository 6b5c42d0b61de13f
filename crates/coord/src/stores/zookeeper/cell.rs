//! A slot as its three nodes show it, and the meta record.
//!
//! The version of a record is the transaction that last wrote it (`mzxid`): unlike a node's own
//! count of writes, which begins again when the node is deleted and created, it never repeats.
//! A multi can compare only those counts. So a version is compared when it is read, and the write
//! then names the count that was read with it, and the count of the slot's mark under `born`,
//! which rises whenever the record is created: a record that was deleted and created in between
//! is noticed too.

use serde::Deserialize;

use super::failure::Failure;
use super::paths::Paths;
use super::session::{Deadline, Get, Got, Node, Session};
use crate::error::ErrorKind;
use crate::nonce::Nonce;
use crate::record::{FORMAT, Meta, Record, Version, Versioned};
use crate::slot::Slot;
use crate::store::{Entry, Found, Presence};

/// One slot as it was read.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) slot: Slot,
    pub(super) record: Option<Node>,
    pub(super) born: Option<Node>,
    pub(super) own: Option<Node>,
}

/// How many nodes a slot has.
const NODES: usize = 3;

impl Cell {
    /// A slot that was never used.
    pub(super) fn new(slot: Slot) -> Self {
        Self { slot, record: None, born: None, own: None }
    }

    pub(super) fn gets(paths: &Paths, slot: &Slot) -> [Get; NODES] {
        [paths.record(slot), paths.born(slot), paths.own(slot)].map(Get::Data)
    }

    pub(super) fn from_got(slot: Slot, got: &mut impl Iterator<Item = Got>) -> Self {
        let mut next = || match got.next() {
            Some(Got::Data(node)) => node,
            Some(Got::Children(_)) | None => None,
        };
        let (record, born, own) = (next(), next(), next());
        Self { slot, record, born, own }
    }

    pub(super) fn version(&self) -> Version {
        self.record.as_ref().map_or(Version(0), version_of)
    }

    pub(super) fn found(&self) -> Found {
        match (&self.record, &self.born) {
            (Some(node), _) => serde_json::from_slice(&node.data).map_or(Found::Lost, Found::Known),
            (None, Some(_)) => Found::Lost,
            (None, None) => Found::New,
        }
    }

    /// The record, if there is one and it can be read.
    pub(super) fn known(&self) -> Option<Record> {
        match self.found() {
            Found::Known(record) => Some(record),
            Found::New | Found::Lost => None,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.own.is_some()
    }

    /// Whether the presence is that of this nonce in this session.
    pub(super) fn is_own(&self, nonce: Nonce, session: i64) -> bool {
        self.own.as_ref().is_some_and(|own| {
            own.stat.ephemeral_owner == session && own.data == nonce.to_string().as_bytes()
        })
    }

    pub(super) fn into_entry(self) -> Entry {
        let presence = match self.own {
            // Until when is known to the servers only.
            Some(_) => Presence::Held { expires_in: None },
            None => Presence::Free,
        };
        Entry { version: self.version(), found: self.found(), presence, slot: self.slot }
    }
}

/// Meta and some slots at one moment.
pub(super) async fn look(
    session: &Session,
    paths: &Paths,
    slots: &[Slot],
    fresh: bool,
    deadline: Deadline,
) -> Result<(Option<Node>, Vec<Cell>), Failure> {
    let mut gets = vec![Get::Data(paths.meta())];
    gets.extend(slots.iter().flat_map(|slot| Cell::gets(paths, slot)));
    let mut got = session.read(&gets, fresh, deadline).await?.into_iter();
    let meta = match got.next() {
        Some(Got::Data(meta)) => meta,
        Some(Got::Children(_)) | None => None,
    };
    let cells = slots.iter().map(|slot| Cell::from_got(slot.clone(), &mut got));
    Ok((meta, cells.collect()))
}

pub(super) fn version_of(node: &Node) -> Version {
    version_of_stat(&node.stat)
}

pub(super) fn version_of_stat(stat: &zookeeper_client::Stat) -> Version {
    Version(u64::try_from(stat.mzxid).unwrap_or(0))
}

/// Meta out of its node.
pub(super) fn parse_meta(node: &Node) -> Result<Versioned<Meta>, Failure> {
    /// What every format has.
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let corrupt = |error| Failure::Definite(ErrorKind::Corrupt, format!("meta: {error}"));
    let Format { format } = serde_json::from_slice(&node.data).map_err(corrupt)?;
    if format > FORMAT {
        let why = format!("meta has format {format}, this version knows {FORMAT}");
        return Err(Failure::Definite(ErrorKind::NewerFormat, why));
    }
    let value = serde_json::from_slice(&node.data).map_err(corrupt)?;
    Ok(Versioned { version: version_of(node), value })
}
