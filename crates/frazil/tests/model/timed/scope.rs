//! What is searched: the rules as they are, or with one of them taken out.

/// The rule that is taken out. Product code has no switches: the model's store lies, or the model's
/// driver does not carry out what the plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omitted {
    /// The production functions, untouched.
    Nothing,
    /// An extension is used as far as it was acknowledged: the store says that later histories wait
    /// for all of it.
    CapOfExtensions,
    /// A new tenure is used as far as it was acknowledged: the same.
    CapOfAcquisitions,
    /// A takeover is used before it has settled: the store says at once that it has.
    SettledTakeovers,
    /// What an operator released counts as released by its holder.
    OperatorsReleasesAreTakeovers,
    /// After a restart a tenure starts at the record's horizon, not a little above it.
    MoreThanTheRecordAfterARestart,
    /// After a restart a tenure starts without regard to when the restart was.
    TimeOfTheRestart,
    /// A server that restarted says that it did not.
    Histories,
    /// A server that keeps nothing for sure says nothing of when it restarted.
    TimeOfTheFork,
    /// A holder that lapsed goes on in a history that may lack its successor.
    LapsedHoldersGiveUp,
    /// A namespace that seems new is used at once.
    Silence,
    /// A namespace that seems new is used after the heartbeat of whoever creates it.
    SilenceForOthersHeartbeats,
    /// A holder reads meta only with its renewals.
    ReadingMeta,
    /// A namespace that was created anew keeps its incarnation.
    Incarnations,
    /// A holder that finds the namespace created anew does not raise its quarantine.
    RaisingTheQuarantine,
    /// A lane gets all of its horizon at once.
    Watchdog,
    /// A process that was frozen goes on before it has heard from the store.
    HearingAfterAStop,
    /// A lane goes on although its namespace was created anew too long ago.
    ClosingWhenLate,
}

/// What the store keeps of what it acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// All of it, and it has no clock: etcd, ZooKeeper.
    Everything,
    /// What has settled, and it has a clock: Redis with a log that is synced now and then.
    Settled,
    /// Nothing for sure, and it has a clock: Redis without a log.
    Nothing,
}

/// How often something may happen, and between which seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    pub(crate) times: u8,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// It does not happen.
pub(crate) const NEVER: Chance = Chance { times: 0, from: 0, to: 0 };

/// It happens so many times at most, between these seconds.
pub(crate) const fn at_most(times: u8, from: u64, to: u64) -> Chance {
    Chance { times, from, to }
}

/// What may happen, beside what nodes do by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// A process starts on the node.
    Start(usize),
    /// A process dies.
    Crash(usize),
    /// A process ends by itself, and releases.
    Release(usize),
    /// A process stops, and goes on later.
    Freeze(usize),
    /// A node cannot reach the store, and later can.
    Cut(usize),
    /// An operator releases a worker whose holder is not present.
    OperatorRelease,
    /// An operator raises the quarantine.
    OperatorQuarantine,
    /// All that the store has acknowledged so far has settled.
    Sync,
    /// The store restarts without what has not settled.
    Lose,
    /// The store forgets everything.
    Wipe,
}

/// How much is searched. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) omitted: Omitted,
    pub(crate) keeps: Keeps,
    /// Heartbeats of the nodes; a TTL is three of them.
    pub(crate) heartbeats: [u64; 2],
    /// By how many seconds the clocks of the nodes are ahead.
    pub(crate) ahead: [i64; 2],
    pub(crate) end: u64,
    /// Time goes by in steps of so many milliseconds.
    pub(crate) step_ms: u64,
    /// Starts of the second node; the first runs from the beginning.
    pub(crate) start: Chance,
    pub(crate) crash: Chance,
    pub(crate) release: Chance,
    /// Of the first node.
    pub(crate) freeze: Chance,
    /// Of the first node.
    pub(crate) cut: Chance,
    pub(crate) operator_release: Chance,
    pub(crate) operator_quarantine: Chance,
    pub(crate) sync: Chance,
    pub(crate) lose: Chance,
    pub(crate) wipe: Chance,
    /// Requests that take as long as one may, or whose answers are lost where that is bearable: a store
    /// that forgets everything while a holder cannot hear from it is not.
    pub(crate) slow: Chance,
}

impl Scope {
    /// The chance of an event.
    pub(crate) const fn chance(&self, event: Event) -> Chance {
        match event {
            Event::Start(_) => self.start,
            Event::Crash(_) => self.crash,
            Event::Release(_) => self.release,
            Event::Freeze(_) => self.freeze,
            Event::Cut(_) => self.cut,
            Event::OperatorRelease => self.operator_release,
            Event::OperatorQuarantine => self.operator_quarantine,
            Event::Sync => self.sync,
            Event::Lose => self.lose,
            Event::Wipe => self.wipe,
        }
    }
}

impl Event {
    /// Where its count is kept.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Start(_) => 0,
            Self::Crash(_) => 1,
            Self::Release(_) => 2,
            Self::Freeze(_) => 3,
            Self::Cut(_) => 4,
            Self::OperatorRelease => 5,
            Self::OperatorQuarantine => 6,
            Self::Lose => 7,
            Self::Wipe => 8,
            Self::Sync => 10,
        }
    }
}

/// How many kinds of events are counted, slow requests among them.
pub(crate) const COUNTED: usize = 11;
/// Where slow requests are counted.
pub(crate) const SLOW: usize = 9;
