//! Times as nodes write them: `2026-11-16T04:20:14.153Z`.

/// Milliseconds since 1970.
pub(crate) fn unix_ms(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':')?;
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = (hour * 60 + minute) * 60 + second;
    Some((days(year, month, day) * 86_400 + seconds) * 1000 + millis)
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let numbers: Option<Vec<i64>> = text.split(between).map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Days from 1970 to a date. Years begin in March here, so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let before_month = (153 * month + 2) / 5;
    year * 365 + leap_days + before_month + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_system_counts_them() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00.5Z", 951_825_600_500),
            ("2024-01-01T00:00:00.000Z", 1_704_067_200_000),
            ("2026-11-16T04:20:14.153Z", 1_794_802_814_153),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000),
        ] {
            assert_eq!(unix_ms(text), Some(expected), "{text}");
        }
        for text in ["", "2026-11-16", "2026-11-16T04:20Z", "2026-11-16T04:20:14", "aTbZ"] {
            assert_eq!(unix_ms(text), None, "{text}");
        }
    }
}
