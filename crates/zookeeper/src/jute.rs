//! Jute, the encoding of ZooKeeper's messages: big-endian numbers, and texts, buffers and vectors
//! after their length.

use crate::error::Error;

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn int(&mut self, value: i32) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn long(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.0.push(u8::from(value));
        self
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.length(value.len());
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    pub(crate) fn texts(&mut self, values: &[&str]) -> &mut Self {
        self.length(values.len());
        for value in values {
            self.text(value);
        }
        self
    }

    /// A length, before what it is of. One that does not fit is larger than any request may be, and
    /// the request is refused for its size.
    pub(crate) fn length(&mut self, length: usize) -> &mut Self {
        self.int(i32::try_from(length).unwrap_or(i32::MAX))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A message that is being read. Nothing in it is trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) const fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(crate) fn int(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<i64, Error> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Error> {
        self.array::<1>().map(|[byte]| byte != 0)
    }

    /// Bytes; none if there is no buffer, which is a length of -1.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::try_from(self.int()?.max(0)).unwrap_or(0);
        self.take(length)
    }

    /// A text. Java writes what is beyond 16 bits in a form that is not UTF-8: such characters are
    /// replaced.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Texts. Nothing is reserved for those that are only announced.
    pub(crate) fn texts(&mut self) -> Result<Vec<String>, Error> {
        let count = self.int()?;
        (0..count).map(|_| self.text()).collect()
    }

    /// What is left.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(taken)
    }
}

const TRUNCATED: Error = Error::Malformed("it ends too early");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            int: i32, long: i64, bool: bool, bytes: Vec<u8>, texts in proptest::collection::vec(".{0,20}", 0..9),
        ) {
            let mut encoder = Encoder::default();
            let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
            encoder.int(int).long(long).bool(bool).bytes(&bytes).texts(&borrowed);
            let message = encoder.into_bytes();
            let mut decoder = Decoder::new(&message);
            prop_assert_eq!(decoder.int().unwrap(), int);
            prop_assert_eq!(decoder.long().unwrap(), long);
            prop_assert_eq!(decoder.bool().unwrap(), bool);
            prop_assert_eq!(decoder.bytes().unwrap(), bytes);
            prop_assert_eq!(decoder.texts().unwrap(), texts);
            prop_assert!(decoder.rest().is_empty());
        }

        #[test]
        fn a_message_that_is_cut_off_is_refused(texts in proptest::collection::vec(".{0,20}", 1..4)) {
            let mut encoder = Encoder::default();
            let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
            encoder.texts(&borrowed);
            let message = encoder.into_bytes();
            for length in 0..message.len() {
                prop_assert!(Decoder::new(&message[..length]).texts().is_err());
            }
        }
    }

    #[test]
    fn lengths_that_lie_are_refused_and_no_length_is_nothing() {
        for length in [i32::MAX, 5, i32::MAX - 3] {
            let mut message = length.to_be_bytes().to_vec();
            message.extend_from_slice(b"four");
            assert!(Decoder::new(&message).bytes().is_err(), "{length}");
            assert!(Decoder::new(&message).texts().is_err(), "{length}");
        }
        for length in [-1, i32::MIN] {
            assert_eq!(Decoder::new(&length.to_be_bytes()).bytes().unwrap(), b"");
            assert!(Decoder::new(&length.to_be_bytes()).texts().unwrap().is_empty());
        }
    }

    #[test]
    fn a_text_that_is_not_utf_8_has_replacements() {
        // A pair of surrogates, as Java writes it.
        let text = b"\0\0\0\x07a\xed\xa0\xbd\xed\xb8\x80";
        assert!(Decoder::new(text).text().unwrap().starts_with('a'));
    }
}
