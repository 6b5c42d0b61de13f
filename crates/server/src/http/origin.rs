//! Pages of other origins: what one of them makes a browser ask for without a key is refused, also
//! where the browser has a certificate.

use frazil_wire::{ApiError, Reason};
use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};

use crate::net::listener::Remote;
use crate::policy::audit::{self, KeyOwner, RefusalKind};

/// What a browser says of the page that asks.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a page of another origin would have to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingCredential {
    /// The server has none, and lets everybody in.
    Keys,
    /// A certificate let the browser in.
    Key,
}

/// For all that changes something, and for all that a certificate lets in: a page asks for it from its own origin alone. Over loopback a
/// name that somebody made to lead here is no origin of the server's. Whoever is no browser may
/// call the server as they like.
pub(super) fn check(
    headers: &HeaderMap,
    remote: &Remote,
    missing: MissingCredential,
) -> Result<(), ApiError> {
    let (origin, site) = (text(headers, ORIGIN), text(headers, FETCH_SITE));
    if origin.is_none() && site.is_none() {
        return Ok(());
    }
    let host = text(headers, HOST).unwrap_or_default();
    let is_own = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    // Where a certificate lets in there is TLS, and the browser has checked the server's name.
    let can_rebind = missing == MissingCredential::Keys && remote.address.is_loopback();
    let is_rebound = can_rebind && !is_plain(host);
    match is_own && is_same(origin, host) && !is_rebound {
        true => Ok(()),
        false => Err(refused(remote, missing)),
    }
}

/// For administration: the server's own origin, under a name that nobody can have made to lead here.
pub(super) fn check_admin(headers: &HeaderMap, remote: &Remote) -> Result<(), ApiError> {
    if is_own(headers) { Ok(()) } else { Err(refused(remote, MissingCredential::Keys)) }
}

fn is_own(headers: &HeaderMap) -> bool {
    let host = text(headers, HOST).unwrap_or_default();
    is_plain(host) && is_same(text(headers, ORIGIN), host)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Whether it is an address, or the machine itself.
fn is_plain(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|digit| digit.is_ascii_digit()) { name } else { host }
    });
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok()
}

fn is_same(origin: Option<&str>, host: &str) -> bool {
    origin.is_none_or(|origin| origin.split_once("://").is_some_and(|(_, origin)| origin == host))
}

fn refused(remote: &Remote, missing: MissingCredential) -> ApiError {
    let missing = match missing {
        MissingCredential::Keys => "without keys",
        MissingCredential::Key => "without a key",
    };
    let detail = format_args!("a page of another origin asks for this: {missing} it is refused");
    let error = ApiError::new(Reason::Forbidden, detail);
    audit::refused(remote, KeyOwner::Unknown("none"), RefusalKind::Origin, &error);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_own_pages_administer_without_a_key() {
        let check = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            is_own(&headers)
        };
        for (host, origin) in [
            ("127.0.0.1:7783", None),
            ("localhost:7783", Some("http://localhost:7783")),
            ("[::1]:7783", Some("https://[::1]:7783")),
            ("[::1]", None),
            ("localhost", None),
        ] {
            assert!(check(host, origin), "{host} {origin:?}");
        }
        for (host, origin) in [
            ("127.0.0.1:7783", Some("https://evil.example")),
            ("127.0.0.1:7783", Some("null")),
            // A name that was made to lead here.
            ("evil.example:7783", Some("http://evil.example:7783")),
            ("evil.example", None),
            ("", None),
        ] {
            assert!(!check(host, origin), "{host} {origin:?}");
        }
    }
}
