//! The validity of certificates.

use std::path::Path;

use frazil::coord::UnixMs;
use frazil_id::rfc3339;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::der::{GENERALIZED_TIME, SEQUENCE, UTC_TIME, Value, next};

/// From when until when a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Validity {
    /// From then on, in Unix milliseconds.
    pub from: UnixMs,
    /// Before then.
    pub until: UnixMs,
}

impl Validity {
    /// Of every certificate in a file, if all can be read.
    #[must_use]
    pub fn of_file(path: &Path) -> Option<Vec<Self>> {
        let certificates = CertificateDer::pem_file_iter(path).ok()?;
        certificates.map(|certificate| Self::of(&certificate.ok()?)).collect()
    }

    /// Of a certificate: RFC 5280, section 4.1.
    fn of(der: &[u8]) -> Option<Self> {
        let certificate = next(der)?.content;
        let mut body = next(certificate)?.content;
        if next(body)?.tag == VERSION {
            body = next(body)?.rest;
        }
        for _ in ["the serial number", "the algorithm", "the issuer"] {
            body = next(body)?.rest;
        }
        let validity = next(body).filter(|found| found.tag == SEQUENCE)?;
        let from = next(validity.content)?;
        let until = next(from.rest)?;
        Some(Self { from: instant(&from)?, until: instant(&until)? })
    }
}

const VERSION: u8 = 0xa0;

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`.
fn instant(value: &Value<'_>) -> Option<UnixMs> {
    let text = str::from_utf8(value.content).ok().filter(|text| text.is_ascii())?;
    let whole = match (value.tag, text.len()) {
        (UTC_TIME, 13) if *text < *"50" => format!("20{text}"),
        (UTC_TIME, 13) => format!("19{text}"),
        (GENERALIZED_TIME, 15) => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| &whole[from..to];
    let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
    let (hour, minute, second) = (part(8, 10), part(10, 12), part(12, 15));
    let text = format!("{year}-{month}-{day}T{hour}:{minute}:{second}");
    let instant: rfc3339::Instant = text.parse().ok()?;
    Some(u64::try_from(instant.unix_ms()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82][..], &length, content].concat()
    }

    fn certificate(before_serial: &[u8], times: [(u8, &str); 2]) -> Vec<u8> {
        let times = times.map(|(tag, text)| value(tag, text.as_bytes())).concat();
        let named = value(SEQUENCE, b"\x05\x00");
        let serial = [2, 1, 7];
        let body =
            [before_serial, &serial, &named, &named, &value(SEQUENCE, &times), &named].concat();
        value(SEQUENCE, &value(SEQUENCE, &body))
    }

    #[test]
    fn both_forms_of_time_are_read() {
        let times = [(UTC_TIME, "700101000001Z"), (GENERALIZED_TIME, "20500101000000Z")];
        let expected = Validity { from: 1000, until: 2_524_608_000_000 };
        let version = [VERSION, 3, 2, 1, 2];
        for before in [&version[..], &[]] {
            assert_eq!(Validity::of(&certificate(before, times)), Some(expected));
        }
        let times = [(UTC_TIME, "500101000000Z"), (UTC_TIME, "491231235959Z")];
        let expected = Validity { from: 0, until: 2_524_607_999_000 };
        assert_eq!(Validity::of(&certificate(&version, times)), Some(expected));
    }

    #[test]
    fn what_is_no_certificate_has_no_validity_and_does_no_harm() {
        let whole = certificate(&[], [(UTC_TIME, "700101000001Z"), (UTC_TIME, "700101000001Z")]);
        for end in 0..whole.len() {
            assert_eq!(Validity::of(&whole[..end]), None, "{end}");
        }
        for (tag, text) in [
            (UTC_TIME, "701301000001Z"),
            (UTC_TIME, "7001010000Z"),
            (GENERALIZED_TIME, "700101000001Z"),
            (4, "700101000001Z"),
            (UTC_TIME, "70010100000\u{e9}"),
        ] {
            assert_eq!(Validity::of(&certificate(&[], [(tag, text); 2])), None, "{text}");
        }
    }
}
