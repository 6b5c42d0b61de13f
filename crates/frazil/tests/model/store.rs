//! The store: it applies the production transitions with compare-and-swap, as the contract says.

use std::collections::BTreeMap;
use std::time::Duration;

use frazil_coord::internal::repair;
use frazil_coord::internal::rules::{self, RUN_AHEAD_MS, SlotAvailability};
use frazil_coord::internal::{Ask, Choice, Claim, Settling, Tenure};
use frazil_coord::{Found, History, Loss, Nonce, Record, Slot, Token, UnixMs, Version};

use crate::state::{Cell, MetaState, Note, Reply, Request, State, nonce};
use crate::variant::{Calamity, Scope, Variant};

/// The length of a tick: what a floor may be ahead of now is one tick.
const TICK_MS: u64 = RUN_AHEAD_MS;

const fn ms(ticks: u64) -> UnixMs {
    ticks * TICK_MS
}

/// As production turns times into ticks: both ends of a tenure by the same rounding.
const fn ticks(time: UnixMs) -> u64 {
    time / TICK_MS
}

/// Carries out a request; what is answered.
pub(crate) fn execute(scope: &Scope, state: &mut State, request: Request) -> Option<Reply> {
    match request {
        Request::Acquire { .. } => Some(acquire(scope, state, request)),
        Request::Extend { stint, tenure, now } => Some(extend(scope, state, stint, tenure, now)),
        Request::Release { stint, tenure, last } => {
            release(state, stint, tenure, last);
            None
        }
        Request::Repair { read, now } => {
            repair(scope, state, read, now);
            None
        }
    }
}

fn acquire(scope: &Scope, state: &mut State, request: Request) -> Reply {
    let Request::Acquire { stint, node, read, meta, now } = request else { return Reply::NotNow };
    if state.store.meta.map(|meta| meta.version) != Some(meta.version) {
        return Reply::NotNow;
    }
    let claim = claim(scope, stint, node, read, meta, now);
    let (version, found, present) = look(state);
    if let Found::Known(record) = &found {
        let by_name = scope.variant == Variant::ReacquireByName
            && record.nonce.is_some()
            && record.holder == claim.holder;
        if record.nonce == Some(claim.nonce) || by_name {
            return repeated(state, record);
        }
    }
    let compared = version == read || scope.variant == Variant::TakeIfFree;
    if present || !compared {
        return Reply::NotNow;
    }
    let mut record = match rules::acquire(&found, &claim, &history()) {
        Ok(record) => record,
        Err(SlotAvailability::Blocked { floor }) if scope.variant == Variant::StackedFloors => {
            // As if its floor were now.
            let claim = Claim { now: floor, ask: floor + ms(scope.window), ..claim.clone() };
            let Ok(record) = rules::acquire(&found, &claim, &history()) else {
                return Reply::NotNow;
            };
            record
        }
        Err(_) => return Reply::NotNow,
    };
    if scope.variant == Variant::TakeIfFree {
        record.token = Token(stint as u64 + 1);
    }
    state.token_repeated |= record.token <= state.highest;
    state.highest = state.highest.max(record.token);
    if state.store.struck {
        state.note = Note::TakenAfterCalamity;
    }
    write(state, record)
}

/// The answer to a claim whose nonce the record carries.
fn repeated(state: &mut State, record: &Record) -> Reply {
    state.note = Note::Repeated;
    held(record)
}

fn extend(scope: &Scope, state: &mut State, stint: usize, token: Token, now: u64) -> Reply {
    let (_, found, present) = look(state);
    let (Found::Known(record), Some(_)) = (found, state.store.meta) else {
        return Reply::Lost;
    };
    let mut tenure = tenure(stint, token);
    if scope.variant == Variant::ExtendWithoutToken {
        tenure.token = record.token;
        tenure.nonce = record.nonce.unwrap_or(tenure.nonce);
    }
    let ask = Ask {
        horizon: ms(now + scope.window),
        ttl: Duration::from_secs(1),
        now: ms(now),
        window_ms: ms(scope.window),
    };
    let extended: Result<Record, Loss> = rules::extend(&record, &tenure, &ask);
    let Ok(record) = extended else { return Reply::Lost };
    if !present {
        state.note = Note::Reattached;
    }
    write(state, record)
}

fn release(state: &mut State, stint: usize, token: Token, last: u64) {
    let (_, found, _) = look(state);
    let Found::Known(record) = found else { return };
    if let Ok(record) = rules::release(&record, &tenure(stint, token), ms(last)) {
        put(state, record, false);
    }
}

fn repair(scope: &Scope, state: &mut State, read: Version, now: u64) {
    let (version, _, present) = look(state);
    let Some(meta) = state.store.meta else { return };
    if version == read && !present {
        let record = repair::replacement(&claim(scope, 0, 0, read, meta, now));
        put(state, record, false);
    }
}

/// Presence ends.
pub(crate) fn expire(scope: &Scope, state: &mut State) {
    if scope.variant == Variant::HorizonInTheExpiringKey {
        state.store.cell = None;
    } else if let Some(cell) = &mut state.store.cell {
        cell.present = false;
    }
}

/// Whether presence may end now: at any moment.
pub(crate) fn may_expire(state: &State) -> bool {
    state.store.cell.as_ref().is_some_and(|cell| cell.present)
}

/// A snapshot is taken.
pub(crate) fn copy(state: &mut State) {
    state.store.copy.clone_from(&state.store.cell);
}

/// The calamity happens.
pub(crate) fn strike(scope: &Scope, state: &mut State) {
    let store = &mut state.store;
    store.struck = true;
    match scope.calamity {
        Calamity::None => {}
        Calamity::LostRecord => {
            if let Some(cell) = &mut store.cell {
                *cell = Cell { record: None, present: false, ..cell.clone() };
            }
        }
        Calamity::Wipe => {
            store.cell = None;
            store.meta = None;
        }
        Calamity::Rollback => {
            store.cell = store.copy.take();
            if scope.variant == Variant::RolledBack {
                return;
            }
            if let Some(record) = store.cell.as_mut().and_then(|cell| cell.record.as_mut())
                && scope.variant != Variant::QuarantinedOnly
            {
                record.nonce = None;
            }
            quarantine(scope, state);
        }
    }
}

/// Everybody starts above whatever may have been promised by now.
pub(crate) fn quarantine(scope: &Scope, state: &mut State) {
    let version = Version(state.store.meta.map_or(1, |meta| meta.version.0) + 1);
    state.store.meta = Some(MetaState { version, quarantine: state.clock + scope.window });
}

/// The slot as a list shows it: its version, what is known, whether somebody is present.
pub(crate) fn look(state: &State) -> (Version, Found, bool) {
    match &state.store.cell {
        None => (Version(0), Found::New, false),
        Some(cell) => {
            let found = cell.record.clone().map_or(Found::Lost, Found::Known);
            (cell.version, found, cell.present)
        }
    }
}

fn write(state: &mut State, mut record: Record) -> Reply {
    // For people to read only, and a state of its own for each value.
    record.renewed = 0;
    let reply = held(&record);
    put(state, record, true);
    reply
}

fn put(state: &mut State, record: Record, present: bool) {
    let version = state.next_version();
    state.store.cell = Some(Cell { version, record: Some(record), present });
}

const fn held(record: &Record) -> Reply {
    Reply::Held { token: record.token, floor: ticks(record.floor), horizon: ticks(record.horizon) }
}

/// Nothing that was acknowledged is lost here without anybody's knowing.
fn history() -> History {
    History::default()
}

fn claim(
    scope: &Scope,
    stint: usize,
    node: usize,
    read: Version,
    meta: MetaState,
    now: u64,
) -> Claim {
    Claim {
        choice: Choice::This(Slot::worker(0), read),
        nonce: nonce(stint),
        holder: if node == 0 { "a".into() } else { "b".into() },
        info: BTreeMap::new(),
        ttl: Duration::from_secs(1),
        now: ms(now),
        ask: ms(now + scope.window),
        window_ms: ms(scope.window),
        quarantine: ms(meta.quarantine),
        meta: meta.version,
    }
}

fn tenure(stint: usize, token: Token) -> Tenure {
    Tenure {
        slot: Slot::worker(0),
        token,
        nonce: nonce(stint),
        holder: String::new(),
        info: BTreeMap::new(),
        version: Version(0),
        floor: 0,
        horizon: 0,
        renewed: 0,
        usable: 0,
        expires: None,
        store_now: None,
        incarnation: Nonce::from_bits(0),
        settling: Settling::default(),
    }
}
