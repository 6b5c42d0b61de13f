//! The nodes: what a keeper decides and what a lane stamps.

use std::time::Duration;

use frazil_coord::{Found, Token};
use frazil_id::{Ask, Bounds, Moment, Reading, Rollback, Rules, step};

use crate::state::{Node, Note, Pending, Reply, Request, State, Stint, nonce};
use crate::store::look;
use crate::variant::{Scope, Variant};

/// A ticket is a tick here, and stamps follow the clock.
const RULES: Rules = Rules {
    sequence_bits: 0,
    last_tick: 60,
    tick: Duration::from_millis(1),
    max_ahead: 0,
    rollback: Rollback::Ride,
    rollback_tolerance: Duration::ZERO,
    spread: 0,
    salt: 0,
};

/// Reads the slot and claims it; a claim whose outcome is unknown is repeated as it was.
pub(crate) fn claim(scope: &Scope, state: &mut State, node: usize, now: u64) -> Option<()> {
    let meta = state.store.meta?;
    // The keeper waits for the quarantine, a tick of running ahead aside.
    if meta.quarantine > now + 1 {
        return None;
    }
    let pending = match state.nodes[node].claim {
        Some(pending) => pending,
        None => {
            let (read, _, present) = look(state);
            if present || state.stints.len() == scope.stints {
                return None;
            }
            state.stints.push(Stint::default());
            Pending { stint: state.stints.len() - 1, read }
        }
    };
    state.nodes[node].claim = Some(pending);
    let Pending { stint, read } = pending;
    send(state, Request::Acquire { stint, node, read, meta, now });
    Some(())
}

/// Asks for a higher horizon.
pub(crate) fn extend(scope: &Scope, state: &mut State, node: usize, now: u64) -> Option<()> {
    let stint = state.nodes[node].using?;
    let tenure = known(state, stint);
    send(state, Request::Extend { stint, tenure, now });
    if scope.variant == Variant::UseBeforeAcknowledgement {
        let asked = now + scope.window;
        let stint = &mut state.stints[stint];
        stint.horizon = stint.horizon.max(asked);
    }
    Some(())
}

/// Closes and then releases. Whatever the answer is, the tenure is over.
pub(crate) fn release(scope: &Scope, state: &mut State, node: usize) -> Option<()> {
    let stint = state.nodes[node].using?;
    let (tenure, last) = (known(state, stint), state.stints[stint].last);
    match scope.variant {
        // Times are still used for a while, but nothing is asked for any more.
        Variant::ReleaseBeforeClose => state.nodes[node].lost = true,
        Variant::ResumedAfterRelease => {}
        _ => end(state, node),
    }
    send(state, Request::Release { stint, tenure, last });
    Some(())
}

/// Gives a lost record a successor, counted from when the loss was seen.
pub(crate) fn repair(state: &mut State, now: u64) -> Option<()> {
    let (read, found, present) = look(state);
    if found != Found::Lost || present {
        return None;
    }
    send(state, Request::Repair { read, now });
    Some(())
}

/// The process ends, and with it all it knew.
pub(crate) fn end(state: &mut State, node: usize) {
    if let Some(stint) = state.nodes[node].using {
        close(state, stint);
    }
    state.nodes[node] = Node::default();
}

/// Hears the reply to a request.
pub(crate) fn hear(state: &mut State, node: usize, request: Request, reply: Reply) {
    let claimed = state.nodes[node].claim.map(|claim| claim.stint);
    match request {
        Request::Acquire { stint, .. } if claimed == Some(stint) => {
            state.nodes[node].claim = None;
            open(state, node, stint, reply);
        }
        Request::Extend { stint, .. } if state.nodes[node].using == Some(stint) => match reply {
            Reply::Held { horizon, .. } => {
                let known = state.stints[stint];
                let horizon = horizon.max(known.horizon);
                state.stints[stint] = Stint { horizon, ..known };
            }
            Reply::NotNow | Reply::Lost => state.nodes[node].lost = true,
        },
        _ => {}
    }
}

/// Closes what was used before and starts above all of it.
fn open(state: &mut State, node: usize, stint: usize, reply: Reply) {
    let Reply::Held { token, floor, horizon } = reply else { return };
    let last = state.nodes[node].using.map_or(0, |old| state.stints[old].last);
    if let Some(old) = state.nodes[node].using.replace(stint) {
        close(state, old);
    }
    state.nodes[node].lost = false;
    let floor = floor.max(last);
    state.stints[stint] = Stint { token, floor, horizon, ..Stint::default() };
}

/// Uses the next time that production allows, at a reading of the clock that allows it.
///
/// No time is passed over: whatever can be reached by stamping fewer can be reached by this too.
pub(crate) fn stamp(scope: &Scope, state: &mut State, node: usize) -> Option<()> {
    let index = state.nodes[node].using?;
    let stint = state.stints[index];
    let bounds = Bounds {
        floor: if scope.variant == Variant::StartAtWallClock { 0 } else { stint.floor },
        horizon: match scope.variant {
            Variant::NoHorizon => scope.clock_max + scope.window,
            _ => stint.horizon,
        },
    };
    let tick = stint.last.max(bounds.floor) + 1;
    let reading = Reading::At(Moment { tick, left: Duration::ZERO });
    let granted = step(&RULES, bounds, stint.last, reading, Ask::exactly(1)).ok()?;
    let tick = granted.first;
    state.stints[index].last = tick;
    state.stints[index].stamped |= 1 << tick;
    if other_holds(state, index) {
        state.note = Note::StampedWhileStale;
    }
    Some(())
}

/// Whether the slot is another's, who has stamped.
fn other_holds(state: &State, index: usize) -> bool {
    let record = state.store.cell.as_ref().and_then(|cell| cell.record.as_ref());
    let holder = record.and_then(|record| record.nonce);
    (0..state.stints.len()).any(|other| {
        other != index && holder == Some(nonce(other)) && state.stints[other].stamped != 0
    })
}

fn send(state: &mut State, request: Request) {
    state.network.insert(request);
}

/// Nothing is stamped any more; what was stays known.
fn close(state: &mut State, stint: usize) {
    let stamped = state.stints[stint].stamped;
    state.stints[stint] = Stint { stamped, ..Stint::default() };
}

fn known(state: &State, stint: usize) -> Token {
    state.stints[stint].token
}
