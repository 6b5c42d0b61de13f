//! The form of an answer that a client accepts.

use frazil_wire::{ApiError, Reason};

/// The forms of IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Text,
    Binary,
}

impl Form {
    /// In the order in which they are preferred when a client does not care.
    const ALL: [Self; 3] = [Self::Json, Self::Text, Self::Binary];

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Text => "text/plain; charset=utf-8",
            Self::Binary => "application/octet-stream",
        }
    }

    const fn halves(self) -> (&'static str, &'static str) {
        match self {
            Self::Json => ("application", "json"),
            Self::Text => ("text", "plain"),
            Self::Binary => ("application", "octet-stream"),
        }
    }

    /// The form that an `Accept` header likes best.
    pub(super) fn accepted(accept: Option<&str>) -> Result<Self, ApiError> {
        let accept = match accept {
            None | Some("" | "*/*" | "application/json") => return Ok(Self::Json),
            Some(accept) => accept,
        };
        let liked = Self::ALL.iter().map(|form| (form.quality(accept), form));
        // The first of equals is preferred, and `max_by_key` would take the last.
        match liked.rev().max_by_key(|(quality, _)| *quality) {
            Some((quality, form)) if quality > 0 => Ok(*form),
            _ => Err(ApiError::new(
                Reason::NotAcceptable,
                "the Accept header allows none of application/json, text/plain and \
                 application/octet-stream",
            )),
        }
    }

    /// How much a header likes this form, in thousandths: the most specific range counts.
    fn quality(self, accept: &str) -> u16 {
        let (kind, subtype) = self.halves();
        let mut best = (0, 0);
        for range in accept.split(',') {
            let mut parameters = range.split(';').map(str::trim);
            let media = parameters.next().unwrap_or_default();
            let Some((range_kind, range_subtype)) = media.split_once('/') else { continue };
            let specific = match (range_kind, range_subtype) {
                ("*", "*") => 1,
                (own, "*") if own.eq_ignore_ascii_case(kind) => 2,
                (own, sub)
                    if own.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subtype) =>
                {
                    3
                }
                _ => continue,
            };
            let quality = parameters.find_map(weight).map_or(1000, thousandths);
            if specific > best.0 {
                best = (specific, quality);
            }
        }
        best.1
    }
}

/// The value of a `q` parameter.
fn weight(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
fn thousandths(quality: &str) -> u16 {
    let quality: f32 = quality.parse().unwrap_or(0.0);
    if (0.0..=1.0).contains(&quality) { (quality * 1000.0) as u16 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_liked_form_is_chosen() {
        for (accept, form) in [
            ("text/plain", Some(Form::Text)),
            ("TEXT/Plain; charset=utf-8", Some(Form::Text)),
            ("application/octet-stream", Some(Form::Binary)),
            ("application/*", Some(Form::Json)),
            ("text/*", Some(Form::Text)),
            ("text/html, */*;q=0.1", Some(Form::Json)),
            ("application/json;q=0.5, text/plain", Some(Form::Text)),
            ("application/json; Q = 0.1, text/plain", Some(Form::Text)),
            ("*/*, application/json;q=0", Some(Form::Text)),
            ("application/json;q=0", None),
            ("text/html", None),
            ("nonsense", None),
            ("text/plain;q=7", None),
        ] {
            assert_eq!(Form::accepted(Some(accept)).ok(), form, "{accept}");
        }
        assert_eq!(Form::accepted(None), Ok(Form::Json));
    }
}
