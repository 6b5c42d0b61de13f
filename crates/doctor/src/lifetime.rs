//! The range of times that a layout has.

use frazil_coord::UnixMs;
use frazil_id::Layout;
use frazil_wire::words::instant;

use crate::finding::Finding;

const LIFETIME: &str = "lifetime";
const DAYS_PER_YEAR: u64 = 365;
/// Moving to another layout takes planning: this much of it should be left.
const DAYS_MIN: u64 = 2 * DAYS_PER_YEAR;

/// Whether a layout has begun at a time, and how long it lasts from then: the check `lifetime`.
#[must_use]
pub fn lifetime(layout: &Layout, now: UnixMs) -> Finding {
    const ANOTHER: &str = "plan a move to a layout with more bits for the time and all else as it is: \
                           with a later epoch or fewer bits after the time, IDs come again";
    let (first, last) = (layout.epoch_ms(), layout.last_instant_ms());
    if now < first {
        let detail = format!(
            "the layout begins at {}, and the clock shows {}",
            instant(first),
            instant(now)
        );
        return Finding::fail(
            LIFETIME,
            detail,
            "set the clock right, or use a layout that began before",
        );
    }
    if now > last {
        return Finding::fail(LIFETIME, format!("the layout ended at {}", instant(last)), ANOTHER);
    }
    let days = layout.days_left(now);
    let detail =
        format!("IDs last until {}, {} years from now", instant(last), days / DAYS_PER_YEAR);
    match days {
        ..DAYS_MIN => {
            let detail = format!("IDs last until {} only, {days} days from now", instant(last));
            Finding::warn(LIFETIME, detail, ANOTHER)
        }
        _ => Finding::ok(LIFETIME, detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Status;

    #[test]
    fn a_layout_is_well_between_its_epoch_and_two_years_before_its_end() {
        let layout = Layout::FRAZIL;
        let (first, last) = (layout.epoch_ms(), layout.last_instant_ms());
        let year = DAYS_PER_YEAR * 86_400_000;
        for (now, status) in [
            (first - 1, Status::Fail),
            (first, Status::Ok),
            (last - 3 * year, Status::Ok),
            (last - year, Status::Warn),
            (last, Status::Warn),
            (last + 1, Status::Fail),
        ] {
            assert_eq!(lifetime(&layout, now).status, status, "{now}");
        }
    }
}
