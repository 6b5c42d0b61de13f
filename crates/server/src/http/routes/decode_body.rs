//! The body of `POST /v1/ids:decode`: IDs are numbers as soon as they are read, and no more of
//! them are read than may be.

mod pieces;

use std::fmt;

use frazil_id::Id;
use frazil_wire::{ApiError, Reason};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

pub(super) use self::pieces::{DecodeBody, bytes_max};
use crate::http::body::nonsense;
use crate::policy::decode_cost::check_count;

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodeRequest {
    pub(super) ids: Vec<u64>,
    pub(super) layout: Option<String>,
}

/// Reads a body that has come whole, with at most so many IDs. Without its IDs an error has no position: it would not be
/// the client's.
fn parse_all(bytes: &[u8], most: usize, has_ids: bool) -> Result<DecodeRequest, ApiError> {
    let mut refusal = None;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let reader = DecodeRequestVisitor { most, refusal: &mut refusal };
    let asked = json.deserialize_map(reader).and_then(|asked| json.end().map(|()| asked));
    asked.map_err(|error| match refusal {
        Some(refusal) => refusal,
        None if has_ids => nonsense(&error),
        None => without_position(format_args!(""), &error),
    })
}

/// The same as [`nonsense`] of a part of the body.
fn without_position(part: fmt::Arguments<'_>, error: &serde_json::Error) -> ApiError {
    let text = error.to_string();
    let why = text.split_once(" at line ").map_or(&*text, |(why, _)| why);
    nonsense(&format_args!("{part}{why}"))
}

/// Reads the whole. What is wrong with an ID is left in `refusal`: errors of JSON have no reasons.
struct DecodeRequestVisitor<'a> {
    most: usize,
    refusal: &'a mut Option<ApiError>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Ids,
    Layout,
}

impl<'de> Visitor<'de> for DecodeRequestVisitor<'_> {
    type Value = DecodeRequest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with ids")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<DecodeRequest, M::Error> {
        let (mut ids, mut layout) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::Ids if ids.is_some() => return Err(M::Error::duplicate_field("ids")),
                Field::Ids => {
                    let (most, refusal) = (self.most, &mut *self.refusal);
                    ids = Some(map.next_value_seed(IdsVisitor { most, refusal })?);
                }
                Field::Layout if layout.is_some() => {
                    return Err(M::Error::duplicate_field("layout"));
                }
                Field::Layout => layout = Some(map.next_value()?),
            }
        }
        let ids = ids.ok_or_else(|| M::Error::missing_field("ids"))?;
        Ok(DecodeRequest { ids, layout: layout.flatten() })
    }
}

struct IdsVisitor<'a> {
    most: usize,
    refusal: &'a mut Option<ApiError>,
}

impl<'de> DeserializeSeed<'de> for IdsVisitor<'_> {
    type Value = Vec<u64>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Vec<u64>, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for IdsVisitor<'_> {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of IDs")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Vec<u64>, S::Error> {
        let Self { most, refusal } = self;
        let mut ids = Vec::new();
        while let Some(id) =
            list.next_element_seed(IdVisitor { place: ids.len(), refusal: &mut *refusal })?
        {
            ids.push(id);
            check_count(ids.len(), most).map_err(|error| refuse(refusal, error))?;
        }
        // Kept until the answer is read.
        ids.shrink_to_fit();
        Ok(ids)
    }
}

/// Reads an ID as clients write it: in a string, or as a number if their numbers are wide enough.
struct IdVisitor<'a> {
    place: usize,
    refusal: &'a mut Option<ApiError>,
}

impl<'de> DeserializeSeed<'de> for IdVisitor<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<u64, D::Error> {
        reader.deserialize_any(self)
    }
}

impl Visitor<'_> for IdVisitor<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ID in a string")
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<u64, E> {
        Ok(id)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let Self { place, refusal } = self;
        let id: Result<Id, _> = text.parse();
        id.map(Id::to_u64).map_err(|error| refuse(refusal, malformed(place, &error)))
    }
}

/// An ID that is none, and where it stands.
pub(super) fn malformed(place: usize, why: &dyn fmt::Display) -> ApiError {
    ApiError::new(Reason::MalformedId, format_args!("ids[{place}]: {why}"))
}

/// Leaves the error for whoever reads on, and ends the reading.
fn refuse<E: Error>(refusal: &mut Option<ApiError>, error: ApiError) -> E {
    *refusal = Some(error);
    E::custom("refused")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_strings_or_numbers_and_everything_else_is_refused() {
        let asked = |text: &str| parse_all(text.as_bytes(), 3, true).map_err(|error| error.reason);
        let ids = |ids: &[u64], layout: Option<&str>| {
            Ok(DecodeRequest { ids: ids.to_vec(), layout: layout.map(str::to_owned) })
        };
        assert_eq!(asked(r#"{"ids":["7",8,"\u0039"]}"#), ids(&[7, 8, 9], None));
        assert_eq!(asked(r#"{"layout":"x","ids":[]}"#), ids(&[], Some("x")));
        assert_eq!(
            asked(r#"{"ids":[18446744073709551615],"layout":null}"#),
            ids(&[u64::MAX], None)
        );
        assert_eq!(asked(r#"{"ids":[1,2,3,4]}"#), Err(Reason::CountOutOfRange));
        assert_eq!(asked(r#"{"ids":["x"]}"#), Err(Reason::MalformedId));
        for text in [
            "",
            "[]",
            "{}",
            r#"{"ids":7}"#,
            r#"{"ids":[-1]}"#,
            r#"{"ids":[18446744073709551616]}"#,
            r#"{"ids":[1.5]}"#,
            r#"{"ids":[null]}"#,
            r#"{"ids":[],"more":1}"#,
            r#"{"ids":[],"ids":[]}"#,
            r#"{"ids":[]} x"#,
            r#"{"ids":["1"#,
        ] {
            assert_eq!(asked(text), Err(Reason::InvalidArgument), "{text}");
        }
    }
}
