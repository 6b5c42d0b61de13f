//! A server that is asked over HTTP, with or without TLS.

mod key;
mod tls;

use std::fmt;
use std::time::Duration;

use frazil_coord::Secret;
use frazil_wire::Problem;
use serde::de::DeserializeOwned;
use ureq::http::{HeaderValue, Request, header::AUTHORIZATION};
use ureq::{Agent, AsSendBody};

use crate::args::ServerArg;
use crate::output::{Exit, Failure, say};

pub(crate) use self::key::read as read_key;
pub(crate) use self::tls::client_config;

/// A server answers within this, or is not there.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer: 4,096 Ids have a hundred thousand.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A server, and how it is asked.
#[derive(Debug)]
pub(crate) struct Server {
    agent: Agent,
    base: String,
    key: Option<Secret>,
}

/// Why a server gave no answer of its own.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// It did not answer in time.
    Late(Failure),
    /// Anything else.
    Failed(Failure),
}

impl Server {
    /// A server at an address, which is asked as the arguments say.
    pub(crate) fn new(url: &str, args: &ServerArg) -> Result<Self, Failure> {
        let base = checked(url)?;
        let key = key::read(args.trust.key_file.as_deref())?;
        let mut config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // A key is for the server that was named and for nobody else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None);
        if base.starts_with("https:") {
            config = config.tls_config(tls::config(&args.trust)?);
        } else if key.is_some() && !is_loopback(base) {
            say("warning: the key is sent without encryption: use https");
        }
        Ok(Self { agent: config.build().into(), base: base.to_owned(), key })
    }

    /// Where it is.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Asks without a body.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask("GET", path, TIMEOUT)?.map_err(|problem| self.refused(&problem))
    }

    /// The status and the text of what it answers, whatever that is.
    pub(crate) fn look(&self, path: &str, limit: Duration) -> Result<(u16, String), Failure> {
        let (status, body) = self.call("GET", path, limit)?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Asks it to do something, without a body.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask("POST", path, TIMEOUT)?.map_err(|problem| self.refused(&problem))
    }

    /// As [`post`](Self::post) with a limit of its own; what the server refused is an answer.
    pub(crate) fn try_post<T: DeserializeOwned>(
        &self,
        path: &str,
        limit: Duration,
    ) -> Result<Result<T, Problem>, NoAnswer> {
        self.ask("POST", path, limit)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        limit: Duration,
    ) -> Result<Result<T, Problem>, NoAnswer> {
        let (status, body) = self.call(method, path, limit)?;
        if (200..300).contains(&status) {
            return serde_json::from_slice(&body).map(Ok).map_err(|_| self.stranger(status).into());
        }
        let problem = serde_json::from_slice(&body).map_err(|_| self.stranger(status))?;
        Ok(Err(problem))
    }

    fn call(&self, method: &str, path: &str, limit: Duration) -> Result<(u16, Vec<u8>), NoAnswer> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, bearer(key)?);
        }
        let request = request.body(()).map_err(Failure::usage)?;
        self.send(request, limit).map_err(|error| self.unanswered(error))
    }

    fn send(
        &self,
        request: Request<impl AsSendBody>,
        limit: Duration,
    ) -> Result<(u16, Vec<u8>), ureq::Error> {
        let request = self.agent.configure_request(request).timeout_global(Some(limit)).build();
        let mut answer = self.agent.run(request)?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok((answer.status().as_u16(), body))
    }

    fn unanswered(&self, error: ureq::Error) -> NoAnswer {
        let base = &self.base;
        if let Some(why) = tls::complaint(&error) {
            let hint = "--ca names whom to trust, --cert and --key are our own certificate";
            let why =
                format_args!("{base} and this command do not trust each other: {why}; {hint}");
            return NoAnswer::Failed(Failure::usage(why));
        }
        if tls::is_plain(&error) {
            let why =
                format_args!("{base} does not speak TLS there: write http:// instead of https://");
            return NoAnswer::Failed(Failure::usage(why));
        }
        // A server that wants a certificate may just hang up on a client without one.
        let hint = match base.starts_with("https:") && matches!(error, ureq::Error::Io(_)) {
            true => " If it asks for a certificate, name ours with --cert and --key.",
            false => "",
        };
        let failure = Failure::new(
            Exit::Unavailable,
            format_args!("{base} does not answer: {error}; is `frazil serve` running there?{hint}"),
        );
        match error {
            ureq::Error::Timeout(_) => NoAnswer::Late(failure),
            _ => NoAnswer::Failed(failure),
        }
    }

    fn stranger(&self, status: u16) -> Failure {
        let base = &self.base;
        Failure::new(
            Exit::Unavailable,
            format_args!("{base} answers with status {status}, but not as a frazil server does"),
        )
    }

    /// What the server refused, in its own words and with what to do here.
    pub(crate) fn refused(&self, problem: &Problem) -> Failure {
        let exit = match problem.status {
            429 => Exit::Unavailable,
            400..=499 => Exit::Usage,
            _ if problem.reason.starts_with("CLOCK") || problem.reason == "QUARANTINED" => {
                Exit::Refused
            }
            _ => Exit::Unavailable,
        };
        Failure::new(exit, Refused { problem, has_key: self.key.is_some() })
    }

    /// As [`refused`](Self::refused) where "nobody" and "somebody else" are answers: "no".
    pub(crate) fn said_no(&self, problem: &Problem) -> Failure {
        match problem.status {
            404 | 409 => Failure::new(Exit::No, Refused { problem, has_key: self.key.is_some() }),
            _ => self.refused(problem),
        }
    }
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<NoAnswer> for Failure {
    fn from(none: NoAnswer) -> Self {
        match none {
            NoAnswer::Late(failure) | NoAnswer::Failed(failure) => failure,
        }
    }
}

/// A problem as a user of this command reads it.
struct Refused<'a> {
    problem: &'a Problem,
    has_key: bool,
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { reason, detail, help, retry_after_ms, status, .. } = self.problem;
        write!(f, "{reason}: {detail}. {help}")?;
        match (status, self.has_key, retry_after_ms) {
            (401, false, _) => {
                f.write_str(" Name the file that has it with --key-file, or set FRAZIL_KEY.")
            }
            (401, true, _) => {
                f.write_str(" The server does not take the one of --key-file or FRAZIL_KEY.")
            }
            (429, _, Some(ms)) => write!(f, " It can succeed in {ms} ms."),
            _ => Ok(()),
        }
    }
}

/// The address without its last slash. What is wrong with it is said without repeating it.
fn checked(url: &str) -> Result<&str, Failure> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Err(Failure::usage("write the server as http://HOST:PORT or https://HOST:PORT"));
    };
    if rest.contains('@') {
        return Err(Failure::usage(
            "write no user and no password into the server's address: the key belongs into the \
             file of --key-file, or into FRAZIL_KEY",
        ));
    }
    if rest.contains(['?', '#']) {
        return Err(Failure::usage("write the server as http://HOST:PORT, without ? and #"));
    }
    Ok(url.trim_end_matches('/'))
}

/// Whether what is sent there stays on this machine.
fn is_loopback(base: &str) -> bool {
    let authority = base.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The header that shows a key. Nothing that prints headers shows it.
/// Refuses a key that no server can have given out, before it goes into a head by itself.
pub(crate) fn check_key(key: &Secret) -> Result<(), Failure> {
    bearer(key).map(drop)
}

fn bearer(key: &Secret) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::try_from(format!("Bearer {}", key.reveal()));
    let mut value = value.map_err(|_| {
        Failure::usage("the key has characters that no key has: is it the right file?")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_never_repeated() {
        assert_eq!(checked("http://127.0.0.1:7780/").unwrap(), "http://127.0.0.1:7780");
        assert_eq!(checked("https://h/base").unwrap(), "https://h/base");
        for bad in ["canary", "ftp://canary", "http://me:canary@h", "http://h?key=canary"] {
            let Failure::Message(Exit::Usage, message) = checked(bad).unwrap_err() else {
                panic!("{bad}")
            };
            assert!(!message.contains("canary"), "{message}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (base, expected) in [
            ("http://127.0.0.1:7780", true),
            ("http://localhost:1/x", true),
            ("http://[::1]:7780", true),
            ("http://10.0.0.7:7780", false),
            ("http://localhost.example", false),
        ] {
            assert_eq!(is_loopback(base), expected, "{base}");
        }
    }

    #[test]
    fn a_key_is_not_in_what_is_printed_of_a_server() {
        let key = Some(Secret::new("canary".into()));
        let server = Server { agent: Agent::new_with_defaults(), base: "http://h".into(), key };
        assert!(!format!("{server:?}").contains("canary"));
        let header = bearer(&Secret::new("canary".into())).unwrap();
        assert!(!format!("{header:?}").contains("canary"));
        let Failure::Message(_, message) = bearer(&Secret::new("canary\n".into())).unwrap_err()
        else {
            panic!("a line's end is in no key")
        };
        assert!(!message.contains("canary"), "{message}");
    }
}
