//! The address of the server that is measured, and the protocol it is asked in.

use std::fmt;

use crate::args::ProtocolArg;
use crate::output::Failure;

/// Schemes with the protocol that they mean, and whether TLS is spoken.
const SCHEMES: [(&str, ProtocolArg, bool); 8] = [
    ("http://", ProtocolArg::Http, false),
    ("https://", ProtocolArg::Http, true),
    ("grpc://", ProtocolArg::Grpc, false),
    ("grpcs://", ProtocolArg::Grpc, true),
    ("resp://", ProtocolArg::Resp, false),
    ("resps://", ProtocolArg::Resp, true),
    ("redis://", ProtocolArg::Resp, false),
    ("rediss://", ProtocolArg::Resp, true),
];

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) protocol: ProtocolArg,
    pub(super) is_secure: bool,
    /// A name or a number; no brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Whether it is the local node because nobody named another.
    pub(super) is_default: bool,
}

impl Address {
    /// What was typed, or the local node.
    pub(super) fn new(url: Option<&str>, protocol: Option<ProtocolArg>) -> Result<Self, Failure> {
        let Some(url) = url else {
            return Ok(Self::local(protocol.unwrap_or(ProtocolArg::Http)));
        };
        let address = Self::parse(url).map_err(Failure::usage)?;
        match protocol {
            Some(protocol) if protocol != address.protocol => Err(Failure::usage(format_args!(
                "the URL means {} and --protocol says {}: leave one of them out",
                address.protocol.word(),
                protocol.word()
            ))),
            _ => Ok(address),
        }
    }

    fn local(protocol: ProtocolArg) -> Self {
        let (host, port) = ("127.0.0.1".to_owned(), default_port(protocol));
        Self { protocol, is_secure: false, host, port, is_default: true }
    }

    /// What is wrong with a URL is said without repeating it: somebody may have written a password.
    fn parse(url: &str) -> Result<Self, &'static str> {
        let scheme = SCHEMES.iter().find(|(scheme, ..)| url.starts_with(scheme));
        let (scheme, protocol, is_secure) = *scheme.ok_or(
            "write the server as http://HOST:PORT, grpc://HOST:PORT, resp://HOST:PORT or \
             redis://HOST:PORT; with TLS https, grpcs, resps or rediss",
        )?;
        let authority = url[scheme.len()..].trim_end_matches('/');
        if authority.contains('@') {
            return Err(
                "write no user and no password into the server's address: the key belongs \
                        into the file of --key-file, or into FRAZIL_KEY",
            );
        }
        if authority.contains(['/', '?', '#']) {
            return Err("write the server as SCHEME://HOST:PORT, with nothing after it");
        }
        let (host, port) = split(authority).ok_or("write a host before the port")?;
        let port = match port {
            None => default_port(protocol),
            Some(port) => match port.parse() {
                Ok(port) if port > 0 => port,
                _ => return Err("write the port as a number from 1 to 65535"),
            },
        };
        Ok(Self { protocol, is_secure, host: host.to_owned(), port, is_default: false })
    }

    /// Host and port as they stand in a URL.
    pub(super) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The node's own HTTP address, where that is known: its metrics are there.
    pub(super) fn http_base(&self) -> Option<String> {
        let scheme = if self.is_secure { "https" } else { "http" };
        match self.protocol {
            ProtocolArg::Http => Some(format!("{scheme}://{}", self.authority())),
            _ if self.is_default => Some(Self::local(ProtocolArg::Http).to_string()),
            _ => None,
        }
    }

    /// Whether what is sent there stays on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = if self.is_secure { "s" } else { "" };
        write!(f, "{}{letter}://{}", self.protocol.word(), self.authority())
    }
}

impl ProtocolArg {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Resp => "resp",
        }
    }
}

const fn default_port(protocol: ProtocolArg) -> u16 {
    match protocol {
        ProtocolArg::Http => 7780,
        ProtocolArg::Grpc => 7781,
        ProtocolArg::Resp => 7782,
    }
}

/// Host and port of `HOST`, `HOST:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`.
fn split(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!host.is_empty() && host.chars().all(is_name)).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_how() {
        for (url, expected) in [
            ("http://127.0.0.1:7780/", "http://127.0.0.1:7780"),
            ("https://h", "https://h:7780"),
            ("grpc://[::1]:9", "grpc://[::1]:9"),
            ("redis://cache.example", "resp://cache.example:7782"),
            ("rediss://h:1", "resps://h:1"),
        ] {
            assert_eq!(Address::parse(url).unwrap().to_string(), expected);
        }
        let local = Address::new(None, Some(ProtocolArg::Grpc)).unwrap();
        assert_eq!(local.to_string(), "grpc://127.0.0.1:7781");
        assert_eq!(local.http_base().unwrap(), "http://127.0.0.1:7780");
        assert_eq!(Address::parse("grpc://h:1").unwrap().http_base(), None);
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_repeating_it() {
        for url in [
            "canary",
            "ftp://canary",
            "http://me:canary@h",
            "http://h/canary",
            "http://h?canary",
            "http://:80",
            "http://[canary]:80",
            "http://[::1]canary",
            "http://h:canary",
            "http://h:0",
            "http://h:65536",
            "http://a b",
        ] {
            let why = Address::parse(url).unwrap_err();
            assert!(!why.contains("canary"), "{url}: {why}");
        }
        let clash = Address::new(Some("http://h"), Some(ProtocolArg::Resp));
        assert!(clash.is_err());
    }
}
