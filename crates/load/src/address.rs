//! The address of the server that is measured, and the protocol it is asked in.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Schemes with the protocol that they mean, and whether TLS is spoken.
const SCHEMES: [(&str, Protocol, bool); 8] = [
    ("http://", Protocol::Http, false),
    ("https://", Protocol::Http, true),
    ("grpc://", Protocol::Grpc, false),
    ("grpcs://", Protocol::Grpc, true),
    ("resp://", Protocol::Resp, false),
    ("resps://", Protocol::Resp, true),
    ("redis://", Protocol::Resp, false),
    ("rediss://", Protocol::Resp, true),
];

/// The protocol in which a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, connections kept alive.
    Http,
    /// gRPC.
    Grpc,
    /// The protocol of Redis.
    Resp,
}

/// A server's address, written `http://HOST:PORT`, `grpc://`, `resp://` or `redis://`, or with TLS
/// `https://`, `grpcs://`, `resps://` or `rediss://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) protocol: Protocol,
    pub(crate) is_secure: bool,
    /// A name or a number; no brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Whether it is the local node because nobody named another.
    is_default: bool,
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        Self::parse(url).map_err(Error::usage)
    }
}

impl Address {
    /// The node of this machine, at the default port of a protocol.
    pub fn local(protocol: Protocol) -> Self {
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

    /// How the server is asked.
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether TLS is spoken.
    pub const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The same address with TLS.
    #[must_use]
    pub fn secure(&self) -> Self {
        Self { is_secure: true, ..self.clone() }
    }

    /// Host and port as they stand in a URL.
    pub(crate) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The node's own HTTP address, where that is known: its metrics are there.
    pub fn http_base(&self) -> Option<String> {
        let scheme = if self.is_secure { "https" } else { "http" };
        match self.protocol {
            Protocol::Http => Some(format!("{scheme}://{}", self.authority())),
            _ if self.is_default => Some(Self::local(Protocol::Http).to_string()),
            _ => None,
        }
    }

    /// Whether what is sent there stays on this machine.
    pub fn is_loopback(&self) -> bool {
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

impl Protocol {
    /// The protocol as a scheme has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Resp => "resp",
        }
    }
}

const fn default_port(protocol: Protocol) -> u16 {
    match protocol {
        Protocol::Http => 7780,
        Protocol::Grpc => 7781,
        Protocol::Resp => 7782,
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
        let local = Address::local(Protocol::Grpc);
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
    }
}
