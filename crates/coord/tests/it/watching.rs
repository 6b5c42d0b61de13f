//! Watches that cannot be had, or end: how often they are asked for anew.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use frazil_conformance::{Chances, Faulty};
use frazil_coord::MemoryStore;
use frazil_coord::internal::Watching;
use frazil_coord::{Group, Watched};
use futures_util::FutureExt as _;

/// The longest pause between two attempts.
const PAUSE_MAX_MS: u64 = 30_000;

/// A store of which no watch can be had.
fn deaf() -> Faulty {
    let chances = Chances { request_lost: 1000, ..Chances::default() };
    Faulty::new(Arc::new(MemoryStore::new()), chances, 1)
}

/// The boot times, in milliseconds, at which a watch was asked for.
async fn asked_at(watching: &mut Watching, store: &Faulty, times: Range<u64>) -> Vec<u64> {
    let mut asked = Vec::new();
    for now in times.step_by(500) {
        let before = store.faults().requests_lost;
        watching.begin(store, Duration::from_millis(now)).await;
        if store.faults().requests_lost > before {
            asked.push(now);
        }
    }
    asked
}

#[tokio::test]
async fn a_watch_that_cannot_be_had_is_asked_for_less_and_less_often() {
    let mut watching = Watching::new(Watched::Group(Group::Workers));
    let asked = asked_at(&mut watching, &deaf(), 0..600_000).await;
    assert_eq!(asked[..5], [0, 500, 1500, 3500, 7500]);
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= PAUSE_MAX_MS), "{asked:?}");
    assert!(asked.len() > 20, "it is given up after {asked:?}");
}

#[tokio::test]
async fn a_watch_that_told_of_something_is_renewed_soon_when_it_ends() {
    let mut watching = Watching::new(Watched::Group(Group::Workers));
    asked_at(&mut watching, &deaf(), 0..600_000).await;
    let memory = MemoryStore::new();
    watching.begin(&memory, Duration::from_millis(700_000)).await;
    memory.wipe();
    watching.changed().await;
    // Its watches end with the store.
    drop(memory);
    assert_eq!(watching.changed().now_or_never(), None);
    let start = 700_000 + PAUSE_MAX_MS;
    let asked = asked_at(&mut watching, &deaf(), start..start + 5000).await;
    assert_eq!(asked, [start, start + 500, start + 1500, start + 3500]);
}
