//! Random histories: clients that follow the protocol over a network that does not.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use frazil_conformance::{Faults, Faulty};
use frazil_coord::internal::{Acquired, Ask, Choice, Claim, Extended, Leasing, Tenure};
use frazil_coord::{Entry, Group, Nonce, Slot, Store, Version};

/// Few, so that clients meet.
pub(crate) const SLOTS: u32 = 2;
/// Long against the steps of time, so that most of a window is used by nobody or by all.
const WINDOW_MS: u64 = 600;

/// How a client keeps to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    Sound,
    /// Uses a horizon as soon as it has asked for it.
    UsesWhatItAsked,
    /// Goes on after a release that was not acknowledged.
    ResumesAfterRelease,
    /// Starts from the clock instead of from its floor.
    StartsFromTheClock,
}

/// Two tenures of one slot that used one time.
#[derive(Clone, Debug)]
pub(crate) struct Overlap {
    slot: Slot,
    first: Use,
    second: Use,
}

/// The times after `after` up to `until`, used by the tenure with this nonce.
#[derive(Clone, Copy, Debug)]
struct Use {
    after: u64,
    until: u64,
    nonce: Nonce,
}

/// What happened in a history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) tenures: u64,
    pub(crate) extended: u64,
    pub(crate) lost: u64,
    pub(crate) released: u64,
    pub(crate) uses: u64,
    pub(crate) faults: Faults,
}

/// Clients of one store.
pub(crate) struct History {
    clients: Vec<Client>,
    habit: Habit,
    /// Ends the presence in a slot.
    expire: Box<dyn Fn(&Slot)>,
    meta: Version,
    dice: u64,
    now: u64,
    used: HashMap<Slot, Vec<Use>>,
    tally: Tally,
}

struct Client {
    store: Faulty,
    /// How far its clock is behind, from 0 to a second.
    behind: u64,
    state: State,
}

#[derive(Clone)]
enum State {
    Idle,
    /// The answer is not known yet.
    Claiming(Claim),
    Holding {
        tenure: Tenure,
        /// The last time used.
        last: u64,
    },
}

impl History {
    pub(crate) fn new(
        stores: Vec<Faulty>,
        habit: Habit,
        expire: Box<dyn Fn(&Slot)>,
        meta: Version,
        seed: u64,
    ) -> Self {
        let client =
            |(i, store)| Client { store, behind: 250 * (i as u64 % 5), state: State::Idle };
        let clients = stores.into_iter().enumerate().map(client).collect();
        let (used, tally) = (HashMap::new(), Tally::default());
        Self { clients, habit, expire, meta, dice: seed, now: 1_000_000, used, tally }
    }

    /// Goes on until a time is used twice.
    pub(crate) async fn run(mut self, steps: u32) -> Result<Tally, Overlap> {
        for _ in 0..steps {
            self.now += self.below(30);
            if self.below(12) == 0 {
                let slot = self.any_slot();
                (self.expire)(&slot);
            }
            let index = usize::try_from(self.below(self.clients.len() as u64)).unwrap();
            let next = match self.clients[index].state.clone() {
                // It crashed, and knows nothing any more.
                _ if self.below(60) == 0 => State::Idle,
                State::Idle => self.look(index).await,
                State::Claiming(claim) => self.claim(index, claim).await,
                State::Holding { tenure, last } => self.hold(index, tenure, last).await?,
            };
            self.clients[index].state = next;
        }
        for client in &self.clients {
            let faults = client.store.faults();
            self.tally.faults.requests_lost += faults.requests_lost;
            self.tally.faults.replies_lost += faults.replies_lost;
            self.tally.faults.twice += faults.twice;
            self.tally.faults.late += faults.late;
        }
        Ok(self.tally)
    }

    /// Reads a slot, to claim it next time: others may come in between.
    async fn look(&mut self, index: usize) -> State {
        let slot = self.any_slot();
        let client = &self.clients[index];
        let Ok(entries) = client.store.list(Group::Workers).await else { return State::Idle };
        let read = |entry: Entry| (entry.slot == slot).then_some(entry.version);
        let version = entries.into_iter().find_map(read).unwrap_or_default();
        let now = self.now - client.behind;
        State::Claiming(Claim {
            choice: Choice::This(slot, version),
            nonce: Nonce::from_bits(u128::from(self.random()) << 64 | u128::from(self.random())),
            holder: "everybody has this name".into(),
            info: BTreeMap::new(),
            ttl: Duration::from_secs(600),
            now,
            ask: now + self.below(WINDOW_MS),
            window_ms: WINDOW_MS,
            quarantine: 0,
            meta: self.meta,
        })
    }

    async fn claim(&mut self, index: usize, claim: Claim) -> State {
        match self.clients[index].store.acquire(&claim).await {
            Ok(Acquired::Held(tenure)) => {
                self.tally.tenures += 1;
                let last = match self.habit {
                    Habit::StartsFromTheClock => claim.now,
                    _ => tenure.floor,
                };
                State::Holding { tenure, last }
            }
            Ok(
                Acquired::Taken
                | Acquired::Full(_)
                | Acquired::MetaMoved
                | Acquired::ClockOff { .. },
            ) => State::Idle,
            // Not known: the same again.
            Ok(Acquired::Unsure(..) | Acquired::Unsettled(..)) | Err(_) => State::Claiming(claim),
        }
    }

    async fn hold(
        &mut self,
        index: usize,
        mut tenure: Tenure,
        mut last: u64,
    ) -> Result<State, Overlap> {
        match self.below(8) {
            0 => {
                let released = self.clients[index].store.release(&tenure, last).await;
                self.tally.released += u64::from(released.is_ok());
                return Ok(match (self.habit, released) {
                    (Habit::ResumesAfterRelease, Err(_)) => State::Holding { tenure, last },
                    _ => State::Idle,
                });
            }
            1..=3 => {
                let now = self.now - self.clients[index].behind;
                let horizon = now + self.below(WINDOW_MS);
                let ttl = Duration::from_secs(600);
                let ask = Ask { horizon, ttl, now, window_ms: WINDOW_MS };
                match self.clients[index].store.extend(&tenure, &ask).await {
                    Ok(Extended::Held(held)) => {
                        self.tally.extended += 1;
                        tenure = held;
                    }
                    // What was acknowledged before may still be used.
                    Ok(Extended::Lost(_)) => self.tally.lost += 1,
                    Err(_) => {}
                }
                if self.habit == Habit::UsesWhatItAsked {
                    tenure.usable = tenure.usable.max(horizon);
                }
            }
            _ => {
                if let Some(room) = tenure.usable.checked_sub(last).filter(|room| *room > 0) {
                    let until = last + 1 + self.below(room);
                    self.record(&tenure, last, until)?;
                    last = until;
                }
            }
        }
        Ok(State::Holding { tenure, last })
    }

    fn record(&mut self, tenure: &Tenure, after: u64, until: u64) -> Result<(), Overlap> {
        self.tally.uses += 1;
        let second = Use { after, until, nonce: tenure.nonce };
        let used = self.used.entry(tenure.slot.clone()).or_default();
        let meets = |first: &&Use| {
            first.nonce != second.nonce && first.after < until && after < first.until
        };
        if let Some(first) = used.iter().find(meets) {
            return Err(Overlap { slot: tenure.slot.clone(), first: *first, second });
        }
        used.push(second);
        Ok(())
    }

    fn any_slot(&mut self) -> Slot {
        Slot::worker(u32::try_from(self.below(SLOTS.into())).unwrap())
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random() % limit
    }

    /// The next number of the seed (splitmix64).
    fn random(&mut self) -> u64 {
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.dice ^ (self.dice >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was used twice: {:?} and {:?}", self.slot, self.first, self.second)
    }
}
