//! A slot as its three nodes show it, and the meta record.
//!
//! The version of a record is the transaction that last wrote it (`mzxid`): unlike a node's own
//! count of writes, which begins again when the node is deleted and created, it never repeats.
//! A multi can compare only those counts. So a version is compared when it is read, with the nonce
//! in the record because versions too begin again when all servers are wiped, and the write then
//! names the count that was read with it, and the count of the slot's mark under `born`,
//! which rises whenever the record is created: a record that was deleted and created in between
//! is noticed too.

use frazil_zookeeper::{SessionId, Stat};

use super::paths::Paths;
use super::session::{Get, Node, Read};
use crate::error::Failure;
use crate::nonce::Nonce;
use crate::record::{Meta, Version, Versioned, parse_meta};
use crate::slot::Slot;
use crate::store::{Entry, Found, Presence};

/// Meta and some slots as they were read.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// What is written over it is written in the session in which it was read.
    pub(super) session: SessionId,
    pub(super) meta: Option<Node>,
    pub(super) cells: Vec<Cell>,
}

/// One slot as it was read.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) slot: Slot,
    pub(super) record: Option<Node>,
    pub(super) born: Option<Node>,
    pub(super) own: Option<Node>,
}

impl Snapshot {
    /// What to read for it.
    pub(super) fn gets(paths: &Paths, slots: &[Slot]) -> impl Iterator<Item = Get> {
        let nodes = |slot| [paths.record(slot), paths.born(slot), paths.own(slot)];
        std::iter::once(paths.meta()).chain(slots.iter().flat_map(nodes)).map(Get::Data)
    }

    pub(super) fn from_read(slots: &[Slot], mut read: Read) -> Self {
        let (session, meta) = (read.session, read.node());
        let mut cell = |slot: &Slot| {
            let (record, born, own) = (read.node(), read.node(), read.node());
            Cell { slot: slot.clone(), record, born, own }
        };
        Self { session, meta, cells: slots.iter().map(&mut cell).collect() }
    }

    /// The version of meta, if there is one that can be read.
    pub(super) fn meta_version(&self) -> Option<Version> {
        meta_of(self.meta.as_ref()?, "").ok().map(|meta| meta.version)
    }
}

impl Cell {
    /// A slot that was never used.
    pub(super) const fn new(slot: Slot) -> Self {
        Self { slot, record: None, born: None, own: None }
    }

    pub(super) fn version(&self) -> Version {
        self.record.as_ref().map_or(Version(0), |node| version_of(&node.stat))
    }

    pub(super) fn found(&self) -> Found {
        Found::of(self.record.as_ref().map(|node| &node.data[..]), self.born.is_some())
    }

    pub(super) fn entry(&self) -> Entry {
        let presence = match self.own {
            // Until when is known to the servers only.
            Some(_) => Presence::Held { expires_in: None },
            None => Presence::Free,
        };
        let (slot, version) = (self.slot.clone(), self.version());
        Entry { slot, version, found: self.found(), presence }
    }
}

/// The version of a record.
pub(super) fn version_of(stat: &Stat) -> Version {
    Version(u64::try_from(stat.mzxid).unwrap_or(0))
}

/// The version of meta, mixed with its incarnation: a claim names nothing else of meta, and
/// transactions are counted from the beginning once all servers were wiped.
pub(super) fn version_of_meta(stat: &Stat, incarnation: Nonce) -> Version {
    let (high, low) = (incarnation.bits() >> 64, incarnation.bits() & u128::from(u64::MAX));
    let folded = u64::try_from(high ^ low).unwrap_or(0);
    Version(version_of(stat).0 ^ folded)
}

/// Meta out of its node. `removal`: what removes it by hand.
pub(super) fn meta_of(node: &Node, removal: &str) -> Result<Versioned<Meta>, Failure> {
    let value: Meta = parse_meta(&node.data, removal)?;
    Ok(Versioned { version: version_of_meta(&node.stat, value.incarnation), value })
}
