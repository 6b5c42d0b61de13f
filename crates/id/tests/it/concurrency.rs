//! Real threads, and an exact check that no ID was issued twice.

use std::sync::Barrier;
use std::thread;

use frazil_id::{Clock, Generator, Id, Layout, Options, SystemClock, TickerClock};

/// IDs of one test: two tests with single IDs and one with batches make 72 million.
const IDS: usize = 24_000_000;
const THREADS: usize = 4;

/// Sequence of 16 bits, so that the cap (65 million a second) does not slow the test down, and one
/// worker bit, so that every ID is `tick << 17 | worker << 16 | sequence`.
fn layout() -> Layout {
    Layout::new(&[("time", 41), ("worker", 1), ("sequence", 16)], 1_704_067_200_000, 1).unwrap()
}

fn generator<C: Clock>(clock: C) -> Generator<C> {
    Generator::new(&layout(), 1, clock, Options::default()).unwrap()
}

/// Runs `issue` on every thread at once, and returns what each issued.
fn on_threads(issue: impl Fn(&mut Vec<u64>) + Sync) -> Vec<Vec<u64>> {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut ids = Vec::with_capacity(IDS / THREADS);
                    start.wait();
                    issue(&mut ids);
                    ids
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Each thread's IDs increase, and no two of all are equal.
fn find_fault(of_threads: &[Vec<u64>]) -> Option<String> {
    for ids in of_threads {
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Some(format!("{} was followed by {}", pair[0], pair[1]));
        }
    }
    let mut all = of_threads.concat();
    all.sort_unstable();
    let pair = all.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(format!("{} was issued twice", pair[0]))
}

fn assert_unique(of_threads: &[Vec<u64>], least: usize) {
    let issued: usize = of_threads.iter().map(Vec::len).sum();
    assert!(issued >= least, "{issued} IDs are too few to say anything");
    assert_eq!(find_fault(of_threads), None);
    let threads_with_ids = of_threads.iter().filter(|ids| !ids.is_empty()).count();
    assert_eq!(threads_with_ids, THREADS);
}

#[test]
fn single_ids_on_the_ticker_clock_are_unique() {
    let ids = generator(TickerClock::start(&layout()).unwrap());
    let issued = on_threads(|mine| {
        mine.extend((0..IDS / THREADS).map(|_| ids.next().unwrap().to_u64()));
    });
    assert_unique(&issued, IDS);
}

#[test]
fn single_ids_on_the_system_clock_are_unique() {
    let ids = generator(SystemClock::new(&layout()));
    let issued = on_threads(|mine| {
        mine.extend((0..IDS / THREADS).map(|_| ids.next().unwrap().to_u64()));
    });
    assert_unique(&issued, IDS);
}

#[test]
fn batches_beside_single_ids_are_unique() {
    let ids = generator(SystemClock::new(&layout()));
    let issued = on_threads(|mine| {
        for round in 0.. {
            if mine.len() >= IDS / THREADS {
                break;
            }
            mine.extend(ids.batch(1 + round % 1000).unwrap().iter().map(Id::to_u64));
            mine.push(ids.next().unwrap().to_u64());
        }
    });
    assert_unique(&issued, IDS);
}

#[test]
fn no_id_is_issued_after_a_close_or_above_its_tick() {
    // How often threads and close meet is for the scheduler to say.
    let (mut raced, mut rounds) = (0, 0);
    while raced < 100 {
        assert!(rounds < 10_000, "in only {raced} rounds a thread issued before the close");
        rounds += 1;
        let ids = generator(SystemClock::new(&layout()));
        ids.next().unwrap();
        let start = Barrier::new(THREADS);
        let (closed, issued) = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS - 1)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        std::iter::from_fn(|| ids.next().ok()).map(Id::to_u64).collect()
                    })
                })
                .collect();
            start.wait();
            // Later in each round, so that the close meets the threads at different points.
            (0..rounds % 200).for_each(|_| {
                ids.next().unwrap();
            });
            let closed = ids.close().unwrap();
            let issued: Vec<Vec<u64>> =
                threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            (closed, issued)
        });
        assert_eq!(find_fault(&issued), None);
        let highest = issued.concat().into_iter().max().unwrap_or(0);
        assert!(highest >> 17 <= closed.last_tick);
        raced += usize::from(highest > 0);
    }
}

/// The check itself: it must see a duplicate and a step back.
#[test]
fn the_check_finds_what_it_looks_for() {
    assert_eq!(find_fault(&[vec![1, 3], vec![2, 4]]), None);
    assert!(find_fault(&[vec![1, 3], vec![2, 3]]).unwrap().contains("twice"));
    assert!(find_fault(&[vec![2, 1], vec![]]).unwrap().contains("followed"));
}
