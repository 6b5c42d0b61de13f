//! The text forms of an ID, with strict parsing: one text for each ID and form.

use core::fmt;
use core::ops::Deref;
use core::str::FromStr;

use crate::id::Id;

/// Letters of the longest form, decimal.
const TEXT_MAX: usize = 20;

static DECIMAL: Alphabet = Alphabet::new(b"0123456789");
static HEX: Alphabet = Alphabet::new(b"0123456789abcdef");
static CROCKFORD: Alphabet = Alphabet::new(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ");
static BASE62: Alphabet =
    Alphabet::new(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

/// A way to write an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Format {
    /// Decimal digits: the canonical form.
    #[default]
    Decimal,
    /// Lower-case hexadecimal digits.
    Hex,
    /// Crockford's base 32, upper case.
    Base32,
    /// Base 62: digits, upper case, lower case.
    Base62,
    /// 13 letters of base 32, so that text order is ID order.
    Base32Sortable,
    /// 11 letters of base 62, so that (ASCII) text order is ID order.
    Base62Sortable,
}

impl Format {
    /// Every form, the canonical one first.
    pub const ALL: &'static [Self] = &[
        Self::Decimal,
        Self::Hex,
        Self::Base32,
        Self::Base62,
        Self::Base32Sortable,
        Self::Base62Sortable,
    ];

    /// The name by which users ask for the form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Hex => "hex",
            Self::Base32 => "base32",
            Self::Base62 => "base62",
            Self::Base32Sortable => "base32-sortable",
            Self::Base62Sortable => "base62-sortable",
        }
    }

    fn alphabet(self) -> &'static Alphabet {
        match self {
            Self::Decimal => &DECIMAL,
            Self::Hex => &HEX,
            Self::Base32 | Self::Base32Sortable => &CROCKFORD,
            Self::Base62 | Self::Base62Sortable => &BASE62,
        }
    }

    /// The number of letters, where it is fixed.
    const fn width(self) -> Option<usize> {
        match self {
            Self::Base32Sortable => Some(13),
            Self::Base62Sortable => Some(11),
            _ => None,
        }
    }

    pub(crate) fn write(self, id: Id) -> IdText {
        let bits = id.to_u64();
        match self {
            Self::Decimal => write_decimal(bits),
            // A constant radix lets the compiler divide without a division.
            Self::Hex => write_digits::<16>(bits, &HEX, 1),
            Self::Base32 | Self::Base32Sortable => {
                write_digits::<32>(bits, &CROCKFORD, self.width().unwrap_or(1))
            }
            Self::Base62 | Self::Base62Sortable => {
                write_digits::<62>(bits, &BASE62, self.width().unwrap_or(1))
            }
        }
    }

    pub(crate) fn read(self, text: &str) -> Result<Id, ParseIdError> {
        match self.width() {
            Some(expected) if text.len() != expected => {
                return Err(ParseIdError::WrongLength { expected, found: text.len() });
            }
            None if text.is_empty() => return Err(ParseIdError::Empty),
            None if text.len() > 1 && text.starts_with('0') => {
                return Err(ParseIdError::LeadingZero);
            }
            _ => {}
        }
        let alphabet = self.alphabet();
        let radix = alphabet.letters.len() as u64;
        let mut bits = 0_u64;
        for (at, letter) in text.bytes().enumerate() {
            let digit = alphabet.digit(letter).ok_or_else(|| invalid_letter(text, at))?;
            bits = bits
                .checked_mul(radix)
                .and_then(|bits| bits.checked_add(digit.into()))
                .ok_or(ParseIdError::TooLarge)?;
        }
        Ok(Id::from_u64(bits))
    }
}

/// The digits of a form, and the value of each letter.
struct Alphabet {
    letters: &'static [u8],
    values: [u8; 256],
}

impl Alphabet {
    const NO_DIGIT: u8 = u8::MAX;

    const fn new(letters: &'static [u8]) -> Self {
        let mut values = [Self::NO_DIGIT; 256];
        let mut value = 0;
        while (value as usize) < letters.len() {
            values[letters[value as usize] as usize] = value;
            value += 1;
        }
        Self { letters, values }
    }

    fn digit(&self, letter: u8) -> Option<u8> {
        let value = self.values[usize::from(letter)];
        (value != Self::NO_DIGIT).then_some(value)
    }
}

/// All letters before `at` are digits, so a character begins there.
#[cold]
fn invalid_letter(text: &str, at: usize) -> ParseIdError {
    let letter = text[at..].chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
    ParseIdError::InvalidLetter { letter, at }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.iter().copied().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}

/// No form has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFormat;

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a form of IDs: use one of")?;
        Format::ALL.iter().try_for_each(|format| write!(f, " {format}"))
    }
}

impl core::error::Error for UnknownFormat {}

#[expect(clippy::cast_possible_truncation, reason = "a digit is below the radix")]
fn write_digits<const RADIX: u64>(mut bits: u64, alphabet: &Alphabet, width: usize) -> IdText {
    let mut text = IdText { letters: [b'0'; TEXT_MAX], start: TEXT_MAX };
    while bits > 0 || TEXT_MAX - text.start < width {
        text.start -= 1;
        text.letters[text.start] = alphabet.letters[(bits % RADIX) as usize];
        bits /= RADIX;
    }
    text
}

/// Two digits at a time: decimal is what servers print by the million.
#[expect(clippy::cast_possible_truncation, reason = "a pair of digits is below 100")]
fn write_decimal(mut bits: u64) -> IdText {
    let mut text = IdText { letters: [b'0'; TEXT_MAX], start: TEXT_MAX };
    while bits >= 10 {
        let pair = (bits % 100) as usize * 2;
        bits /= 100;
        text.start -= 2;
        text.letters[text.start..text.start + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    // A number with an odd count of digits has its first one left; one with an even count has 0.
    if bits > 0 || text.start == TEXT_MAX {
        text.start -= 1;
        text.letters[text.start] = b'0' + bits as u8;
    }
    text
}

static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut pair = 0;
    while pair < 100 {
        pairs[2 * pair as usize] = b'0' + pair / 10;
        pairs[2 * pair as usize + 1] = b'0' + pair % 10;
        pair += 1;
    }
    pairs
};

/// The text of an ID, without an allocation. Reads as a `str`.
#[derive(Clone, Copy)]
pub struct IdText {
    letters: [u8; TEXT_MAX],
    start: usize,
}

impl IdText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.letters[self.start..]).expect("every alphabet is ASCII")
    }

    /// The text as ASCII bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.letters[self.start..]
    }
}

impl Deref for IdText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// Why a text is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseIdError {
    /// There is no text.
    Empty,
    /// A letter is not in the form's alphabet.
    InvalidLetter {
        /// The letter.
        letter: char,
        /// Its byte position.
        at: usize,
    },
    /// The first digit is a zero that the canonical form does not have.
    LeadingZero,
    /// A fixed-width form has another width.
    WrongLength {
        /// Letters of the form.
        expected: usize,
        /// Bytes of the text.
        found: usize,
    },
    /// The value needs more than 64 bits.
    TooLarge,
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an ID has at least one digit, this text has none"),
            Self::InvalidLetter { letter, at } => write!(
                f,
                "{letter:?} at position {at} is not a digit of this form: remove it, or name the \
                 form the ID is written in"
            ),
            Self::LeadingZero => f.write_str("an ID has no leading zero: remove it"),
            Self::WrongLength { expected, found } => {
                write!(f, "this form has exactly {expected} letters, the text has {found}")
            }
            Self::TooLarge => write!(f, "the value is above {}, the highest ID", u64::MAX),
        }
    }
}

impl core::error::Error for ParseIdError {}
