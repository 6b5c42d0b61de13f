//! A set of IDs answers as a set of numbers does, whatever the layout and the order.

use std::collections::{HashMap, HashSet, VecDeque};

use frazil_audit::IdSet;
use frazil_id::{Id, Layout, Parts, Run};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// What is compared with the standard library's set.
trait Seen {
    fn insert(&mut self, id: Id) -> bool;

    fn insert_run(&mut self, run: &Run) -> u64 {
        let ids = (0..run.count).map(|at| Id::from_u64(run.first.to_u64() + at * run.stride));
        ids.filter(|id| !self.insert(*id)).count() as u64
    }
}

impl Seen for IdSet {
    fn insert(&mut self, id: Id) -> bool {
        Self::insert(self, id).unwrap()
    }

    fn insert_run(&mut self, run: &Run) -> u64 {
        Self::insert_run(self, run).unwrap()
    }
}

#[derive(Clone, Debug)]
enum Act {
    One(Parts),
    Run(Parts, u64),
    /// The ID with which the act of this many acts ago began.
    Again(usize),
}

/// Layouts of every kind: wide and narrow sequences, no worker, the worker below the sequence.
fn layouts() -> impl Strategy<Value = Layout> {
    let bits = (1_u32..=41, 0_u32..=24, 0_u32..=24, any::<bool>());
    bits.prop_filter_map("the fields fit", |(time, worker, sequence, worker_first)| {
        let mut fields = vec![("time", time), ("worker", worker), ("sequence", sequence)];
        if !worker_first {
            fields.swap(1, 2);
        }
        fields.retain(|field| field.1 > 0);
        Layout::new(&fields, 0, 1).ok()
    })
}

/// Close together, so that IDs meet: few workers, few ticks, and sequences near each other.
fn acts(layout: Layout) -> impl Strategy<Value = Vec<Act>> {
    let parts = (0_u64..4, 0_u64..3, 0_u64..3, 0_u64..300);
    let parts = parts.prop_map(move |(tick, worker, part, at)| Parts {
        tick: (layout.last_tick() / 2 * part).saturating_add(tick).min(layout.last_tick()),
        worker: worker.wrapping_mul(0x9e37_79b9_7f4a_7c15) & layout.last_worker(),
        sequence: (layout.last_sequence() / 2 * part)
            .saturating_add(at)
            .min(layout.last_sequence()),
    });
    let act = prop_oneof![
        4 => parts.clone().prop_map(Act::One),
        2 => (parts, 1_u64..6000).prop_map(|(parts, count)| Act::Run(parts, count)),
        1 => (0_usize..50).prop_map(Act::Again),
    ];
    vec(act, 1..200)
}

fn cases() -> impl Strategy<Value = (Layout, Vec<Act>)> {
    layouts().prop_flat_map(|layout| (Just(layout), acts(layout)))
}

/// Every answer is the one that a set of numbers gives; returns that set.
fn compare(
    layout: &Layout,
    acts: &[Act],
    seen: &mut impl Seen,
) -> Result<HashSet<u64>, TestCaseError> {
    let mut model = HashSet::new();
    let mut history: Vec<Id> = Vec::new();
    let stride = layout.encode(Parts { tick: 0, worker: 0, sequence: 1 }).map_or(1, Id::to_u64);
    for act in acts {
        let first = match act {
            Act::One(parts) | Act::Run(parts, _) => layout.encode(*parts).unwrap(),
            Act::Again(ago) => match history.iter().rev().nth(*ago) {
                Some(id) => *id,
                None => continue,
            },
        };
        history.push(first);
        if let Act::Run(parts, count) = act {
            let count = (*count).min(layout.last_sequence() - parts.sequence + 1);
            let new = (0..count).filter(|at| model.insert(first.to_u64() + at * stride)).count();
            let repeated = seen.insert_run(&Run { first, count, stride });
            prop_assert_eq!(repeated, count - new as u64, "{} {:?}", layout, act);
        } else {
            let new = model.insert(first.to_u64());
            prop_assert_eq!(seen.insert(first), new, "{} {:?}", layout, act);
        }
    }
    Ok(model)
}

fn usual() -> ProptestConfig {
    ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(usual())]

    #[test]
    fn the_set_answers_as_a_set_of_numbers((layout, acts) in cases()) {
        let mut seen = IdSet::new(&layout);
        let model = compare(&layout, &acts, &mut seen)?;
        prop_assert_eq!(seen.len(), model.len() as u64);
        for bits in &model {
            prop_assert!(seen.contains(Id::from_u64(*bits)), "{} {}", layout, bits);
            for near in [bits.wrapping_sub(1), bits.wrapping_add(1)] {
                prop_assert_eq!(seen.contains(Id::from_u64(near)), model.contains(&near));
            }
        }
    }

    #[test]
    fn the_census_counts_what_a_set_of_numbers_has((layout, acts) in cases()) {
        let mut seen = IdSet::new(&layout);
        let model = compare(&layout, &acts, &mut seen)?;
        let mut workers = HashMap::new();
        let mut ticks = HashMap::new();
        for bits in model {
            let parts = Id::from_u64(bits).parts(&layout).unwrap();
            *workers.entry(parts.worker).or_insert(0_u64) += 1;
            *ticks.entry((parts.worker, parts.tick)).or_insert(0_u64) += 1;
        }
        let census = seen.census();
        let counted: HashMap<u64, u64> =
            census.by_worker.iter().map(|worker| (worker.worker, worker.ids)).collect();
        prop_assert_eq!(census.workers, workers.len() as u64);
        prop_assert_eq!(counted, workers);
        prop_assert_eq!(census.busiest.map(|busiest| busiest.ids), ticks.values().max().copied());
        let busiest = census.busiest.map(|busiest| ticks[&(busiest.worker, busiest.tick)]);
        prop_assert_eq!(busiest, ticks.values().max().copied());
    }

    #[test]
    fn any_number_is_taken_or_told_to_be_outside(
        layout in layouts(), ids in vec(any::<u64>(), 1..300),
    ) {
        let mut seen = IdSet::new(&layout);
        let mut model = HashSet::new();
        for bits in ids.iter().flat_map(|bits| [*bits, bits >> (64 - layout.bits()), *bits]) {
            let id = Id::from_u64(bits);
            let answer = seen.insert(id);
            prop_assert_eq!(answer.is_err(), id.parts(&layout).is_err());
            if let Ok(new) = answer {
                prop_assert_eq!(new, model.insert(bits), "{} {}", layout, bits);
            }
        }
        prop_assert_eq!(seen.len(), model.len() as u64);
    }

    #[test]
    fn a_run_of_any_stride_is_its_ids(
        first in 0_u64..10_000, count in 0_u64..3_000, stride in 0_u64..5, layout in layouts(),
    ) {
        let (mut by_run, mut one_by_one) = (IdSet::new(&layout), IdSet::new(&layout));
        let ids = (0..count).map(|at| Id::from_u64(first + at * stride));
        let fits = ids.clone().all(|id| id.parts(&layout).is_ok());
        let repeated = by_run.insert_run(&Run { first: Id::from_u64(first), count, stride });
        prop_assert_eq!(repeated.is_ok(), fits);
        if fits {
            let again = ids.clone().filter(|id| !one_by_one.insert(*id).unwrap()).count();
            prop_assert_eq!(repeated.unwrap(), again as u64);
            prop_assert!(ids.clone().all(|id| by_run.contains(id)));
        }
        prop_assert_eq!(by_run.len(), one_by_one.len());
    }
}

#[test]
fn a_run_that_leaves_the_layout_or_the_numbers_adds_nothing_wrong() {
    let layout = Layout::FRAZIL;
    let mut seen = IdSet::new(&layout);
    let last = Id::from_u64(u64::MAX >> 1);
    for (count, stride) in [(2, 1), (u64::MAX, 1), (u64::MAX, u64::MAX), (3, 1 << 62)] {
        assert!(seen.insert_run(&Run { first: last, count, stride }).is_err());
    }
    assert!(seen.is_empty());
    assert_eq!(seen.insert_run(&Run { first: last, count: 0, stride: 1 }), Ok(0));
    assert_eq!(seen.insert_run(&Run { first: last, count: u64::MAX, stride: 0 }), Ok(u64::MAX - 1));
    // A layout of all 64 bits has no number outside: a run ends where the numbers do.
    let mut whole = IdSet::new(&"time:40 worker:12 sequence:12 @0".parse().unwrap());
    let first = Id::from_u64(u64::MAX - 9);
    assert_eq!(whole.insert_run(&Run { first, count: u64::MAX, stride: 1 }), Ok(0));
    assert_eq!(whole.len(), 10);
}

#[test]
fn a_duplicate_is_found_however_many_ids_lie_between() {
    let layout = Layout::FRAZIL;
    let id = |worker, at: u64| {
        let parts = Parts { tick: 5_000 + at / 700, worker, sequence: at % 700 };
        layout.encode(parts).unwrap()
    };
    let mut seen = IdSet::new(&layout);
    for at in 0..500_000 {
        for worker in [0, 3, 4, 1023] {
            assert_eq!(seen.insert(id(worker, at)), Ok(true));
        }
        if at % 50_000 == 1 {
            assert_eq!(seen.insert(id(3, 0)), Ok(false), "early, after {at}");
            assert_eq!(seen.insert(id(4, at / 2)), Ok(false), "in the middle, after {at}");
            assert_eq!(seen.insert(id(1023, at)), Ok(false), "late, after {at}");
        }
    }
    assert_eq!(seen.len(), 2_000_000);
}

/// Sets as they must not be. Each must fail the comparison.
mod broken {
    use super::*;

    /// Forgets what it saw some thousand IDs ago.
    #[derive(Default)]
    struct Forgetful {
        recent: VecDeque<u64>,
        known: HashSet<u64>,
    }

    impl Seen for Forgetful {
        fn insert(&mut self, id: Id) -> bool {
            if !self.known.insert(id.to_u64()) {
                return false;
            }
            self.recent.push_back(id.to_u64());
            if self.recent.len() > 2000
                && let Some(oldest) = self.recent.pop_front()
            {
                self.known.remove(&oldest);
            }
            true
        }
    }

    /// Takes the highest ID of a worker's tick for the end of a run without gaps.
    #[derive(Default)]
    struct OnlyHighest {
        highest: HashMap<u64, u64>,
    }

    impl Seen for OnlyHighest {
        fn insert(&mut self, id: Id) -> bool {
            let (tick, id) = (id.to_u64() >> 12, id.to_u64());
            let new = self.highest.get(&tick).is_none_or(|highest| *highest < id);
            if new {
                self.highest.insert(tick, id);
            }
            new
        }
    }

    fn is_caught<S: Seen>(set: impl Fn() -> S) -> bool {
        let mut runner =
            TestRunner::new(ProptestConfig { cases: 64, max_shrink_iters: 0, ..usual() });
        let outcome = runner.run(&acts(Layout::FRAZIL), |acts| {
            compare(&Layout::FRAZIL, &acts, &mut set()).map(|_| ())
        });
        outcome.is_err()
    }

    #[test]
    fn a_set_that_forgets_is_caught() {
        assert!(is_caught(Forgetful::default));
    }

    #[test]
    fn a_set_that_knows_only_the_highest_is_caught() {
        assert!(is_caught(OnlyHighest::default));
    }

    #[test]
    fn the_set_itself_is_not() {
        assert!(!is_caught(|| IdSet::new(&Layout::FRAZIL)));
    }
}
