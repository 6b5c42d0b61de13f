//! A server that is asked over HTTP, with or without TLS, through the client that everybody uses.

mod complaint;
mod key;
mod tls;

use std::fmt;
use std::time::Duration;

use frazil_client::blocking::Client;
use frazil_client::{Answer, Ask, Error};
use frazil_wire::{IdsReply, Problem};
use serde::de::DeserializeOwned;

use crate::args::ServerArg;
use crate::output::{Exit, Failure, say};

pub(crate) use self::key::{
    check as check_key, ignore_variable as ignore_key_variable, read as read_key,
};
pub(crate) use self::tls::client_config;

/// A server answers within this, or is not there.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A server, and how it is asked.
#[derive(Debug)]
pub(crate) struct Server {
    client: Client,
    base: String,
    has_key: bool,
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
        // A key is for the server that was named and for nobody else.
        let mut settings =
            frazil_client::Client::builder().endpoint(base).discover(false).deadline(TIMEOUT);
        if base.starts_with("https:") {
            tls::check(&args.trust)?;
            if let Some(ca) = &args.trust.ca {
                settings = settings.ca(ca);
            }
            if let (Some(cert), Some(key)) = (&args.trust.cert, &args.trust.cert_key) {
                settings = settings.identity(cert, key);
            }
        } else if key.is_some() && !frazil_server::is_loopback(base) {
            say("warning: the key is sent without encryption: use https");
        }
        let has_key = key.is_some();
        if let Some(key) = key {
            key::check(&key)?;
            settings = settings.key(key.reveal());
        }
        let client = Client::build(settings).map_err(Failure::usage)?;
        Ok(Self { client, base: base.to_owned(), has_key })
    }

    /// Where it is.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Asks for something.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Ask::get(path))?.map_err(|problem| self.refused(&problem))
    }

    /// The status and the text of what it answers, whatever that is.
    pub(crate) fn look(&self, path: &str, limit: Duration) -> Result<(u16, String), Failure> {
        let asked = self.client.ask(Ask::get(path).any_status().within(limit));
        let answer = asked.map_err(|error| self.unanswered(&error))?;
        Ok((answer.status, String::from_utf8_lossy(&answer.body).into_owned()))
    }

    /// IDs that no other request is answered with, asked for again if that helps.
    pub(crate) fn ids(&self, query: &str) -> Result<IdsReply, Failure> {
        let ask = Ask::post(format!("/v1/ids?{query}")).repeatable().with_nonce();
        self.ask(ask)?.map_err(|problem| self.refused(&problem))
    }

    /// Asks it to do something, once and within a limit; what the server refused is an answer.
    pub(crate) fn try_post<T: DeserializeOwned>(
        &self,
        path: &str,
        limit: Duration,
    ) -> Result<Result<T, Problem>, NoAnswer> {
        self.ask(Ask::post(path).within(limit))
    }

    fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<Result<T, Problem>, NoAnswer> {
        match self.client.ask(ask) {
            Ok(Answer { status, body, .. }) => serde_json::from_slice(&body)
                .map(Ok)
                .map_err(|_| self.stranger(&format!("status {status}")).into()),
            Err(error) => match refusal(&error) {
                Some(problem) => Ok(Err(problem)),
                None => Err(self.unanswered(&error)),
            },
        }
    }

    fn unanswered(&self, error: &Error) -> NoAnswer {
        let base = &self.base;
        if let Error::Broken { status: Some(_), why, .. } = error {
            return self.stranger(why).into();
        }
        if let Some(why) = complaint::about_trust(error) {
            let hint = "--ca names whom to trust, --cert and --cert-key are our own certificate";
            let why =
                format_args!("{base} and this command do not trust each other: {why}; {hint}");
            return NoAnswer::Failed(Failure::usage(why));
        }
        if complaint::is_plain(error) {
            let why =
                format_args!("{base} does not speak TLS there: write http:// instead of https://");
            return NoAnswer::Failed(Failure::usage(why));
        }
        // A server that wants a certificate may just hang up on a client without one.
        let hint = match base.starts_with("https:") && complaint::is_broken_off(error) {
            true => " If it asks for a certificate, name ours with --cert and --cert-key.",
            false => "",
        };
        let why = complaint::cause(error);
        let failure = Failure::new(
            Exit::Unavailable,
            format_args!("{base} does not answer: {why}; is `frazil serve` running there?{hint}"),
        );
        match error {
            Error::Late { .. } => NoAnswer::Late(failure),
            _ => NoAnswer::Failed(failure),
        }
    }

    fn stranger(&self, answer: &str) -> Failure {
        let base = &self.base;
        Failure::new(
            Exit::Unavailable,
            format_args!("{base} answers with {answer}, but not as a frazil server does"),
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
        Failure::new(exit, Refused { problem, has_key: self.has_key })
    }

    /// As [`refused`](Self::refused) where "nobody" and "somebody else" are answers: "no".
    pub(crate) fn said_no(&self, problem: &Problem) -> Failure {
        match problem.status {
            404 | 409 => Failure::new(Exit::No, Refused { problem, has_key: self.has_key }),
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

/// What a server refused, in the words of the catalogue.
fn refusal(error: &Error) -> Option<Problem> {
    match error {
        Error::Refused { error, .. } => Some(error.to_problem()),
        _ => None,
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

/// Whether this can be a server's address.
pub(crate) fn check_address(url: &str) -> Result<(), Failure> {
    checked(url).map(drop)
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

#[cfg(test)]
mod tests {
    use frazil_coord::Secret;

    use super::*;
    use crate::args::TrustArg;

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
    fn a_key_is_not_in_what_is_printed_of_a_server() {
        let arg = ServerArg { server: None, trust: TrustArg::default() };
        let settings = frazil_client::Client::builder().endpoint("http://h").key("canary");
        let client = Client::build(settings).unwrap();
        let server = Server { client, ..Server::new("http://127.0.0.1", &arg).unwrap() };
        assert!(!format!("{server:?}").contains("canary"));
        let wrong = Secret::new("canary\n".into());
        let Failure::Message(_, message) = check_key(&wrong).unwrap_err() else {
            panic!("a line's end is in no key")
        };
        assert!(!message.contains("canary"), "{message}");
    }
}
