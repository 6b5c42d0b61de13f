//! What is searched: the rules as they are, or with one of them broken.

/// The rules, or one deviation from them. Each names the one place where the model then leaves
/// the production functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The production functions, untouched.
    Correct,
    /// A holder stamps whatever its clock says.
    NoHorizon,
    /// The record is gone when presence is, and the slot looks new.
    HorizonInTheExpiringKey,
    /// A new holder starts at its clock.
    StartAtWallClock,
    /// An extension raises the horizon of whoever holds the slot.
    ExtendWithoutToken,
    /// A holder uses a horizon as soon as it has asked for it.
    UseBeforeAcknowledgement,
    /// A slot that carries the claimant's name is the claimant's.
    ReacquireByName,
    /// The release is sent while times are still used.
    ReleaseBeforeClose,
    /// The holder goes on after its release was sent.
    ResumedAfterRelease,
    /// A claim takes whatever is free; who holds is known by a mark that the client minted.
    TakeIfFree,
    /// A slot whose floor is far ahead is taken at once, with a window above its floor.
    StackedFloors,
    /// A store that went back in its history is used as it is.
    RolledBack,
    /// A store that went back is used above a quarantine, and the holders it knows stay.
    QuarantinedOnly,
    /// The record that replaces a lost one counts from a time before the loss was seen.
    MendedByAnOldClock,
}

/// What happens to the store beyond delay and loss of messages, at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calamity {
    /// Nothing: every clock reading is arbitrary.
    None,
    /// Everything is forgotten; the namespace is created anew with a quarantine.
    Wipe,
    /// The slot's record is lost, and that is known.
    LostRecord,
    /// An old snapshot is restored.
    Rollback,
}

impl Calamity {
    /// What was promised can be bounded after a calamity only where clocks agree.
    pub(crate) const fn clocks_agree(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// How much is searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) variant: Variant,
    pub(crate) calamity: Calamity,
    /// Clocks show 1 to this.
    pub(crate) clock_max: u64,
    /// The window, in ticks.
    pub(crate) window: u64,
    /// Claims that are ever made.
    pub(crate) stints: usize,
    /// Requests under way at a time.
    pub(crate) requests: usize,
}
