//! A body that arrives in pieces: the IDs in it are numbers as soon as they are there, so that of a
//! long body no text is kept but the little around them.

use frazil_id::Id;
use frazil_wire::{ApiError, Reason};
use serde::de::DeserializeSeed;

use super::{DecodeRequest, IdVisitor, malformed, parse_all};
use crate::config::Limits;
use crate::policy::decode_cost::check_count;

/// Bytes that an ID may take in the body on average: 20 digits, quotes, a comma, and the line break and
/// spaces of those who write for people.
const ID_BYTES: usize = 32;
/// The longest text of one ID, however it is escaped.
const ELEMENT_MAX: usize = 1024;
/// The name of the list, as nearly everybody writes it. Under another spelling (`\u0069ds`) it is read with the rest.
const IDS: &[u8] = b"ids";

/// The most bytes that a body may have: as many as the most IDs take, however small other bodies must be.
pub(in super::super) fn bytes_max(limits: &Limits) -> usize {
    (limits.max_count as usize).saturating_mul(ID_BYTES).max(limits.max_body_bytes)
}

/// What was read so far.
#[derive(Debug)]
pub(in super::super) struct DecodeBody {
    /// The most IDs.
    most: usize,
    /// The most bytes of the rest.
    rest_max: usize,
    ids: Vec<u64>,
    /// The body without the IDs: their list is empty in it.
    rest: Vec<u8>,
    /// Brackets that are open in the rest.
    depth: usize,
    place: Place,
    /// Whether a list of IDs was taken out of the rest.
    is_taken: bool,
}

/// Where the next byte stands.
#[derive(Debug)]
enum Place {
    /// Between words of the rest.
    Between(Before),
    /// In a string of the rest that began at this byte.
    Text { began: usize, is_escaped: bool },
    /// In the list of IDs.
    List(Element),
}

/// What came before, white space aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// The name of the list.
    Name,
    /// The colon after it.
    Colon,
    Other,
}

/// An element of the list of which not all has come.
#[derive(Debug, Default)]
struct Element {
    bytes: Vec<u8>,
    is_text: bool,
    is_escaped: bool,
    /// Whether there must be one: a comma came before.
    is_due: bool,
}

impl DecodeBody {
    pub(in super::super) const fn new(limits: &Limits) -> Self {
        Self {
            most: limits.max_count as usize,
            rest_max: limits.max_body_bytes,
            ids: Vec::new(),
            rest: Vec::new(),
            depth: 0,
            place: Place::Between(Before::Other),
            is_taken: false,
        }
    }

    /// Reads the next piece.
    ///
    /// # Errors
    /// What is wrong with an ID, or that there are too many.
    pub(in super::super) fn read(&mut self, mut piece: &[u8]) -> Result<(), ApiError> {
        while !piece.is_empty() {
            piece = match &mut self.place {
                Place::List(element) => {
                    let (here, rest) = piece.split_at(element.end(piece));
                    element.add(here)?;
                    match rest.split_first() {
                        None => rest,
                        Some((end, rest)) => {
                            self.end_element(*end)?;
                            rest
                        }
                    }
                }
                Place::Between(_) | Place::Text { .. } => {
                    self.read_byte(piece[0])?;
                    &piece[1..]
                }
            };
        }
        Ok(())
    }

    /// What all of it asks for.
    ///
    /// # Errors
    /// If it is not what a body may be.
    pub(in super::super) fn finish(mut self) -> Result<DecodeRequest, ApiError> {
        let mut asked = parse_all(&self.rest, self.most, !self.is_taken)?;
        if self.is_taken {
            // Kept until the answer is read.
            self.ids.shrink_to_fit();
            asked.ids = self.ids;
        }
        Ok(asked)
    }

    /// A byte of the rest.
    fn read_byte(&mut self, byte: u8) -> Result<(), ApiError> {
        self.rest.push(byte);
        if self.rest.len() > self.rest_max {
            let detail =
                format_args!("the body has more than {} bytes beside its IDs", self.rest_max);
            return Err(ApiError::new(Reason::TooLarge, detail));
        }
        self.place = match self.place {
            Place::Text { began, is_escaped: false } if byte == b'"' => {
                let text = &self.rest[began..self.rest.len() - 1];
                let is_name = self.depth == 1 && text == IDS;
                Place::Between(if is_name { Before::Name } else { Before::Other })
            }
            Place::Text { began, is_escaped } => {
                Place::Text { began, is_escaped: byte == b'\\' && !is_escaped }
            }
            Place::Between(before) => self.after(before, byte),
            // Its bytes are none of the rest.
            Place::List(_) => return Ok(()),
        };
        Ok(())
    }

    /// Where the byte after this one stands, between words.
    fn after(&mut self, before: Before, byte: u8) -> Place {
        match byte {
            b'"' => return Place::Text { began: self.rest.len(), is_escaped: false },
            b'[' if before == Before::Colon => {
                self.is_taken = true;
                return Place::List(Element::default());
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if before == Before::Name => return Place::Between(Before::Colon),
            b' ' | b'\t' | b'\r' | b'\n' => return Place::Between(before),
            _ => {}
        }
        Place::Between(Before::Other)
    }

    /// An element of the list is whole; `end` is the comma or bracket after it.
    fn end_element(&mut self, end: u8) -> Result<(), ApiError> {
        let Place::List(element) = &mut self.place else { return Ok(()) };
        let is_last = end == b']';
        let is_none = element.bytes.is_empty() && is_last && !element.is_due;
        if !is_none {
            self.ids.push(id(&element.bytes, self.ids.len())?);
            check_count(self.ids.len(), self.most)?;
        }
        if is_last {
            self.rest.push(end);
            self.place = Place::Between(Before::Other);
        } else {
            element.bytes.clear();
            element.is_due = true;
        }
        Ok(())
    }
}

impl Element {
    /// How many of these bytes belong to it: up to a comma or a bracket that is not in a string.
    fn end(&mut self, piece: &[u8]) -> usize {
        for (place, byte) in piece.iter().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_text => self.is_escaped = true,
                b'"' => self.is_text = !self.is_text,
                b',' | b']' if !self.is_text => return place,
                _ => {}
            }
        }
        piece.len()
    }

    /// Takes bytes of it; white space before it is left out.
    fn add(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        let bytes = if self.bytes.is_empty() { bytes.trim_ascii_start() } else { bytes };
        if self.bytes.len() + bytes.len() > ELEMENT_MAX {
            let detail = format_args!("an ID is longer than {ELEMENT_MAX} bytes");
            return Err(ApiError::new(Reason::MalformedId, detail));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// The ID at a place of the list.
fn id(bytes: &[u8], place: usize) -> Result<u64, ApiError> {
    // As nearly all are written.
    if let [b'"', digits @ .., b'"'] = bytes.trim_ascii_end()
        && digits.iter().all(u8::is_ascii_digit)
        && let Ok(text) = std::str::from_utf8(digits)
    {
        return text.parse().map(Id::to_u64).map_err(|error| malformed(place, &error));
    }
    let mut refusal = None;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let id = IdVisitor { place, refusal: &mut refusal }.deserialize(&mut json);
    let id = id.and_then(|id| json.end().map(|()| id));
    id.map_err(|error| {
        refusal.unwrap_or_else(|| super::without_position(format_args!("ids[{place}]: "), &error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 3;

    fn limits() -> Limits {
        Limits { max_count: 3, max_body_bytes: 100, ..Limits::default() }
    }

    fn read(pieces: &[&[u8]]) -> Result<DecodeRequest, Reason> {
        let mut body = DecodeBody::new(&limits());
        let read = pieces.iter().try_for_each(|piece| body.read(piece));
        read.and_then(|()| body.finish()).map_err(|error| error.reason)
    }

    /// Six are read, the others refused.
    const BODIES: [&str; 33] = [
        r#"{"ids":["7",8,"\u0039"]}"#,
        r#"{"layout":"x","ids":[]}"#,
        r#"{"ids":[18446744073709551615],"layout":null}"#,
        r#" { "ids" : [ "1" , 2 ] , "layout" : "\"ids\":[7]" } "#,
        r#"{"\u0069ds":["1",2]}"#,
        r#"{"ids":["00000000000000000001"]}"#,
        "{\n  \"ids\": [\n    \"1\",\n    \"2\"\n  ]\n}\n",
        r#"{"ids":[1,2,3,4]}"#,
        r#"{"ids":["x"]}"#,
        r#"{"ids":["1,2"]}"#,
        r#"{"ids":["1]"]}"#,
        r#"{"ids":["\""]}"#,
        r#"{"ids":[""]}"#,
        "",
        "[]",
        "{}",
        r#"{"ids":7}"#,
        r#"{"ids":[-1]}"#,
        r#"{"ids":[18446744073709551616]}"#,
        r#"{"ids":[1.5]}"#,
        r#"{"ids":[null]}"#,
        r#"{"ids":[[1]]}"#,
        r#"{"ids":[{"ids":[1]}]}"#,
        r#"{"layout":{"ids":[1]},"ids":[1]}"#,
        r#"{"ids":[,]}"#,
        r#"{"ids":[1,]}"#,
        r#"{"ids":[1 2]}"#,
        r#"{"ids":[1"2"]}"#,
        r#"{"ids":[],"more":1}"#,
        r#"{"ids":[1],"ids":[2]}"#,
        r#"{"ids":[]} x"#,
        r#"{"ids":["1"#,
        r#"{"ids":[1"#,
    ];

    #[test]
    fn pieces_of_any_size_are_read_as_the_whole_is() {
        for body in BODIES {
            let bytes = body.as_bytes();
            let whole = parse_all(bytes, MOST, true).map_err(|error| error.reason);
            for size in 1..=bytes.len().max(1) {
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                assert_eq!(read(&pieces), whole, "{body} in pieces of {size}");
            }
        }
        let is_read = |body: &&str| parse_all(body.as_bytes(), MOST, true).is_ok();
        assert_eq!(BODIES.iter().filter(|body| is_read(body)).count(), 6, "the control");
    }

    #[test]
    fn what_is_not_an_id_is_kept_no_longer_than_other_bodies_are() {
        let long = format!(r#"{{"layout":"{}","ids":[1]}}"#, "x".repeat(100));
        assert_eq!(read(&[long.as_bytes()]), Err(Reason::TooLarge));
        let long = format!(r#"{{"ids":["{}"]}}"#, "0".repeat(ELEMENT_MAX));
        assert_eq!(read(&[long.as_bytes()]), Err(Reason::MalformedId));
        let spaces = format!(r#"{{"ids":[{}"1"]}}"#, " ".repeat(9 * ELEMENT_MAX));
        assert_eq!(read(&[spaces.as_bytes()]).unwrap().ids, [1]);
    }

    #[test]
    fn a_body_may_be_as_long_as_the_most_ids_are() {
        let limits = Limits::default();
        let ids = limits.max_count as usize;
        assert!(bytes_max(&limits) > ids * r#""18446744073709551615","#.len());
        let small = Limits { max_count: 1, ..limits };
        assert_eq!(bytes_max(&small), small.max_body_bytes);
    }
}
