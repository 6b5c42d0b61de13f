//! The model: what can happen next, and what must be true always.

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::node;
use crate::state::{Note, Request, State};
use crate::store;
use crate::variant::{Calamity, Scope, Variant};

/// What must be true always.
pub(crate) const STAMPED_ONCE: &str = "no time is stamped by two tenures";
pub(crate) const RANGES_APART: &str = "the times of a tenure lie all before or all after another's";
pub(crate) const TOKENS_RISE: &str = "tokens rise";

/// Anything that anybody may do or that may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Claims the worker, or repeats the claim.
    Claim {
        node: usize,
        now: u64,
    },
    Extend {
        node: usize,
        now: u64,
    },
    Release {
        node: usize,
    },
    Stamp {
        node: usize,
    },
    Crash {
        node: usize,
    },
    /// A request arrives. If it stays under way it may arrive again; the reply is heard or lost.
    ///
    /// A reply that is late needs no step of its own: what its receiver does meanwhile is its own
    /// affair and may as well have been done before.
    Arrive {
        request: Request,
        stays: bool,
        heard: bool,
    },
    /// A request never arrives.
    Vanish {
        request: Request,
    },
    Expire,
    /// Time goes by, where clocks agree.
    Tick,
    Copy,
    Strike,
    /// Meta is created anew.
    Recreate,
    Repair {
        now: u64,
    },
}

impl Model for Scope {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(if self.calamity.clocks_agree() { 1 } else { 0 })]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for node in 0..state.nodes.len() {
            self.node_actions(state, node, actions);
        }
        for request in state.network.iter().copied() {
            for stays in [false, true] {
                actions.push(Action::Arrive { request, stays, heard: false });
                if request.has_reply() {
                    actions.push(Action::Arrive { request, stays, heard: true });
                }
            }
            actions.push(Action::Vanish { request });
        }
        if store::may_expire(state) {
            actions.push(Action::Expire);
        }
        self.calamity_actions(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        next.note = Note::Nothing;
        self.apply(&mut next, action)?;
        next.tidy(self.is_loose());
        (next.network.len() <= self.requests).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(STAMPED_ONCE, |_: &Self, state: &State| {
                pairs(state).all(|(one, other)| one & other == 0)
            }),
            Property::always(RANGES_APART, |_: &Self, state: &State| {
                pairs(state).all(|(one, other)| is_before(one, other) || is_before(other, one))
            }),
            Property::always(TOKENS_RISE, |_: &Self, state: &State| !state.token_repeated),
        ];
        if self.variant == Variant::Correct {
            properties.extend(self.reached());
        }
        properties
    }
}

impl Scope {
    fn node_actions(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        let this = &state.nodes[node];
        // Whoever claims first is called the first node.
        let named = node == 0 || !state.stints.is_empty();
        let clocks = self.clocks(state);
        if this.using.is_some() && !this.lost {
            actions.extend(clocks.map(|now| Action::Extend { node, now }));
        } else if named {
            actions.extend(clocks.map(|now| Action::Claim { node, now }));
        }
        if this.using.is_some() {
            actions.push(Action::Stamp { node });
            actions.push(Action::Release { node });
        }
        if this.using.is_some() || this.claim.is_some() {
            actions.push(Action::Crash { node });
        }
    }

    fn calamity_actions(&self, state: &State, actions: &mut Vec<Action>) {
        if self.calamity == Calamity::None {
            return;
        }
        if state.clock < self.clock_max {
            actions.push(Action::Tick);
        }
        let copies = self.calamity == Calamity::Rollback;
        // Only the latest copy would matter, so there is one.
        let is_first = !state.store.struck && state.store.copy.is_none();
        if copies && is_first && state.store.cell.is_some() {
            actions.push(Action::Copy);
        }
        if !state.store.struck && state.store.cell.is_some() {
            actions.push(Action::Strike);
        }
        if state.store.meta.is_none() {
            actions.push(Action::Recreate);
        }
        if self.calamity == Calamity::LostRecord && state.store.struck {
            let seen = match self.variant {
                Variant::MendedByAnOldClock => 1,
                _ => state.clock,
            };
            actions.extend((seen..=state.clock).map(|now| Action::Repair { now }));
        }
    }

    fn apply(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Claim { node, now } => node::claim(self, state, node, now)?,
            Action::Extend { node, now } => node::extend(self, state, node, now)?,
            Action::Release { node } => node::release(self, state, node)?,
            Action::Stamp { node } => node::stamp(self, state, node)?,
            Action::Crash { node } => node::end(state, node),
            Action::Arrive { request, stays, heard } => {
                if !stays {
                    state.network.remove(&request);
                }
                self.arrive(state, request, heard);
            }
            Action::Vanish { request } => {
                state.network.remove(&request);
            }
            Action::Expire => store::expire(self, state),
            Action::Tick => state.clock += 1,
            Action::Copy => store::copy(state),
            Action::Strike => store::strike(self, state),
            Action::Recreate => store::quarantine(self, state),
            Action::Repair { now } => node::repair(state, now)?,
        }
        Some(())
    }

    fn arrive(&self, state: &mut State, request: Request, heard: bool) {
        let Some(reply) = store::execute(self, state, request) else { return };
        if heard {
            for node in 0..state.nodes.len() {
                node::hear(state, node, request, reply);
            }
        }
    }

    /// Whether requests are carried out whatever version and nonce they name.
    fn is_loose(&self) -> bool {
        matches!(self.variant, Variant::TakeIfFree | Variant::ExtendWithoutToken)
    }

    /// What a clock may show now.
    fn clocks(&self, state: &State) -> std::ops::RangeInclusive<u64> {
        match self.calamity.clocks_agree() {
            true => state.clock..=state.clock,
            false => 1..=self.clock_max,
        }
    }

    /// What the search must come across, or it shows nothing.
    fn reached(&self) -> Vec<Property<Self>> {
        let mut reached = vec![
            Property::sometimes("stamped after a takeover", |_: &Self, state: &State| {
                pairs(state).any(|(one, other)| one != 0 && other != 0)
            }),
            Property::sometimes("a claim was repeated", |_: &Self, state: &State| {
                state.note == Note::Repeated
            }),
        ];
        if self.calamity == Calamity::None {
            reached.push(Property::sometimes(
                "a stale holder stamps beside a new one",
                |_: &Self, state: &State| state.note == Note::StampedWhileStale,
            ));
            reached.push(Property::sometimes(
                "a holder holds on after a lapse",
                |_: &Self, state: &State| state.note == Note::Reattached,
            ));
        } else {
            reached.push(Property::sometimes(
                "the worker is taken after the calamity",
                |_: &Self, state: &State| state.note == Note::TakenAfterCalamity,
            ));
        }
        reached
    }
}

/// Searches everything, and fails unless all is as it must be.
pub(crate) fn holds(scope: Scope) {
    let checker = scope.checker().threads(2).spawn_bfs().join();
    report(&scope, &checker);
    assert!(checker.is_done(), "the search did not end");
    checker.assert_properties();
}

/// Searches for a counterexample to one property, and fails unless there is one.
#[expect(clippy::print_stdout, reason = "how it fails is for whoever runs the test")]
pub(crate) fn is_caught(scope: Scope, property: &'static str) {
    let wanted = HasDiscoveries::AnyOf([property].into());
    let checker = scope.checker().threads(2).finish_when(wanted).spawn_bfs().join();
    report(&scope, &checker);
    let trace = checker.assert_any_discovery(property);
    println!("  by {:?}", trace.into_actions());
}

#[expect(clippy::print_stdout, reason = "how much was searched is for whoever runs the test")]
fn report(scope: &Scope, checker: &impl Checker<Scope>) {
    println!(
        "{:?} under {:?}: {} states, {} of them different, depth {}",
        scope.variant,
        scope.calamity,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth()
    );
}

/// What every two tenures stamped.
fn pairs(state: &State) -> impl Iterator<Item = (u64, u64)> {
    let stints = &state.stints;
    (0..stints.len()).flat_map(move |one| {
        (0..one).map(move |other| (stints[one].stamped, stints[other].stamped))
    })
}

/// Whether all ticks of the one are before all of the other.
fn is_before(one: u64, other: u64) -> bool {
    one == 0 || other == 0 || 63 - one.leading_zeros() < other.trailing_zeros()
}
