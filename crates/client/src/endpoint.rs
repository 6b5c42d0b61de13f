//! The address of a server, as a URL says it.

use std::sync::Arc;

use hyper::Uri;

use crate::error::Error;

/// The ports of `frazil serve`.
const HTTP_PORT: u16 = 7780;
const GRPC_PORT: u16 = 7781;

/// A server's address, and how to speak with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// As it was given: how it is called in errors.
    pub(crate) text: Arc<str>,
    pub(crate) protocol: Protocol,
    pub(crate) is_secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as the `Host` header has them.
    pub(crate) authority: String,
    /// What stands before the paths, without a slash at its end.
    pub(crate) prefix: String,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let bad = |why: &str| {
            // A URL may hold a password, so it is not repeated.
            Error::invalid(format_args!(
                "an endpoint {why}: write it as http://HOST:7780, https://, grpc://HOST:7781 or \
                 grpcs://"
            ))
        };
        let uri: Uri = text
            .trim()
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| bad("is no URL").because(error))?;
        let (protocol, is_secure) = match uri.scheme_str() {
            Some("http") => (Protocol::Http, false),
            Some("https") => (Protocol::Http, true),
            Some("grpc") => (Protocol::Grpc, false),
            Some("grpcs") => (Protocol::Grpc, true),
            Some(_) => return Err(bad("has a scheme that is not spoken")),
            None => return Err(bad("has no scheme")),
        };
        if protocol == Protocol::Grpc && !cfg!(feature = "grpc") {
            return Err(Error::invalid("grpc endpoints need the feature `grpc` of frazil-client"));
        }
        if is_secure && !cfg!(feature = "tls") {
            return Err(Error::invalid("https and grpcs need the feature `tls` of frazil-client"));
        }
        let authority = uri.authority().ok_or_else(|| bad("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("has a name or password in it; give a key with key() instead"));
        }
        if uri.query().is_some() {
            return Err(bad("has a question mark"));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(bad("has no host"));
        }
        let port = match authority.port() {
            Some(port) if port.as_u16() > 0 => port.as_u16(),
            Some(_) => return Err(bad("has port 0")),
            None if authority.as_str() != authority.host() => {
                return Err(bad("has a port that is none"));
            }
            None => match (protocol, is_secure) {
                (Protocol::Http, false) => HTTP_PORT,
                (Protocol::Http, true) => 443,
                (Protocol::Grpc, _) => GRPC_PORT,
            },
        };
        let prefix = uri.path().trim_end_matches('/').to_owned();
        if protocol == Protocol::Grpc && !prefix.is_empty() {
            return Err(bad("of gRPC has a path"));
        }
        let authority = format!("{}:{port}", authority.host());
        Ok(Self { text: text.trim().into(), protocol, is_secure, host, port, authority, prefix })
    }

    /// Whether both lead to the same server in the same way, however they are written.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        let place = |endpoint: &Self| (endpoint.protocol, endpoint.is_secure, endpoint.port);
        place(self) == place(other)
            && self.host.eq_ignore_ascii_case(&other.host)
            && self.prefix == other.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_with_the_ports_of_the_server() {
        for (text, host, port, prefix) in [
            ("http://127.0.0.1:9", "127.0.0.1", 9, ""),
            ("http://ids", "ids", 7780, ""),
            (" http://[::1]:80/behind/ ", "::1", 80, "/behind"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!((endpoint.host.as_str(), endpoint.port), (host, port), "{text}");
            assert_eq!(endpoint.prefix, prefix);
        }
    }

    #[test]
    fn what_is_no_endpoint_is_told_so_without_its_secrets() {
        for text in [
            "",
            "ids",
            "ids:7780",
            "ftp://ids",
            "http://",
            "http://a:b@ids",
            "http://ids:0",
            "http://ids:99999",
            "http://ids?x=1",
            "unix:/tmp/x",
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{text}: {error}");
            assert!(!error.to_string().contains("a:b"), "{error}");
        }
    }
}
