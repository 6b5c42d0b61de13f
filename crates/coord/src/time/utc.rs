//! A time as people read it.

use std::fmt;

use crate::record::UnixMs;

const SECONDS_PER_DAY: u64 = 86_400;

/// Shows a time in UTC, by RFC 3339, to the millisecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Utc(pub(crate) UnixMs);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ms) = (self.0 / 1000, self.0 % 1000);
        let (year, month, day) = date(seconds / SECONDS_PER_DAY);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// The date of a day since 1970. Days are counted from the first of March of the year 0, so that leap days
/// are last in their years.
const fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    // January and February are the end of the year that began in March.
    let is_after_december = months_since_march >= 10;
    let month = if is_after_december { months_since_march - 9 } else { months_since_march + 3 };
    (era * 400 + year + is_after_december as u64, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_of_the_calendar() {
        for (time, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (978_307_199_999, "2000-12-31T23:59:59.999Z"),
            (1_798_761_600_000, "2027-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Utc(time).to_string(), expected, "{time}");
        }
    }
}
