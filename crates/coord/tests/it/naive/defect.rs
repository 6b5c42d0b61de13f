//! The defects that stores of the field had, by their numbers in docs/guarantees.md.

/// One way in which a store is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Carries out an extension over whatever record is there.
    ExtendsAnyones,
    /// Carries out a release over whatever record is there.
    ReleasesAnyones,
    /// Says that it extended a record that is gone, and brings it back.
    ExtendsTheGone,
    /// Takes a slot whose record is gone for a new one.
    TakesLostForNew,
    /// Shows a record that has forgotten a tenure as that of a successor, because a cache does not
    /// let anything go back.
    TakesAmnesiaForSuccession,
    /// Writes what was worked out from an older reading, without a comparison.
    WritesWithoutComparing,
    /// Does not care whether somebody is present.
    IgnoresPresence,
    /// Knows a holder by its client, not by its tenure.
    KnowsByClient,
    /// Gives up the slot when an extension fails.
    ReleasesOnFailedExtend,
    /// Leaves presence behind when it refuses a commit.
    LeaksPresence,
    /// Shows the last renewal of a record in place of its horizon.
    FloorIsLastRenewal,
    /// Records when it was extended, not until when.
    RecordsThePast,
    /// Knows a holder by its name.
    KnowsByName,
    /// Says that the pool is full when it cannot be reached.
    OutageIsFull,
    /// Shows a horizon no later than now, by its own clock, once presence has ended.
    FloorIsNow,
    /// Takes a slot if it is free, whatever was read of it.
    TakesIfFree,
    /// Takes a repeated claim for another one.
    ForgetsClaims,
    /// Knows an extension by its nonce alone, so that a late one lowers the horizon.
    LateExtendLowers,
    /// Compares versions, which come back after a wipe, and not nonces.
    ComparesVersionsAlone,
    /// Makes every change of a commit that is possible, not the first alone.
    WritesEveryChange,
    /// Removes a slot under its holder.
    ForgetsTheHeld,
}

impl Defect {
    pub(crate) const ALL: [Self; 21] = [
        Self::ExtendsAnyones,
        Self::ReleasesAnyones,
        Self::ExtendsTheGone,
        Self::TakesLostForNew,
        Self::TakesAmnesiaForSuccession,
        Self::WritesWithoutComparing,
        Self::IgnoresPresence,
        Self::KnowsByClient,
        Self::ReleasesOnFailedExtend,
        Self::LeaksPresence,
        Self::FloorIsLastRenewal,
        Self::RecordsThePast,
        Self::KnowsByName,
        Self::OutageIsFull,
        Self::FloorIsNow,
        Self::TakesIfFree,
        Self::ForgetsClaims,
        Self::LateExtendLowers,
        Self::ComparesVersionsAlone,
        Self::WritesEveryChange,
        Self::ForgetsTheHeld,
    ];

    /// Its number in the catalogue.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::ExtendsAnyones => "D1",
            Self::ReleasesAnyones | Self::ForgetsTheHeld => "D2",
            Self::ExtendsTheGone | Self::TakesLostForNew | Self::TakesAmnesiaForSuccession => "D3",
            Self::WritesWithoutComparing | Self::IgnoresPresence => "D8",
            Self::KnowsByClient | Self::ComparesVersionsAlone => "D9",
            Self::ReleasesOnFailedExtend => "D11",
            Self::LeaksPresence | Self::WritesEveryChange => "D13",
            Self::FloorIsLastRenewal | Self::RecordsThePast => "D14",
            Self::KnowsByName => "D15",
            Self::OutageIsFull => "D16",
            Self::FloorIsNow => "D19",
            Self::TakesIfFree | Self::ForgetsClaims | Self::LateExtendLowers => "D20",
        }
    }
}
