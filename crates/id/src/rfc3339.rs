//! Instants as RFC 3339 text, in milliseconds and UTC.
//!
//! Small enough to own, so that the crate keeps no dependencies: the proleptic Gregorian calendar,
//! no leap seconds (Unix time has none), years 0 to 9999 when reading.

use core::fmt;
use core::str::FromStr;

const MS_PER_DAY: i64 = 86_400_000;

/// The length of `2024-01-01T00:00:00.000Z`.
const TEXT_BYTES: usize = 24;

/// A point in time, in milliseconds since the Unix epoch. Prints as
/// `2024-01-01T00:00:00.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

/// How much of a second is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// `2024-01-01T00:00:00Z`
    Seconds,
    /// `2024-01-01T00:00:00.000Z`
    Milliseconds,
}

impl Instant {
    /// The instant that many milliseconds after 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_unix_ms(unix_ms: i64) -> Self {
        Self(unix_ms)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// The text in milliseconds as bytes, for those who write millions of them; `None` for years
    /// that have not four digits.
    #[must_use]
    pub fn to_bytes(self) -> Option<[u8; TEXT_BYTES]> {
        let Civil { year, month, day } = Civil::from_days(self.0.div_euclid(MS_PER_DAY));
        if !(0..=9999).contains(&year) {
            return None;
        }
        let ms = self.0.rem_euclid(MS_PER_DAY);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        put(&mut text[0..4], year);
        put(&mut text[5..7], month);
        put(&mut text[8..10], day);
        put(&mut text[11..13], ms / 3_600_000);
        put(&mut text[14..16], ms / 60_000 % 60);
        put(&mut text[17..19], ms / 1000 % 60);
        put(&mut text[20..23], ms % 1000);
        Some(text)
    }

    /// The text with the given precision; a finer rest is cut off.
    #[must_use]
    pub fn display(self, precision: Precision) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let Civil { year, month, day } = Civil::from_days(self.0.div_euclid(MS_PER_DAY));
            let ms = self.0.rem_euclid(MS_PER_DAY);
            let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
            // Outside of four digits ISO 8601 wants a sign.
            let sign = if year > 9999 {
                "+"
            } else if year < 0 {
                "-"
            } else {
                ""
            };
            let year = year.abs();
            write!(f, "{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
            match precision {
                Precision::Seconds => f.write_str("Z"),
                Precision::Milliseconds => write!(f, ".{:03}Z", ms % 1000),
            }
        })
    }
}

/// Writes the last digits of a number that is not negative.
fn put(places: &mut [u8], number: i64) {
    let mut left = number;
    for place in places.iter_mut().rev() {
        *place = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(Precision::Milliseconds).fmt(f)
    }
}

/// Reads `2024-01-01T00:00:00Z`, with a fraction of 1 to 9 digits (cut to milliseconds) and any
/// offset.
impl FromStr for Instant {
    type Err = ParseInstantError;

    fn from_str(text: &str) -> Result<Self, ParseInstantError> {
        let mut rest = Cursor(text.as_bytes());
        let civil = rest.date()?;
        rest.one_of(b"Tt ")?;
        let ms = rest.time()?;
        let offset_ms = rest.offset()?;
        if !rest.0.is_empty() {
            return Err(ParseInstantError);
        }
        Ok(Self(civil.to_days() * MS_PER_DAY + ms - offset_ms))
    }
}

/// The text is not an RFC 3339 date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseInstantError;

impl fmt::Display for ParseInstantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an RFC 3339 time: write it as 2024-01-31T23:59:59.999Z or with an offset as 2024-01-31T23:59:59+01:00")
    }
}

impl core::error::Error for ParseInstantError {}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn date(&mut self) -> Result<Civil, ParseInstantError> {
        let year = self.number(4)?;
        self.one_of(b"-")?;
        let month = self.number(2)?;
        self.one_of(b"-")?;
        let day = self.number(2)?;
        let civil = Civil { year, month, day };
        civil.is_valid().then_some(civil).ok_or(ParseInstantError)
    }

    fn time(&mut self) -> Result<i64, ParseInstantError> {
        let hour = self.number(2)?;
        self.one_of(b":")?;
        let minute = self.number(2)?;
        self.one_of(b":")?;
        let second = self.number(2)?;
        let fraction_ms = if self.0.first() == Some(&b'.') { self.fraction()? } else { 0 };
        if hour > 23 || minute > 59 || second > 59 {
            return Err(ParseInstantError);
        }
        Ok(((hour * 60 + minute) * 60 + second) * 1000 + fraction_ms)
    }

    fn fraction(&mut self) -> Result<i64, ParseInstantError> {
        self.one_of(b".")?;
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            return Err(ParseInstantError);
        }
        let value = self.number(digits)?;
        Ok((0..3 - digits.min(3)).fold(value, |value, _| value * 10)
            / (3..digits.max(3)).fold(1, |divisor, _| divisor * 10))
    }

    fn offset(&mut self) -> Result<i64, ParseInstantError> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Ok(0),
        };
        let hour = self.number(2)?;
        self.one_of(b":")?;
        let minute = self.number(2)?;
        if hour > 23 || minute > 59 {
            return Err(ParseInstantError);
        }
        Ok(sign * (hour * 60 + minute) * 60_000)
    }

    fn number(&mut self, digits: usize) -> Result<i64, ParseInstantError> {
        let (number, rest) = self.0.split_at_checked(digits).ok_or(ParseInstantError)?;
        self.0 = rest;
        number.iter().try_fold(0, |value, byte| match byte {
            b'0'..=b'9' => Ok(value * 10 + i64::from(byte - b'0')),
            _ => Err(ParseInstantError),
        })
    }

    fn one_of(&mut self, allowed: &[u8]) -> Result<u8, ParseInstantError> {
        let (first, rest) = self.0.split_first().ok_or(ParseInstantError)?;
        self.0 = rest;
        allowed.contains(first).then_some(*first).ok_or(ParseInstantError)
    }
}

/// A date of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Civil {
    year: i64,
    month: i64,
    day: i64,
}

/// Days in 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01. Years are counted from March here, so that the leap day is the
/// last day of a year.
const UNIX_EPOCH_DAYS: i64 = 719_468;

impl Civil {
    fn to_days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let month_from_march = (self.month + 9) % 12;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        365 * year + leap_days + days_before_month(month_from_march) + self.day
            - 1
            - UNIX_EPOCH_DAYS
    }

    fn from_days(unix_days: i64) -> Self {
        let days = unix_days + UNIX_EPOCH_DAYS;
        let era = days.div_euclid(ERA_DAYS);
        let day_of_era = days.rem_euclid(ERA_DAYS);
        // The last day of 4, 100 and 400 years must not start another year.
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = (month_from_march + 2) % 12 + 1;
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Self { year, month, day: day_of_year - days_before_month(month_from_march) + 1 }
    }

    fn is_valid(self) -> bool {
        (1..=12).contains(&self.month) && self.day >= 1 && Self::from_days(self.to_days()) == self
    }
}

/// Days from March 1 to the first day of a month: 31 and 30 alternate in groups of five months.
fn days_before_month(month_from_march: i64) -> i64 {
    (153 * month_from_march + 2) / 5
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn known_instants_print_and_read_back() {
        for (unix_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_462_015_105_796, "2016-04-30T11:18:25.796Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Instant(unix_ms).to_string(), text);
            assert_eq!(Instant(unix_ms).to_bytes().as_ref().map(|b| &b[..]), Some(text.as_bytes()));
            assert_eq!(text.parse(), Ok(Instant(unix_ms)));
        }
        assert_eq!(Instant(253_402_300_800_000).to_bytes(), None);
    }

    #[test]
    fn every_day_of_800_years_follows_the_one_before() {
        let mut previous = Civil::from_days(-146_097 - 1);
        for days in -146_097..146_097 {
            let civil = Civil::from_days(days);
            let next_day = civil.month == previous.month && civil.day == previous.day + 1;
            let next_month = civil.day == 1
                && (civil.month == previous.month + 1 || civil.month == 1 && previous.month == 12)
                && previous.day >= 28;
            assert!(next_day || next_month, "{previous:?} then {civil:?}");
            assert_eq!(civil.to_days(), days);
            previous = civil;
        }
    }

    #[test]
    fn offsets_and_fractions_are_read() {
        for (text, unix_ms) in [
            ("1970-01-01T01:00:00+01:00", 0),
            ("1969-12-31T19:00:00-05:00", 0),
            ("1970-01-01t00:00:00.5z", 500),
            ("1970-01-01 00:00:00.25Z", 250),
            ("1970-01-01T00:00:00.123456789Z", 123),
            ("0000-03-01T00:00:00Z", -62_162_035_200_000),
        ] {
            assert_eq!(text.parse(), Ok(Instant(unix_ms)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "2024",
            "2024-01-01",
            "2024-01-01T00:00:00",
            "2024-13-01T00:00:00Z",
            "2024-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-00-10T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2016-12-31T23:59:60Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00.1234567890Z",
            "2024-01-01T00:00:00+24:00",
            "2024-01-01T00:00:00Z ",
            "+2024-01-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<Instant>(), Err(ParseInstantError), "{text}");
        }
    }

    #[test]
    fn years_past_9999_print_with_a_sign() {
        assert_eq!(Instant(253_402_300_800_000).to_string(), "+10000-01-01T00:00:00.000Z");
        assert_eq!(Instant(-62_198_755_200_001).to_string(), "-0002-12-31T23:59:59.999Z");
    }
}
