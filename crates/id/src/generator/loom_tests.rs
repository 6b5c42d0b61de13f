//! Every interleaving of two or three threads on one generator, and broken variants that the
//! search must catch.
//!
//! Run with `make loom`.

use std::panic::{self, AssertUnwindSafe};
use std::vec;
use std::vec::Vec;

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::clock::{ManualClock, Moment};
use crate::options::Rollback;

/// Two IDs a tick: every path meets an overflow soon.
fn layout() -> Layout {
    Layout::new(&[("time", 20), ("worker", 2), ("sequence", 1)], 0, 1)
        .expect("a small layout works")
}

/// Stands still, so that the search spends its time on the generator's own words.
#[derive(Debug)]
struct Still(u64);

impl Clock for Still {
    fn tick(&self) -> Option<u64> {
        Some(self.0)
    }

    fn read(&self) -> Reading {
        Reading::At(Moment { tick: self.0, left: Duration::from_millis(1) })
    }
}

fn generator<C: Clock>(clock: C, options: Options) -> Arc<Generator<C>> {
    let options = Options { least_lifetime: Duration::ZERO, ..options };
    Arc::new(Generator::new(&layout(), 1, clock, options).expect("the options fit the layout"))
}

fn leased(floor: u64, horizon: u64) -> Options {
    Options { floor: Some(floor), horizon: Some(horizon), ..Options::default() }
}

fn tick(id: Id) -> u64 {
    id.parts(&layout()).expect("issued by this layout").tick
}

/// Searches three threads with up to three forced switches, beyond which the number of
/// interleavings explodes and, by experience, no new kind of failure appears.
fn search(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Runs `work` on its own thread with the generator.
fn spawn<C: Clock + 'static, T: 'static>(
    ids: &Arc<Generator<C>>,
    work: impl FnOnce(&Generator<C>) -> T + 'static,
) -> thread::JoinHandle<T> {
    let ids = Arc::clone(ids);
    thread::spawn(move || work(&ids))
}

fn tries<C: Clock>(n: usize) -> impl FnOnce(&Generator<C>) -> Vec<Id> {
    move |ids| (0..n).filter_map(|_| ids.try_next().ok()).collect()
}

fn all_of(threads: Vec<thread::JoinHandle<Vec<Id>>>) -> Vec<Vec<Id>> {
    threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
}

fn assert_unique_and_increasing(of_threads: &[Vec<Id>]) {
    for ids in of_threads {
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    }
    let mut ids: Vec<Id> = of_threads.concat();
    ids.sort();
    let issued = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), issued, "an ID was issued twice: {of_threads:?}");
}

#[test]
fn threads_that_issue_side_by_side_never_share_an_id() {
    loom::model(|| {
        let ids = generator(Still(10), leased(9, 100));
        let threads = vec![spawn(&ids, tries(2)), spawn(&ids, tries(2))];
        let issued = all_of(threads);
        assert_unique_and_increasing(&issued);
        // The tick has two; a thread that raced past its end loses a ticket, not an ID.
        assert_eq!(issued.concat().len(), 2);
    });
}

#[test]
fn a_batch_beside_single_ids_shares_none_and_passes_no_limit() {
    loom::model(|| {
        let ids =
            generator(Still(10), Options { max_ahead: Duration::from_millis(1), ..leased(9, 100) });
        let batch = spawn(&ids, |ids| match ids.try_batch(3) {
            Ok(batch) => batch.iter().collect(),
            Err(_) => Vec::new(),
        });
        let issued = all_of(vec![batch, spawn(&ids, tries(2))]);
        assert_unique_and_increasing(&issued);
        assert!(issued.concat().into_iter().all(|id| (10..=11).contains(&tick(id))));
    });
}

#[test]
fn a_raised_horizon_is_used_and_never_passed() {
    loom::model(|| {
        let ids =
            generator(Still(10), Options { max_ahead: Duration::from_millis(9), ..leased(9, 10) });
        // More than the four that the raised horizon allows.
        let issuing = vec![spawn(&ids, tries(5))];
        ids.raise_horizon(11);
        // A late acknowledgement of an older horizon changes nothing.
        ids.raise_horizon(7);
        assert_eq!(ids.horizon(), 11);
        let mut issued = all_of(issuing);
        issued.push(tries(5)(&ids));
        assert_unique_and_increasing(&issued);
        let ticks: Vec<u64> = issued.concat().into_iter().map(tick).collect();
        assert_eq!(ticks, [10, 10, 11, 11]);
    });
}

#[test]
fn a_clock_that_steps_back_lowers_and_repeats_nothing() {
    for rollback in [Rollback::Wait, Rollback::Refuse, Rollback::Ride] {
        loom::model(move || {
            let clock = ManualClock::new(&layout(), 10);
            let ids = generator(clock, Options { rollback, ..leased(5, 100) });
            let issuing = spawn(&ids, tries(2));
            ids.clock.step_to(7);
            let here = tries(2)(&ids);
            let issued = [here, issuing.join().expect("no thread panics")];
            assert_unique_and_increasing(&issued);
            assert!(issued.concat().into_iter().all(|id| (7..=10).contains(&tick(id))));
        });
    }
}

#[test]
fn the_tick_a_close_returns_is_final() {
    search(|| {
        // Three tries for two IDs: threads race past the horizon.
        let ids =
            generator(Still(10), Options { max_ahead: Duration::from_millis(9), ..leased(9, 10) });
        let issuing = vec![spawn(&ids, tries(2)), spawn(&ids, tries(1))];
        let closed = ids.close().expect("closed once");
        let issued = all_of(issuing);
        assert_unique_and_increasing(&issued);
        assert!(issued.concat().into_iter().all(|id| tick(id) <= closed.last_tick));
        assert!(closed.last_tick <= 10);
        assert_eq!(ids.try_next(), Err(NotReady::Closed));
        assert_eq!(ids.close(), None);
    });
}

#[test]
fn racing_past_the_end_of_time_neither_wraps_nor_closes() {
    loom::model(|| {
        let layout = Layout::new(&[("time", 3), ("worker", 1), ("sequence", 60)], 0, 1)
            .expect("64 bits work");
        let options =
            Options { floor: Some(6), least_lifetime: Duration::ZERO, ..Options::default() };
        let ids =
            Arc::new(Generator::new(&layout, 1, Still(7), options).expect("63 ticket bits work"));
        ids.state.0.store((8 << 60) - 2, Ordering::Relaxed);
        let issued = all_of(vec![spawn(&ids, tries(1)), spawn(&ids, tries(1))]);
        assert_eq!(issued.concat(), [Id::from_u64(u64::MAX)]);
        assert_eq!(ids.try_next(), Err(NotReady::TimeExhausted { last_tick: 7 }));
    });
}

/// Broken variants: the same checks, on issuing that looks right and is not.
mod broken {
    use loom::sync::atomic::AtomicBool;

    use super::*;

    fn caught(model: impl Fn() + Sync + Send + 'static) {
        let searched = panic::catch_unwind(AssertUnwindSafe(|| loom::model(model)));
        assert!(searched.is_err(), "the search did not catch the broken variant");
    }

    #[test]
    fn a_load_and_a_store_instead_of_one_change_are_caught() {
        caught(|| {
            let state = Arc::new(AtomicU64::new(0));
            let issue = |state: Arc<AtomicU64>| {
                move || {
                    let ticket = state.load(Ordering::SeqCst) + 1;
                    state.store(ticket, Ordering::SeqCst);
                    vec![Id::from_u64(ticket)]
                }
            };
            let threads = (0..2).map(|_| thread::spawn(issue(Arc::clone(&state)))).collect();
            assert_unique_and_increasing(&all_of(threads));
        });
    }

    #[test]
    fn a_closed_flag_beside_the_word_is_caught() {
        caught(|| {
            let state = Arc::new((AtomicU64::new(0), AtomicBool::new(false)));
            let shared = Arc::clone(&state);
            let issuing = thread::spawn(move || {
                (!shared.1.load(Ordering::SeqCst))
                    .then(|| shared.0.fetch_add(1, Ordering::SeqCst) + 1)
            });
            state.1.store(true, Ordering::SeqCst);
            let last = state.0.load(Ordering::SeqCst);
            let issued = issuing.join().expect("no thread panics");
            assert!(issued.is_none_or(|ticket| ticket <= last), "issued after the close");
        });
    }

    #[test]
    fn a_grant_that_is_not_tested_again_after_the_addition_is_caught() {
        caught(|| {
            let (state, end) = (Arc::new(AtomicU64::new(0)), 2);
            let issue = |state: Arc<AtomicU64>| {
                move || {
                    let fits = state.load(Ordering::SeqCst) + 1 < end;
                    fits.then(|| state.fetch_add(1, Ordering::SeqCst) + 1)
                }
            };
            let threads: Vec<_> =
                (0..2).map(|_| thread::spawn(issue(Arc::clone(&state)))).collect();
            for thread in threads {
                let ticket = thread.join().expect("no thread panics");
                assert!(ticket.is_none_or(|ticket| ticket < end), "issued past the end");
            }
        });
    }

    #[test]
    fn a_closed_state_that_an_addition_can_reach_is_caught() {
        caught(|| {
            // All ones: the next addition wraps to ticket 0.
            let state = Arc::new(AtomicU64::new(1));
            let shared = Arc::clone(&state);
            let issuing = thread::spawn(move || {
                let open = shared.load(Ordering::SeqCst) != u64::MAX;
                open.then(|| shared.fetch_add(1, Ordering::SeqCst).wrapping_add(1))
            });
            let last = state.swap(u64::MAX, Ordering::SeqCst);
            let issued = issuing.join().expect("no thread panics");
            assert!(issued.is_none_or(|ticket| ticket > 0 && ticket <= last), "wrapped around");
        });
    }
}
