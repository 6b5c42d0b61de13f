use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::nonce::Nonce;
use crate::record::Version;
use crate::record::{FORMAT, Meta, Record, Token, UnixMs, Versioned};

const NOW: UnixMs = 1_000_000;

fn entry(worker: u32, holder: &str, renewed: UnixMs, horizon: UnixMs) -> Entry {
    let record = Record {
        token: Token(renewed),
        nonce: None,
        holder: holder.into(),
        floor: 0,
        horizon,
        renewed,
        expires: None,
        released: false,
        info: BTreeMap::new(),
    };
    let (slot, found) = (Slot::worker(worker), Found::Known(record));
    Entry { slot, version: Version(1), found, presence: Presence::Free }
}

fn chosen(entries: &[Entry]) -> Option<u32> {
    let meta = Meta {
        format: FORMAT,
        layout: "x".into(),
        last_worker: 9,
        window_ms: 600_000,
        ..Meta::blank(Nonce::from_bits(1), 0)
    };
    let claim = Claim::to_judge(&Versioned { version: Version(1), value: meta }, NOW);
    last_worker_of("web1", entries, &claim)
}

#[test]
fn a_walk_visits_every_worker_once() {
    for (size, high) in [(1, 0), (2, 7), (6, 1), (30, 5), (997, 996), (1024, 511), (1024, 1023)] {
        let nonce = Nonce::from_bits((high << 64) | 12_345);
        let wanted = Wanted { first: 5, last: 4 + size, favourite: None, nonce, now: NOW };
        let (start, step) = walk(&wanted);
        let size = u64::from(size);
        let visited: BTreeSet<u64> = (0..size).map(|index| (start + step * index) % size).collect();
        assert_eq!(visited.len() as u64, size, "steps of {step} from {start}");
    }
}

#[test]
fn the_last_worker_of_a_name_is_the_one_renewed_last() {
    let entries = [entry(3, "web1", 10, 20), entry(5, "web1", 30, 40), entry(7, "web2", 50, 60)];
    assert_eq!(chosen(&entries), Some(5));
    assert_eq!(chosen(&entries[2..]), None);
    assert_eq!(chosen(&[]), None);
}

#[test]
fn a_worker_that_is_held_or_whose_floor_has_not_passed_is_not_asked_for() {
    let mut held = entry(5, "web1", 30, 40);
    held.presence = Presence::Held { expires_in: None };
    let (older, ahead) = (entry(3, "web1", 10, 20), entry(8, "web1", 60, NOW + 1));
    assert_eq!(chosen(&[older, held, ahead.clone()]), Some(3));
    assert_eq!(chosen(&[ahead]), None);
}
