//! The defects that stores of the field had, by their numbers in docs/guarantees.md.

/// One way in which a store is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Extends whatever record is there.
    ExtendsAnyones,
    /// Releases whatever record is there.
    ReleasesAnyones,
    /// Says that it extended a record that is gone, and brings it back.
    ExtendsTheGone,
    /// Takes a slot whose record is gone for a new one.
    TakesLostForNew,
    /// Takes a record that has forgotten a tenure for one of a successor.
    TakesAmnesiaForSuccession,
    /// Writes what it worked out from an older reading, without a comparison.
    WritesWithoutComparing,
    /// Does not care whether somebody is present.
    IgnoresPresence,
    /// Knows a holder by its client, not by its tenure.
    KnowsByClient,
    /// Gives up the slot when an extension fails.
    ReleasesOnFailedExtend,
    /// Leaves presence behind when it refuses a claim.
    LeaksPresence,
    /// Starts a new tenure at the last renewal of the old one.
    FloorIsLastRenewal,
    /// Records when it was extended, not until when.
    RecordsThePast,
    /// Knows a holder by its name.
    KnowsByName,
    /// Says that the pool is full when it cannot be reached.
    OutageIsFull,
    /// Starts a new tenure now if the old one has expired by its own clock.
    FloorIsNow,
    /// Takes a slot if it is free, whatever version the claim names.
    TakesIfFree,
    /// Takes a repeated claim for another one.
    ForgetsClaims,
    /// Sets the horizon that a late extension asks for.
    LateExtendLowers,
}

impl Defect {
    pub(crate) const ALL: [Self; 18] = [
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
    ];

    /// Its number in the catalogue.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::ExtendsAnyones => "D1",
            Self::ReleasesAnyones => "D2",
            Self::ExtendsTheGone | Self::TakesLostForNew | Self::TakesAmnesiaForSuccession => "D3",
            Self::WritesWithoutComparing | Self::IgnoresPresence => "D8",
            Self::KnowsByClient => "D9",
            Self::ReleasesOnFailedExtend => "D11",
            Self::LeaksPresence => "D13",
            Self::FloorIsLastRenewal | Self::RecordsThePast => "D14",
            Self::KnowsByName => "D15",
            Self::OutageIsFull => "D16",
            Self::FloorIsNow => "D19",
            Self::TakesIfFree | Self::ForgetsClaims | Self::LateExtendLowers => "D20",
        }
    }
}
