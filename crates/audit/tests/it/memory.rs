//! What a set takes for the IDs of users, and for the worst that somebody can send.

use frazil_audit::IdSet;
use frazil_id::{Id, Layout, Parts};

/// The promise for IDs that are close together.
const DENSE_BYTES_PER_ID: f64 = 0.1;
/// The promise for everything else.
const WORST_BYTES_PER_ID: f64 = 130.0;

fn filled(layout: &Layout, ids: impl Iterator<Item = Parts>) -> f64 {
    let mut seen = IdSet::new(layout);
    for parts in ids {
        seen.insert(layout.encode(parts).unwrap()).unwrap();
    }
    seen.memory_bytes() as f64 / seen.len() as f64
}

/// Numbers that look random, the same each time.
fn scattered() -> impl Iterator<Item = u64> {
    (1_u64..).map(|at| {
        let mixed = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(17)
    })
}

#[test]
fn ids_that_are_close_take_a_tenth_of_a_byte() {
    for (text, per_tick) in [
        ("frazil", 4096),
        ("frazil", 100),
        ("discord", 4096),
        ("sonyflake", 256),
        ("mastodon", 65_536),
        ("js53", 256),
        ("time:20 sequence:44 @0", 1_000_000),
        ("time:30 sequence:2 worker:8 @0", 4),
        ("time:41 @0", 1),
    ] {
        let layout: Layout = text.parse().unwrap();
        let ticks = 2_000_000 / per_tick;
        let ids = (0..ticks).flat_map(|tick| {
            (0..per_tick).map(move |sequence| Parts { tick: 700 + tick, worker: 0, sequence })
        });
        let bytes = filled(&layout, ids);
        assert!(bytes <= DENSE_BYTES_PER_ID, "{text} {per_tick}: {bytes}");
    }
}

#[test]
fn eight_workers_with_a_hundred_a_millisecond_take_a_tenth_of_a_byte() {
    let ids = (0..4_000).flat_map(|tick| {
        (0..8)
            .flat_map(move |worker| (0..100).map(move |sequence| Parts { tick, worker, sequence }))
    });
    let bytes = filled(&Layout::FRAZIL, ids);
    assert!(bytes <= DENSE_BYTES_PER_ID, "{bytes}");
}

#[test]
fn what_came_out_of_order_is_folded_once_the_gaps_are_closed() {
    let layout = Layout::FRAZIL;
    let ids = |seed: usize| {
        let mut ids: Vec<u64> = (0..200 * 4096).collect();
        let mut random = scattered().skip(seed);
        for at in (1..ids.len()).rev() {
            let other = random.next().unwrap() % (at as u64 + 1);
            ids.swap(at, usize::try_from(other).unwrap());
        }
        ids.into_iter().map(|at| Parts { tick: at / 4096, worker: 5, sequence: at % 4096 })
    };
    let mut seen = IdSet::new(&layout);
    for round in 0..3 {
        for parts in ids(round) {
            let parts = Parts { tick: parts.tick + 1000 * round as u64, ..parts };
            assert_eq!(seen.insert(layout.encode(parts).unwrap()), Ok(true));
        }
    }
    // The slots of the first round are those of the later ones.
    let slots = 200 * (65 * 8 + 64);
    assert!(seen.memory_bytes() < 2 * slots + 40_000, "{}", seen.memory_bytes());
}

#[test]
fn numbers_at_random_take_no_more_than_is_promised() {
    for text in
        ["frazil", "sonyflake", "mastodon", "time:20 sequence:44 @0", "time:20 worker:44 @0"]
    {
        let layout: Layout = text.parse().unwrap();
        for count in [3_000, 60_000, 300_000] {
            let mut seen = IdSet::new(&layout);
            for bits in scattered().take(count) {
                seen.insert(Id::from_u64(bits >> (64 - layout.bits()))).unwrap();
            }
            let bytes = seen.memory_bytes() as f64 / seen.len() as f64;
            assert!(bytes <= WORST_BYTES_PER_ID, "{text} {count}: {bytes}");
        }
    }
}

/// The steps at which a set takes its next form, each hit again and again.
#[test]
fn ids_that_are_chosen_to_cost_take_no_more_than_is_promised() {
    let layout = Layout::FRAZIL;
    for cells_per_page in [1, 2, 5, 64, 65] {
        for ids_per_cell in [1, 2, 3, 31, 32, 40] {
            let ids = (0..100).flat_map(|page| {
                (0..cells_per_page).flat_map(move |cell| {
                    (0..ids_per_cell).map(move |at| Parts {
                        tick: page * 1024 + cell * 3,
                        worker: page % 7,
                        sequence: at * 2,
                    })
                })
            });
            let bytes = filled(&layout, ids);
            // The table of recent pages and the first slots count among so few IDs.
            let few = 20_000.0 / (100 * cells_per_page * ids_per_cell) as f64;
            assert!(bytes <= WORST_BYTES_PER_ID + few, "{cells_per_page} {ids_per_cell}: {bytes}");
        }
    }
}
