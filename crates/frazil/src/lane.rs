//! One generator after another, each bound to one tenure of a worker.

use std::sync::{Arc, Mutex, PoisonError};

use frazil_coord::Grant;
use frazil_coord::internal::keeper::{Lane, StoreTime};
use frazil_coord::{Loss, Token, UnixMs};
use frazil_fork::Birthmark;
use frazil_id::{
    Batch, Clock, Generator, Id, Layout, NotReady, Options, Reading, StartError, Within,
};

use crate::clock::DisciplinedClock;
use crate::generator_slot::{ActiveGenerator, GeneratorSlot};
use crate::lanes::LaneTemplate;
use crate::losses::Losses;
use crate::node::Issued;

/// What issues IDs under a lease.
#[derive(Debug)]
pub(crate) struct NodeLane {
    /// Tells it from all others that the node ever had.
    pub(crate) number: u64,
    layout: Layout,
    clock: Arc<DisciplinedClock>,
    options: Options,
    losses: Arc<Losses>,
    /// Of the process that leases for this lane.
    mark: Birthmark,
    slot: GeneratorSlot<Arc<DisciplinedClock>>,
    /// The last grant and why it could not be used, if so.
    fault: Mutex<Option<(Grant, StartError)>>,
}

impl NodeLane {
    pub(crate) fn new(number: u64, template: &LaneTemplate) -> Self {
        Self {
            number,
            layout: template.layout,
            clock: template.clock.clone(),
            options: template.options,
            losses: template.losses.clone(),
            mark: Birthmark::new(),
            slot: GeneratorSlot::new(),
            fault: Mutex::default(),
        }
    }

    /// Asks the generator: the one way to it, for every call that issues. `None`: no worker is held,
    /// which is so in a forked child, too.
    ///
    /// The process is looked at twice. Before, so that a child neither takes a lock that a thread of
    /// its parent held, nor waits for a generator that only the parent gets. After, because a signal
    /// handler may fork in between.
    #[inline]
    fn ask<T>(
        &self,
        ask: impl Fn(&ActiveGenerator<Arc<DisciplinedClock>>) -> Result<T, NotReady>,
    ) -> Option<Result<T, NotReady>> {
        if !self.mark.is_here() {
            return None;
        }
        let asked = self.slot.ask(ask);
        if self.mark.is_here() { asked } else { None }
    }

    /// One ID. `None`: no worker is held.
    #[inline]
    pub(crate) fn try_next(&self) -> Option<Result<Id, NotReady>> {
        self.ask(|active| active.generator.try_next())
    }

    /// Exactly `n` IDs at once. `None`: no worker is held.
    pub(crate) fn try_batch(&self, n: u32) -> Option<Result<Issued, NotReady>> {
        self.ask(|active| Ok(self.issued(active, active.generator.try_batch(n)?)))
    }

    /// From one to `n` IDs at once; leaves so many ticks ahead of the clock to others. `None`: no worker is
    /// held.
    pub(crate) fn try_up_to_leaving(&self, n: u32, ticks: u64) -> Option<Result<Issued, NotReady>> {
        self.ask(|active| Ok(self.issued(active, active.generator.try_up_to_leaving(n, ticks)?)))
    }

    /// The first with ticks of a range alone.
    pub(crate) fn try_batch_within(
        &self,
        n: u32,
        within: Within,
    ) -> Option<Result<Issued, NotReady>> {
        self.ask(|active| Ok(self.issued(active, active.generator.try_batch_within(n, within)?)))
    }

    /// The second with ticks of a range alone.
    pub(crate) fn try_up_to_within(
        &self,
        n: u32,
        within: Within,
    ) -> Option<Result<Issued, NotReady>> {
        self.ask(|active| Ok(self.issued(active, active.generator.try_up_to_within(n, within)?)))
    }

    /// Whether there is an ID now. `None`: no worker is held.
    pub(crate) fn check(&self) -> Option<Result<(), NotReady>> {
        self.ask(|active| active.generator.check())
    }

    /// The highest tick that was used.
    pub(crate) fn last_tick(&self) -> u64 {
        self.slot.last_tick()
    }

    /// Why a grant could not be used.
    pub(crate) fn fault(&self) -> Option<StartError> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).map(|(_, error)| error)
    }

    /// Issues under a grant from now on; gives the highest time that was used before.
    pub(crate) fn activate(&self, grant: Grant) -> UnixMs {
        let mut before = 0;
        let made = self.slot.replace(|last_tick| {
            before = last_tick;
            let generator = self.generator(grant, last_tick)?;
            Ok(ActiveGenerator { generator, token: grant.token.0 })
        });
        self.slot.reopen();
        let fault = made.err().map(|error| (grant, error));
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        self.time_of(before)
    }

    /// Whether a grant would give an ID now. Takes none.
    ///
    /// # Errors
    /// If it cannot be used at all.
    pub(crate) fn trial(&self, grant: Grant) -> Result<Result<(), NotReady>, StartError> {
        self.generator(grant, 0).map(|generator| generator.check())
    }

    fn generator(
        &self,
        grant: Grant,
        last_tick: u64,
    ) -> Result<Generator<Arc<DisciplinedClock>>, StartError> {
        let options = self
            .options
            .with_floor(self.tick_of(grant.floor).max(last_tick))
            .with_horizon(self.tick_of(grant.horizon));
        Generator::new(&self.layout, grant.worker.into(), self.clock.clone(), options)
    }

    /// IDs, with the tenure that they were issued under.
    fn issued(&self, active: &ActiveGenerator<Arc<DisciplinedClock>>, batch: Batch) -> Issued {
        let worker = u32::try_from(active.generator.worker()).expect("leased workers are 32 bits");
        Issued { batch, worker, token: Token(active.token), lane: self.number }
    }

    fn tick_of(&self, time: UnixMs) -> u64 {
        tick_of(&self.layout, time)
    }

    fn time_of(&self, tick: u64) -> UnixMs {
        if tick == 0 { 0 } else { self.layout.unix_ms(tick) }
    }
}

/// The last tick that begins at or before a time; 0 before the epoch.
///
/// Both ends of a tenure are turned into ticks by this one function, so a tick that one holder
/// may stamp is never above the floor of the next, whatever the length of ticks.
pub(crate) fn tick_of(layout: &Layout, time: UnixMs) -> u64 {
    let since_epoch = time.saturating_sub(layout.epoch_ms());
    (since_epoch / u64::from(layout.tick_ms())).min(layout.last_tick())
}

impl Lane for NodeLane {
    fn now(&self) -> UnixMs {
        self.clock.look();
        self.clock.real_ms()
    }

    fn steady(&self) -> UnixMs {
        match self.clock.read() {
            Reading::At(now) => self.time_of(now.tick),
            Reading::Stepped { real, steady, .. } => self.time_of(real.tick.max(steady.tick)),
            Reading::BeforeEpoch { .. } => 0,
        }
    }

    fn open(&self, grant: Grant) {
        self.activate(grant);
    }

    fn raise(&self, horizon: UnixMs) {
        let fault = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((grant, _)) = fault {
            // What was wrong may have passed: a clock before the epoch, set right since.
            return self.open(Grant { horizon, ..grant });
        }
        self.slot.raise(self.tick_of(horizon));
    }

    fn last(&self) -> UnixMs {
        self.time_of(self.slot.last_tick())
    }

    fn close(&self) -> UnixMs {
        self.time_of(self.slot.close())
    }

    fn hear(&self, store: StoreTime) {
        self.clock.hear(store);
    }

    fn lost(&self, loss: &Loss) {
        self.losses.add(loss);
    }
}
