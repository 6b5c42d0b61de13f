//! RESP replies as bytes.

use frazil_id::Run;
use frazil_wire::ApiError;

use crate::encode::{push_run, shared_digits};

/// The version of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Two,
    Three,
}

impl Version {
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// How IDs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// As strings: no client rounds those.
    #[default]
    Text,
    /// As integers.
    Integer,
}

/// Answers that were not sent yet.
#[derive(Debug)]
pub(super) struct Replies {
    pub(super) bytes: Vec<u8>,
    pub(super) version: Version,
}

impl Replies {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), version: Version::Two }
    }

    pub(super) fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    pub(super) fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    pub(super) fn failure(&mut self, error: &ApiError) {
        self.line(b'-', &error.to_resp());
    }

    #[inline]
    pub(super) fn integer(&mut self, number: i64) {
        self.bytes.push(b':');
        self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn null(&mut self) {
        let null: &[u8] = match self.version {
            Version::Two => b"$-1\r\n",
            Version::Three => b"_\r\n",
        };
        self.bytes.extend_from_slice(null);
    }

    pub(super) fn array(&mut self, length: usize) {
        self.length(b'*', length);
    }

    /// A map of so many pairs; the older protocol has none and lists them.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Two => self.length(b'*', pairs * 2),
            Version::Three => self.length(b'%', pairs),
        }
    }

    /// One ID.
    pub(super) fn id(&mut self, id: u64, shape: Shape) {
        match shape {
            Shape::Integer => self.integer(id.cast_signed()),
            Shape::Text => self.bulk(itoa::Buffer::new().format(id).as_bytes()),
        }
    }

    /// Many IDs, of an array whose length was said before.
    pub(super) fn run(&mut self, run: &Run, shape: Shape) {
        match (shape, shared_digits(run)) {
            (Shape::Integer, _) => push_run(&mut self.bytes, run, b":", b"\r\n"),
            (Shape::Text, Some(digits)) => {
                let before = format!("${digits}\r\n");
                push_run(&mut self.bytes, run, before.as_bytes(), b"\r\n");
            }
            // Only the first IDs of a layout differ in length.
            (Shape::Text, None) => (0..run.count).for_each(|place| {
                self.id(run.first.to_u64() + place * run.stride, Shape::Text);
            }),
        }
    }

    /// A line of text; whatever could end it early is blanked.
    fn line(&mut self, kind: u8, text: &str) {
        self.bytes.push(kind);
        let is_end = |byte: u8| byte == b'\r' || byte == b'\n';
        self.bytes.extend(text.bytes().map(|byte| if is_end(byte) { b' ' } else { byte }));
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn length(&mut self, kind: u8, length: usize) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }
}
