//! IDs and layouts in any serde format: written as strings, because 64 bits do not survive a
//! JavaScript number; IDs are read from strings or integers.

use core::fmt;

use serde_core::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde_core::ser::{Serialize, Serializer};

use crate::id::Id;
use crate::layout::Layout;
use crate::text::Format;

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text(Format::Decimal))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Binary formats do not say what comes next, and hold what was written: a string.
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(IdVisitor)
        } else {
            deserializer.deserialize_str(IdVisitor)
        }
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ID as a decimal string or a 64-bit unsigned integer")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, bits: u64) -> Result<Id, E> {
        Ok(Id::from_u64(bits))
    }

    fn visit_i64<E: Error>(self, bits: i64) -> Result<Id, E> {
        match u64::try_from(bits) {
            Ok(bits) => Ok(Id::from_u64(bits)),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(bits), &self)),
        }
    }
}

impl Serialize for Layout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(LayoutVisitor)
    }
}

struct LayoutVisitor;

impl Visitor<'_> for LayoutVisitor {
    type Value = Layout;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a layout's name or text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Layout, E> {
        text.parse().map_err(E::custom)
    }
}
