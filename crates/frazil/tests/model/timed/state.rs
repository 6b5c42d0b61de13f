//! Everything that is the case at a moment.

use frazil_coord::internal::{FORMAT, Leasing};
use frazil_coord::{Meta, Nonce, Record, Token, UnixMs};

use super::process::{Delivery, LAYOUT, Process};
use super::scope::{COUNTED, Event, SLOW, Scope};
use super::store::{ModelStore, StoreState};

/// When everything begins.
pub(super) const START: UnixMs = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) now: u64,
    pub(super) store: StoreState,
    pub(super) nodes: [Option<Process>; 2],
    /// How often each kind of event happened.
    happened: [u8; COUNTED],
    /// The times of the one worker that were used, and may be used again if the rules are wrong:
    /// first and last, in any order.
    used: Vec<(UnixMs, UnixMs)>,
    /// A time that was used twice.
    pub(crate) twice: Option<UnixMs>,
    /// Which nodes have used times.
    pub(crate) has_used: [bool; 2],
    /// Whether something was lost that had been acknowledged.
    pub(crate) lost_acknowledged: bool,
    /// Whether the worker was used for the first time after the last calamity.
    pub(crate) taken_after: bool,
}

impl State {
    pub(super) fn new(scope: &Scope) -> Self {
        let window_ms = scope.heartbeats.iter().max().map_or(0, |heartbeat| heartbeat * 10_000);
        let meta = Meta {
            format: FORMAT,
            incarnation: Nonce::from_bits(0),
            layout: LAYOUT.into(),
            first_worker: 0,
            last_worker: 0,
            window_ms,
            quarantine: 0,
            token_floor: Token::default(),
            created: START,
        };
        Self {
            now: START,
            store: StoreState::new(meta, START),
            nodes: [Some(Process::start(scope, 0, 0, START)), None],
            happened: [0; COUNTED],
            used: Vec::new(),
            twice: None,
            has_used: [false; 2],
            lost_acknowledged: false,
            taken_after: false,
        }
    }

    /// Whether an event may happen now, by its chance and by how things are.
    pub(super) fn may(&self, scope: &Scope, event: Event) -> bool {
        let is_up = |node: usize| self.nodes[node].is_some();
        let is_possible = match event {
            Event::Start(node) => !is_up(node),
            Event::Crash(node) => is_up(node),
            Event::Release(node) => self.nodes[node].as_ref().is_some_and(|process| {
                process.tenure().is_some() && process.asks() && !process.is_frozen
            }),
            Event::Freeze(node) => self.nodes[node].as_ref().is_some_and(|p| !p.is_frozen),
            Event::Cut(node) => self.nodes[node].as_ref().is_some_and(|p| !p.is_cut),
            Event::OperatorRelease => self
                .store
                .memory
                .cells
                .values()
                .any(|cell| self.store.is_free(cell) && cell.record.nonce.is_some()),
            Event::OperatorQuarantine => self.store.memory.meta.is_some(),
            Event::Sync | Event::Lose => !self.store.is_synced(),
            Event::Wipe => !self.store.memory.cells.is_empty(),
        };
        let chance = scope.chance(event);
        is_possible && self.is_left(event.index(), chance.times) && self.is_within(chance)
    }

    /// Whether a request may be slow now.
    pub(super) fn may_be_slow(&self, scope: &Scope) -> bool {
        self.is_left(SLOW, scope.slow.times) && self.is_within(scope.slow)
    }

    /// Whether an event may still happen some day.
    pub(super) fn is_left_of(&self, scope: &Scope, event: Event) -> bool {
        self.is_left(event.index(), scope.chance(event).times)
    }

    fn is_left(&self, index: usize, times: u8) -> bool {
        self.happened[index] < times
    }

    fn is_within(&self, chance: super::scope::Chance) -> bool {
        let seconds = (self.now - START) / 1000;
        (chance.from..=chance.to).contains(&seconds)
    }

    /// Something happens.
    pub(super) fn happen(&mut self, scope: &Scope, event: Event) {
        self.happened[event.index()] += 1;
        match event {
            Event::Start(node) => {
                let birth = self.happened[event.index()];
                self.nodes[node] = Some(Process::start(scope, node, birth, self.now));
            }
            Event::Crash(node) => self.nodes[node] = None,
            Event::Release(node) => self.release(scope, node),
            Event::Freeze(node) => self.each(node, |process| process.is_frozen = true),
            Event::Cut(node) => self.each(node, |process| process.is_cut = true),
            Event::OperatorRelease => self.release_absent(scope),
            Event::OperatorQuarantine => self.quarantine(scope),
            Event::Sync => self.store.sync(),
            Event::Lose => {
                self.lost_acknowledged |= self.store.records_differ();
                self.taken_after = false;
                self.store.lose();
            }
            Event::Wipe => {
                self.taken_after = false;
                self.store.wipe();
            }
        }
    }

    fn each(&mut self, node: usize, change: impl FnOnce(&mut Process)) {
        if let Some(process) = &mut self.nodes[node] {
            change(process);
        }
    }

    /// A process closes its lane, releases, and ends.
    fn release(&mut self, scope: &Scope, node: usize) {
        let Some(process) = self.nodes[node].take() else { return };
        let Some(tenure) = process.tenure() else { return };
        if !process.is_cut {
            ModelStore::run(scope, &mut self.store, async |store| {
                // What is not released lapses by itself.
                let _ = store.release(tenure, process.last).await;
            });
        }
    }

    /// As `frazil store quarantine` ends the tenures of holders that are not there.
    fn release_absent(&mut self, scope: &Scope) {
        let free: Vec<_> = self
            .store
            .memory
            .cells
            .iter()
            .map(|(slot, cell)| {
                let ended = Record { nonce: None, expires: None, ..cell.record.clone() };
                (slot.clone(), cell.version, ended)
            })
            .collect();
        ModelStore::run(scope, &mut self.store, async |store| {
            for (slot, version, ended) in &free {
                // Somebody who is present keeps it.
                let _ = store.put(slot, *version, ended).await;
            }
        });
    }

    /// As `frazil store quarantine` raises it.
    fn quarantine(&mut self, scope: &Scope) {
        let Some(meta) = self.store.memory.meta.clone() else { return };
        let until = self.now + meta.0.value.window_ms;
        let raised = Meta { quarantine: until.max(meta.0.value.quarantine), ..meta.0.value };
        ModelStore::run(scope, &mut self.store, async |store| {
            // Nobody else writes at the same time.
            let _ = frazil_coord::Store::put_meta(store, Some(meta.0.version), &raised).await;
        });
    }

    /// A node does what is due.
    pub(super) fn step(&mut self, scope: &Scope, node: usize, delivery: Delivery) {
        if delivery != Delivery::AtOnce {
            self.happened[SLOW] += 1;
        }
        if let Some(process) = &mut self.nodes[node] {
            process.step(scope, &mut self.store, self.now, delivery);
        }
    }

    /// Time goes on, and lanes use it.
    pub(super) fn advance(&mut self, scope: &Scope) {
        let then = self.now + scope.step_ms;
        self.stamp(scope, self.now, then);
        self.now = then;
        self.store.clock = self.store.clock.max(then);
        for process in self.nodes.iter_mut().flatten() {
            process.time_passed();
            if !process.is_frozen {
                process.turn(scope, then);
            }
        }
        self.forget_used(scope);
    }

    /// A process that was frozen goes on: its lane before its keeper, if it may.
    pub(super) fn thaw(&mut self, scope: &Scope, node: usize) {
        self.each(node, |process| process.is_frozen = false);
        self.stamp(scope, self.now, self.now);
        let now = self.now;
        self.each(node, |process| process.turn(scope, now));
    }

    fn stamp(&mut self, scope: &Scope, from: u64, to: u64) {
        for node in 0..self.nodes.len() {
            let stamped = self.nodes[node].as_mut().and_then(|p| p.stamp(scope, from, to));
            let Some((first, last)) = stamped else { continue };
            let again = self.used.iter().find(|used| used.0 <= last && first <= used.1);
            self.twice = self.twice.or(again.map(|used| used.0.max(first)));
            self.taken_after |= !self.has_used[node];
            self.has_used[node] = true;
            match self.used.iter_mut().find(|used| used.1 + 1 == first) {
                Some(used) => used.1 = last,
                None => self.used.push((first, last)),
            }
        }
    }

    /// Nobody uses a time that is before all clocks.
    fn forget_used(&mut self, scope: &Scope) {
        let behind = scope.ahead.iter().min().copied().unwrap_or(0).min(0);
        let before = self.now.saturating_add_signed(behind * 1000);
        self.used.retain(|used| used.1 >= before);
        for used in &mut self.used {
            used.0 = used.0.max(before);
        }
        self.used.sort_unstable();
    }
}
