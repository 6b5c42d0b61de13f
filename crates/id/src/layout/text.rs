//! The text form: `time:41 worker:10 sequence:12 @2024-01-01T00:00:00Z tick:1ms`.

use core::fmt;
use core::str::FromStr;

use super::{Layout, LayoutError, PARTS_MAX, PRESETS};
use crate::rfc3339;

/// Time, sequence and the worker parts, plus one so that one too many is counted, not cut off.
const FIELDS_MAX: usize = PARTS_MAX + 3;

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, bits) in self.fields() {
            write!(f, "{name}:{bits} ")?;
        }
        let epoch_ms = self.epoch_ms();
        let style = if epoch_ms.is_multiple_of(1000) {
            rfc3339::Precision::Seconds
        } else {
            rfc3339::Precision::Milliseconds
        };
        let epoch = rfc3339::Instant::from_unix_ms(epoch_ms.cast_signed());
        write!(f, "@{} tick:{}ms", epoch.display(style), self.tick_ms())
    }
}

/// Reads the name of a preset or a layout's text form. The epoch may be Unix milliseconds, the
/// tick may be left out (1 ms) or given in seconds; fields keep their order.
impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        if let Some((_, preset)) = PRESETS.iter().find(|(name, _)| *name == text) {
            return Ok(*preset);
        }
        if !text.contains(':') {
            return Err(LayoutError::Unknown);
        }
        let mut fields = [("", 0); FIELDS_MAX];
        let mut fields_len = 0;
        let mut epoch_ms = None;
        let mut tick_ms = None;
        for word in text.split_ascii_whitespace() {
            if let Some(epoch) = word.strip_prefix('@') {
                once(&mut epoch_ms, parse_epoch(epoch)?)?;
            } else if let Some(tick) = word.strip_prefix("tick:") {
                once(&mut tick_ms, parse_tick(tick)?)?;
            } else {
                let field = fields.get_mut(fields_len).ok_or(LayoutError::TooManyParts)?;
                *field = parse_field(word)?;
                fields_len += 1;
            }
        }
        let epoch_ms = epoch_ms.ok_or(LayoutError::NoEpoch)?;
        Self::new(&fields[..fields_len], epoch_ms, tick_ms.unwrap_or(1))
    }
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), LayoutError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(LayoutError::RepeatedField),
    }
}

fn parse_epoch(text: &str) -> Result<u64, LayoutError> {
    if let Some(epoch_ms) = parse_number(text) {
        return Ok(epoch_ms);
    }
    let instant: rfc3339::Instant = text.parse().map_err(|_| LayoutError::EpochText)?;
    u64::try_from(instant.unix_ms()).map_err(|_| LayoutError::EpochText)
}

fn parse_tick(text: &str) -> Result<u32, LayoutError> {
    let (number, unit_ms) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s').ok_or(LayoutError::TickText)?, 1000),
    };
    parse_number(number)
        .and_then(|length| u32::try_from(length).ok())
        .and_then(|length| length.checked_mul(unit_ms))
        .ok_or(LayoutError::TickText)
}

fn parse_field(word: &str) -> Result<(&str, u32), LayoutError> {
    let (name, bits) = word.split_once(':').ok_or(LayoutError::FieldText)?;
    let bits = parse_number(bits).and_then(|bits| u32::try_from(bits).ok());
    Ok((name, bits.ok_or(LayoutError::FieldText)?))
}

/// Digits only: `str::parse` would take a leading `+`.
fn parse_number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
