//! The parser from text to [`StoreUrl`], with a message for whatever is wrong. No message repeats the text:
//! it may hold a password.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{Scheme, Secret, StoreUrl};
use crate::namespace::Namespace;

/// What is wrong with a store URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError(String);

/// No store has more addresses than this.
const HOSTS_MAX: usize = 32;
/// Bytes of an unknown scheme that are repeated.
const SCHEME_SHOWN_MAX: usize = 12;

pub(super) fn url(text: &str) -> Result<StoreUrl, UrlError> {
    let (name, rest) = text.split_once(':').ok_or_else(no_scheme)?;
    let (scheme, tls) = scheme(name)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let options = options(scheme, query)?;
    let mut url = StoreUrl { scheme, tls, options, ..StoreUrl::file("") };
    match scheme.port(tls) {
        Some(port) => remote(&mut url, rest, port)?,
        None => local(&mut url, rest)?,
    }
    check_options(&url)?;
    Ok(url)
}

fn scheme(name: &str) -> Result<(Scheme, bool), UrlError> {
    for (scheme, plain, tls) in Scheme::NAMES {
        if name == plain {
            return Ok((scheme, false));
        }
        if !tls.is_empty() && name == tls {
            return Ok((scheme, true));
        }
    }
    // A mistyped scheme looks like one; a password that came to stand there rarely does.
    let is_word = !name.is_empty()
        && name.len() <= SCHEME_SHOWN_MAX
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'+');
    Err(match is_word {
        true => bad(format!("no store is called {name:?}: use {}", known_schemes())),
        false => bad(format!("what is before the colon is no scheme: use {}", known_schemes())),
    })
}

fn no_scheme() -> UrlError {
    bad(format!("a store URL starts with its scheme and a colon: use {}", known_schemes()))
}

fn known_schemes() -> String {
    let names = Scheme::NAMES.iter().flat_map(|(_, plain, tls)| [*plain, *tls]);
    names
        .filter(|name| !name.is_empty())
        .map(|name| format!("{name}:"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn options(scheme: Scheme, query: &str) -> Result<BTreeMap<String, String>, UrlError> {
    let mut options = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| bad("an option is written name=value, and options are joined by '&'"))?;
        if !scheme.options().contains(&name) {
            let known = match scheme.options() {
                [] => "it has none".to_owned(),
                known => format!("it has {}", known.join(", ")),
            };
            // What looks like an option may be the rest of a password with a question mark in it.
            let named = if query.contains('@') { String::new() } else { format!(" {name:?}") };
            return Err(bad(format!("the store has no option{named}: {known}")));
        }
        if options.insert(name.to_owned(), decode(value)?).is_some() {
            return Err(bad(format!("the option {name:?} is given twice")));
        }
    }
    Ok(options)
}

fn local(url: &mut StoreUrl, rest: &str) -> Result<(), UrlError> {
    // file:PATH and file:///PATH mean the same.
    let path = match rest.strip_prefix("//") {
        Some(path) if url.scheme == Scheme::File => {
            let absolute = path.starts_with('/');
            absolute.then_some(path).ok_or_else(|| bad("write file:PATH or file:///PATH"))?
        }
        _ => rest,
    };
    url.path = decode(path)?;
    match url.scheme {
        Scheme::Static => {
            // One spelling for one worker: the number names its directory.
            let number: Result<u32, _> = url.path.parse();
            url.path =
                number.map_err(|_| bad("write static:N with the worker's number N"))?.to_string();
            Ok(())
        }
        Scheme::File if url.path.is_empty() => Err(bad("write file:PATH with a directory")),
        Scheme::Memory if !url.path.is_empty() && url.path.parse::<Namespace>().is_err() => Err(
            bad("write memory: or memory:NAME, with a name of letters, digits, '.', '_' or '-'"),
        ),
        _ => Ok(()),
    }
}

fn remote(url: &mut StoreUrl, rest: &str, port: u16) -> Result<(), UrlError> {
    let rest = rest.strip_prefix("//").ok_or_else(|| bad("two slashes follow the scheme"))?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    if let Some(login) = login {
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(Secret::new(decode(password)?))),
            None => (login, None),
        };
        url.user = Some(decode(user)?).filter(|user| !user.is_empty());
        url.password = password.filter(|password| !password.reveal().is_empty());
    }
    if hosts.is_empty() {
        return Err(bad(format!("the host is missing: write {}://HOST:{port}", url.scheme_name())));
    }
    url.hosts = hosts.split(',').map(|host| address(host, port)).collect::<Result<_, _>>()?;
    if url.hosts.len() > HOSTS_MAX {
        return Err(bad(format!("at most {HOSTS_MAX} hosts")));
    }
    url.path = decode(path.trim_end_matches('/'))?;
    match url.scheme {
        Scheme::RedisSentinel if url.path.is_empty() => {
            Err(bad("name the master: redis+sentinel://host,host/MASTER"))
        }
        Scheme::Redis if !url.path.is_empty() && url.path.parse::<u8>().is_err() => {
            Err(bad("the path of a redis URL is the number of a database"))
        }
        Scheme::RedisCluster if !url.path.is_empty() => {
            Err(bad("a Redis Cluster has one database: leave the path out"))
        }
        _ => Ok(()),
    }
}

fn address(text: &str, default_port: u16) -> Result<(String, u16), UrlError> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let fits = |c: char| {
        c.is_ascii_alphanumeric() || ".-_".contains(c) || bracketed.is_some() && ":%".contains(c)
    };
    if host.is_empty() || !host.chars().all(fits) {
        return Err(bad("a host is a name, an IPv4 address, or an IPv6 address in brackets; \
                        several are joined by ','"));
    }
    let port = match port {
        None if bracketed.is_some_and(|(_, rest)| !rest.is_empty()) => None,
        None => Some(default_port),
        Some(port) => port.parse().ok().filter(|port| *port > 0),
    };
    let port = port.ok_or_else(|| bad(format!("the port of host {host:?} is not 1 to 65535")))?;
    Ok((host.to_owned(), port))
}

fn check_options(url: &StoreUrl) -> Result<(), UrlError> {
    if let Some(timeout) = url.option("timeout")
        && duration(timeout).is_none_or(|timeout| timeout.is_zero())
    {
        return Err(bad("timeout is a time such as 500ms or 5s"));
    }
    if let Some(session) = url.option("session")
        && duration(session).is_none_or(|session| session.is_zero())
    {
        return Err(bad("session is a time such as 30s"));
    }
    if !url.tls
        && let Some(name) = ["ca", "cert", "key"].iter().find(|name| url.option(name).is_some())
    {
        return Err(bad(format!("{name} needs TLS: use rediss:, etcds: or zks:")));
    }
    if url.option("cert").is_some() != url.option("key").is_some() {
        return Err(bad("cert and key go together"));
    }
    Ok(())
}

/// The units of a duration in milliseconds, in the order in which they are written.
const UNITS_MS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A duration such as `500ms`, `5s`, `10m`, `1h` or `1m30s`: whole numbers with their units, the
/// larger unit first and each once. `None` if the text is none.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let (mut rest, mut units, mut total_ms) = (text, UNITS_MS.iter(), 0_u64);
    loop {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(unit_at);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        // Only units after the last one are left.
        let (_, scale_ms) = units.find(|(name, _)| *name == unit)?;
        let number: u64 = number.parse().ok()?;
        total_ms = total_ms.checked_add(number.checked_mul(*scale_ms)?)?;
        if after.is_empty() {
            return Some(Duration::from_millis(total_ms));
        }
        rest = after;
    }
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (digit(rest.next()), digit(rest.next()));
        let value = high.zip(low).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        bytes.push(value.ok_or_else(|| bad("'%' is followed by two hexadecimal digits"))?);
    }
    String::from_utf8(bytes).map_err(|_| bad("the URL is not UTF-8"))
}

fn bad(why: impl Into<String>) -> UrlError {
    UrlError(why.into())
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store URL: {}", self.0)
    }
}

impl std::error::Error for UrlError {}
