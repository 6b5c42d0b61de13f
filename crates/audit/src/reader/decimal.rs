//! Decimal IDs by the hundred million: eight digits at a time, and no copy of the line.

/// Digits of a number that is surely below 2^64.
const DIGITS_MAX: usize = 19;

/// The ID of a line and the bytes of the line with its end, if the bytes begin with a whole line
/// that is an ID of up to 19 digits. Whoever gets nothing must look closer.
#[inline]
pub(super) fn line(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    let mut at = 0;
    while at < 16
        && let Some(eight) = bytes.get(at..at + 8).and_then(eight_digits)
    {
        value = value * 100_000_000 + eight;
        at += 8;
    }
    while at < DIGITS_MAX
        && let Some(letter @ b'0'..=b'9') = bytes.get(at)
    {
        value = value * 10 + u64::from(letter - b'0');
        at += 1;
    }
    // What begins with 0 is the number 0, or a mistake.
    if at == 0 || bytes[0] == b'0' {
        return None;
    }
    match bytes[at..] {
        [b'\n', ..] => Some((value, at + 1)),
        [b'\r', b'\n', ..] => Some((value, at + 2)),
        _ => None,
    }
}

/// The value of eight digits: neighbours are joined to pairs, pairs to fours, and those to eight,
/// all at once in the lanes of one word. No lane overflows, since each holds what it is wide for.
#[inline]
fn eight_digits(bytes: &[u8]) -> Option<u64> {
    const TOP: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const SIXES: u64 = 0x0606_0606_0606_0606;
    let letters = u64::from_le_bytes(bytes.try_into().ok()?);
    // A digit is 0x30 to 0x39: its upper half is 3, and stays 3 when 6 is added.
    if letters & TOP != ZEROS || (letters + SIXES) & TOP != ZEROS {
        return None;
    }
    let digits = letters - ZEROS;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_read() {
        let mut text = String::new();
        for digit in "1234567890987654321".chars() {
            text.push(digit);
            for (end, extra) in [("\n", 1), ("\r\n", 2), ("\nnext line", 1)] {
                let read = line(format!("{text}{end}").as_bytes());
                assert_eq!(read, Some((text.parse().unwrap(), text.len() + extra)), "{text}");
            }
        }
        assert_eq!(line(b"9999999999999999999\n"), Some((9_999_999_999_999_999_999, 20)));
    }

    #[test]
    fn whatever_is_not_surely_an_id_is_left_to_a_closer_look() {
        for text in [
            "",
            "\n",
            "0\n",
            "01\n",
            "12",
            "12\r",
            "12 \n",
            " 12\n",
            "-1\n",
            "1x\n",
            "12345678",
            "123456789012345678:\n",
            "1234567/\n",
            "12345678901234567890\n",
            "18446744073709551616\n",
        ] {
            assert_eq!(line(text.as_bytes()), None, "{text:?}");
        }
    }
}
