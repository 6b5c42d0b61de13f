//! The names in a client's certificate, by which it is known without a key.

mod der;
mod validity;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use self::der::{IA5_STRING, OBJECT_IDENTIFIER, PRINTABLE_STRING, UTF8_STRING};
pub use self::validity::Validity;

/// A certificate that was verified, by its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    names: Vec<CertificateName>,
}

/// A name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CertificateName {
    /// The whole subject, as RFC 4514 writes it.
    Subject(String),
    /// A DNS name among the alternative names of the subject, in small letters.
    Dns(String),
    /// A URI among them.
    Uri(String),
}

impl Certificate {
    /// Those of a certificate; `None` if it is none.
    pub(crate) fn of(der: &CertificateDer<'_>) -> Option<Self> {
        let certificate = EndEntityCert::try_from(der).ok()?;
        let subject = subject(certificate.subject()).map(CertificateName::Subject);
        let dns = certificate.valid_dns_names();
        let dns = dns.map(|name| CertificateName::Dns(name.to_ascii_lowercase()));
        let uris = certificate.valid_uri_names().map(|uri| CertificateName::Uri(uri.to_owned()));
        Some(Self { names: subject.into_iter().chain(dns).chain(uris).collect() })
    }

    pub(crate) fn names(&self) -> &[CertificateName] {
        &self.names
    }
}

impl CertificateName {
    /// One of the alternative names, as a file of keys has it: only URIs have a colon.
    pub(crate) fn alternative(text: &str) -> Self {
        match text.contains(':') {
            true => Self::Uri(text.to_owned()),
            false => Self::Dns(text.to_ascii_lowercase()),
        }
    }
}

/// The kinds of attributes that are known: their names, and the content of their identifiers.
const ATTRIBUTES: [(&str, &[u8]); 11] = [
    ("CN", &[0x55, 4, 3]),
    ("serialNumber", &[0x55, 4, 5]),
    ("C", &[0x55, 4, 6]),
    ("L", &[0x55, 4, 7]),
    ("ST", &[0x55, 4, 8]),
    ("STREET", &[0x55, 4, 9]),
    ("O", &[0x55, 4, 10]),
    ("OU", &[0x55, 4, 11]),
    ("UID", &[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1]),
    ("DC", &[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25]),
    ("emailAddress", &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1]),
];

/// A subject as RFC 4514 writes it, the last part first; `None` if it has parts of another kind.
fn subject(der: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    for part in der::all(der, der::SET)? {
        let attributes = der::all(part, der::SEQUENCE)?;
        let texts: Option<Vec<String>> = attributes.into_iter().map(attribute).collect();
        parts.push(texts?.join("+"));
    }
    parts.reverse();
    (!parts.is_empty()).then(|| parts.join(","))
}

fn attribute(der: &[u8]) -> Option<String> {
    let kind = der::next(der).filter(|kind| kind.tag == OBJECT_IDENTIFIER)?;
    let (name, _) = ATTRIBUTES.iter().find(|(_, identifier)| *identifier == kind.content)?;
    let value = der::next(kind.rest).filter(|value| value.rest.is_empty())?;
    if ![UTF8_STRING, PRINTABLE_STRING, IA5_STRING].contains(&value.tag) {
        return None;
    }
    let text = str::from_utf8(value.content).ok()?;
    Some(format!("{name}={}", escaped(text)))
}

/// A value in which nothing can be taken for the beginning of another one.
fn escaped(text: &str) -> String {
    let last = text.chars().count().saturating_sub(1);
    let mut escaped = String::new();
    for (place, c) in text.chars().enumerate() {
        match c {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => escaped.extend(['\\', c]),
            '#' if place == 0 => escaped.extend(['\\', c]),
            ' ' if place == 0 || place == last => escaped.extend(['\\', c]),
            c if c.is_ascii_control() => escaped += &format!("\\{:02X}", u32::from(c)),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn value(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(content.len()).unwrap()][..], content].concat()
    }

    fn part(identifier: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        let pair = [value(OBJECT_IDENTIFIER, identifier), value(tag, text)].concat();
        value(der::SEQUENCE, &pair)
    }

    fn set(parts: &[Vec<u8>]) -> Vec<u8> {
        value(der::SET, &parts.concat())
    }

    const CN: &[u8] = &[0x55, 4, 3];
    const O: &[u8] = &[0x55, 4, 10];

    #[test]
    fn a_subject_is_written_as_everybody_writes_it() {
        let organisation = part(O, PRINTABLE_STRING, b"Example, Inc.");
        let orders = part(CN, UTF8_STRING, b"orders");
        let two = [set(from_ref(&organisation)), set(from_ref(&orders))].concat();
        assert_eq!(subject(&two).unwrap(), r"CN=orders,O=Example\, Inc.");
        assert_eq!(subject(&set(&[orders, organisation])).unwrap(), r"CN=orders+O=Example\, Inc.");
    }

    #[test]
    fn no_value_can_look_like_two() {
        for (text, expected) in [
            ("x,CN=admin", r"CN=x\,CN=admin"),
            ("x+CN=admin", r"CN=x\+CN=admin"),
            ("x\\,CN=admin", r"CN=x\\\,CN=admin"),
            (" #x ", r"CN=\ #x\ "),
            ("#x", r"CN=\#x"),
            ("a\0b", r"CN=a\00b"),
        ] {
            let der = set(&[part(CN, UTF8_STRING, text.as_bytes())]);
            assert_eq!(subject(&der).unwrap(), expected);
        }
    }

    #[test]
    fn what_cannot_be_written_has_no_subject() {
        let orders = set(&[part(CN, UTF8_STRING, b"orders")]);
        for end in 0..orders.len() {
            assert_eq!(subject(&orders[..end]), None, "{end}");
        }
        let (unknown, teletex) = (part(&[0x55, 4, 99], UTF8_STRING, b"x"), part(CN, 0x14, b"x"));
        for der in [set(&[unknown]), set(&[teletex]), set(&[part(CN, UTF8_STRING, b"\xff")])] {
            assert_eq!(subject(&[orders.clone(), der].concat()), None);
        }
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_names() {
        assert_eq!(Certificate::of(&CertificateDer::from(vec![0x30, 1, 2])), None);
    }
}
