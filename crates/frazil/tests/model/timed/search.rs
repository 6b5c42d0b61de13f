//! The model: what can happen next, and what must be true always.

use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model, Path, Property};

use super::process::{Delivery, Process};
use super::scope::{Event, Omitted, Scope};
use super::state::{START, State};

/// What must be true always.
const USED_ONCE: &str = "no time of a worker is used twice";

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// A node does what is due.
    Step(usize, Delivery),
    /// Time goes on.
    Advance,
    /// A process that was frozen goes on.
    Thaw(usize),
    /// A node that was cut off reaches the store again.
    Heal(usize),
    Happen(Event),
}

/// Everything that may happen by chance.
const EVENTS: [Event; 12] = [
    Event::Start(1),
    Event::Crash(0),
    Event::Crash(1),
    Event::Release(0),
    Event::Release(1),
    Event::Freeze(0),
    Event::Cut(0),
    Event::OperatorRelease,
    Event::OperatorQuarantine,
    Event::Sync,
    Event::Lose,
    Event::Wipe,
];

impl Model for Scope {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.twice.is_some() {
            return;
        }
        let due = |process: &Process| process.is_due(state.now);
        let due: Vec<usize> =
            (0..2).filter(|node| state.nodes[*node].as_ref().is_some_and(due)).collect();
        for node in &due {
            self.steps(state, *node, actions);
        }
        if !due.is_empty() {
            return;
        }
        if state.now < START + self.end * 1000 {
            actions.push(Action::Advance);
        }
        for (node, process) in state.nodes.iter().enumerate() {
            let Some(process) = process else { continue };
            actions.extend(process.is_frozen.then_some(Action::Thaw(node)));
            actions.extend(process.is_cut.then_some(Action::Heal(node)));
        }
        let may = |event: &Event| state.may(self, *event);
        actions.extend(EVENTS.into_iter().filter(may).map(Action::Happen));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Step(node, delivery) => next.step(self, node, delivery),
            Action::Advance => next.advance(self),
            Action::Thaw(node) => next.thaw(self, node),
            Action::Heal(node) => {
                let process = next.nodes[node].as_mut()?;
                process.is_cut = false;
            }
            Action::Happen(event) => next.happen(self, event),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties =
            vec![Property::always(USED_ONCE, |_: &Self, state: &State| state.twice.is_none())];
        if self.omitted == Omitted::Nothing {
            properties.extend(self.reached());
        }
        properties
    }
}

impl Scope {
    fn steps(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        actions.push(Action::Step(node, Delivery::AtOnce));
        let asks = state.nodes[node].as_ref().is_some_and(Process::asks);
        if asks && state.may_be_slow(self) {
            let slow = Delivery::slow(self).iter().copied();
            actions.extend(slow.map(|delivery| Action::Step(node, delivery)));
        }
    }

    /// What the search must come across, or it shows nothing.
    fn reached(&self) -> Vec<Property<Self>> {
        let mut reached =
            vec![Property::sometimes("both nodes use the worker", |_: &Self, state: &State| {
                state.has_used == [true, true]
            })];
        if self.lose.times > 0 {
            reached.push(Property::sometimes(
                "something acknowledged is lost",
                |_: &Self, state: &State| state.lost_acknowledged,
            ));
        }
        if self.lose.times > 0 || self.wipe.times > 0 {
            reached.push(Property::sometimes(
                "the worker is taken over after the last calamity",
                |scope: &Self, state: &State| {
                    let is_last = |event| !state.is_left_of(scope, event);
                    is_last(Event::Lose) && is_last(Event::Wipe) && state.taken_after
                },
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
    if let Some(path) = checker.discovery(USED_ONCE) {
        panic!("a time was used twice: {}", told(path));
    }
    for property in scope.reached() {
        let is_reached = checker.discovery(property.name).is_some();
        assert!(is_reached, "the search shows nothing, because never: {}", property.name);
    }
}

/// Searches with a rule left out, and fails unless a time is used twice.
#[expect(clippy::print_stdout, reason = "how it fails is for whoever runs the test")]
pub(crate) fn is_caught_without(omitted: Omitted, scope: Scope) {
    let scope = Scope { omitted, ..scope };
    let wanted = HasDiscoveries::AnyOf([USED_ONCE].into());
    let checker = scope.checker().threads(2).finish_when(wanted).spawn_bfs().join();
    report(&scope, &checker);
    println!("  by {}", told(checker.assert_any_discovery(USED_ONCE)));
}

/// What happened, each with the second when it did.
fn told(path: Path<State, Action>) -> String {
    let steps = path.into_vec().into_iter().filter_map(|(state, action)| {
        let action = action.filter(|action| *action != Action::Advance)?;
        let seconds = Duration::from_millis(state.now - START).as_secs_f32();
        Some(format!("{seconds} s: {action:?}"))
    });
    steps.collect::<Vec<_>>().join(", ")
}

#[expect(clippy::print_stdout, reason = "how much was searched is for whoever runs the test")]
fn report(scope: &Scope, checker: &impl Checker<Scope>) {
    println!(
        "without {:?}: {} states, {} of them different, depth {}",
        scope.omitted,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth()
    );
}
