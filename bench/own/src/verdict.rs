//! Whether a bar holds.

/// The word for a bar that holds, and the loud one for a bar that does not: a benchmark on a noisy
/// machine reports, it does not fail.
#[must_use]
pub const fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "MISSES" }
}
