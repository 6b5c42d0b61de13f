//! The headers by which proxies say for whom a request is: `Forwarded` (RFC 7239), and
//! `X-Forwarded-For`, which most of them send.

use std::net::{IpAddr, SocketAddr};

use frazil_wire::{ApiError, Reason};
use hyper::HeaderMap;
use hyper::header::{FORWARDED, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// One that a request came through: its address, unless that is hidden.
type Hop = Option<IpAddr>;

/// The last address that is not a trusted proxy's: what stands before it, anybody can have written.
///
/// # Errors
/// If a header makes no sense. If there are both and they name different clients: the proxy passes
/// one of them on as the client wrote it.
pub(super) fn client(
    headers: &HeaderMap,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> Result<Option<IpAddr>, ApiError> {
    let named = |name: &HeaderName, hops: fn(&str) -> Option<Vec<Hop>>| {
        if !headers.contains_key(name) {
            return Ok(None);
        }
        let mut all = Vec::new();
        for value in headers.get_all(name) {
            let found = value.to_str().ok().and_then(hops);
            all.extend(found.ok_or_else(|| invalid(format_args!("{name} makes no sense")))?);
        }
        Ok(Some(last_untrusted(&all, &is_trusted)))
    };
    match (named(&FORWARDED, forwarded)?, named(&X_FORWARDED_FOR, x_forwarded_for)?) {
        (Some(one), Some(other)) if one != other => Err(invalid(
            "Forwarded and X-Forwarded-For name different clients: let the proxy remove one of them",
        )),
        (Some(client), _) | (None, Some(client)) => Ok(client),
        (None, None) => Ok(None),
    }
}

fn last_untrusted(hops: &[Hop], is_trusted: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    let mut client = None;
    for hop in hops.iter().rev() {
        // Who hides is somebody behind the last one that is known.
        let Some(address) = hop else { break };
        client = Some(*address);
        if !is_trusted(*address) {
            break;
        }
    }
    client
}

/// The `for` of each element; `None` if it cannot be read.
fn forwarded(value: &str) -> Option<Vec<Hop>> {
    let mut hops = Vec::new();
    for element in split(value, ',')? {
        let mut hop = None;
        for pair in split(element, ';')?.into_iter().filter(|pair| !pair.is_empty()) {
            let (name, text) = pair.split_once('=')?;
            if name.trim().eq_ignore_ascii_case("for") {
                hop = node(&unquoted(text.trim())?)?;
            }
        }
        hops.push(hop);
    }
    Some(hops)
}

fn x_forwarded_for(value: &str) -> Option<Vec<Hop>> {
    value.split(',').map(|text| node(text.trim())).collect()
}

/// The parts between separators that are not within quotes; `None` if a quote stays open.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if c == separator && !is_quoted => {
                parts.push(text[begin..at].trim());
                begin = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    (!is_quoted).then_some(parts)
}

/// A value without its quotes.
fn unquoted(text: &str) -> Option<String> {
    let Some(inner) = text.strip_prefix('"') else { return Some(text.to_owned()) };
    let (mut value, mut is_escaped) = (String::new(), false);
    for c in inner.strip_suffix('"')?.chars() {
        is_escaped = c == '\\' && !is_escaped;
        if !is_escaped {
            value.push(c);
        }
    }
    Some(value)
}

/// An address with or without a port, or a name for one that is not told; `None` if it is neither.
fn node(text: &str) -> Option<Hop> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(Some(address.to_canonical()));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(Some(address.ip().to_canonical()));
    }
    let is_hidden = text.eq_ignore_ascii_case("unknown") || text.starts_with('_');
    is_hidden.then_some(None)
}

fn invalid(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::InvalidArgument, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client that headers name, to a server that trusts 10.0.0.0/8.
    fn named(lines: &[(&'static str, &str)]) -> Result<Option<String>, Reason> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let is_trusted = |ip: IpAddr| ip.to_string().starts_with("10.");
        let client = client(&headers, is_trusted).map_err(|error| error.reason)?;
        Ok(client.map(|address| address.to_string()))
    }

    #[test]
    fn the_last_address_that_is_not_trusted_is_the_client() {
        let f = "forwarded";
        for (value, expected) in [
            ("for=192.0.2.1", Some("192.0.2.1")),
            ("For=\"192.0.2.1:80\" ; proto=http;by=203.0.113.43", Some("192.0.2.1")),
            ("for=\"[2001:db8::1]:4711\"", Some("2001:db8::1")),
            ("for=\"[2001:db8::1]\"", Some("2001:db8::1")),
            // The first was written by the client itself.
            ("for=198.51.100.9, for=192.0.2.1", Some("192.0.2.1")),
            ("for=192.0.2.1, for=10.0.0.1", Some("192.0.2.1")),
            ("for=192.0.2.1;ext=\"a,for=1.1.1.1\", for=10.0.0.1", Some("192.0.2.1")),
            ("for=\"192.0.2\\.1\"", Some("192.0.2.1")),
            ("for=10.0.0.9, for=10.0.0.1", Some("10.0.0.9")),
            ("for=unknown", None),
            ("for=192.0.2.1, for=_hidden", None),
            ("for=_hidden, for=10.0.0.1", Some("10.0.0.1")),
            ("proto=https", None),
        ] {
            assert_eq!(named(&[(f, value)]), Ok(expected.map(str::to_owned)), "{value}");
        }
        let two = [(f, "for=198.51.100.9"), (f, "for=192.0.2.1")];
        assert_eq!(named(&two), Ok(Some("192.0.2.1".to_owned())));
        assert_eq!(named(&[]), Ok(None));
    }

    #[test]
    fn the_older_header_counts_alone_or_where_both_agree() {
        let (f, x) = ("forwarded", "x-forwarded-for");
        for value in ["192.0.2.1", "9.9.9.9, 192.0.2.1,10.0.0.1", "192.0.2.1:77"] {
            assert_eq!(named(&[(x, value)]), Ok(Some("192.0.2.1".to_owned())), "{value}");
        }
        let agreed = [(f, "for=192.0.2.1"), (x, "192.0.2.1")];
        assert_eq!(named(&agreed), Ok(Some("192.0.2.1".to_owned())));
        for forged in ["for=9.9.9.9", "for=unknown"] {
            let both = [(f, forged), (x, "192.0.2.1")];
            assert_eq!(named(&both), Err(Reason::InvalidArgument), "{forged}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for value in ["for=\"192.0.2.1", "for", "for=x", "for=", "for=\"", "for=1.2.3.4:x", "\""] {
            assert_eq!(named(&[("forwarded", value)]), Err(Reason::InvalidArgument), "{value}");
        }
        for value in ["", "x", "1.2.3.4,,1.2.3.5"] {
            let header = [("x-forwarded-for", value)];
            assert_eq!(named(&header), Err(Reason::InvalidArgument), "{value}");
        }
    }
}
