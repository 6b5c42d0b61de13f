//! Issuing by a server, over HTTP.

use std::time::Duration;

use frazil_id::Layout;
use frazil_wire::{IdsReply, Info, Problem};
use serde::de::DeserializeOwned;
use ureq::Agent;

use super::{Issue, print};
use crate::args::NextArgs;
use crate::output::{Exit, Failure};

/// A server answers within this, or is not there.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer: 4,096 Ids have a hundred thousand.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

pub(super) fn run(args: &NextArgs, server: &str) -> Result<(), Failure> {
    let server = Server::new(server)?;
    let info: Info = server.answer(server.agent.get(server.url("/v1/info")).call())?;
    let layout: Layout = info.layout.text.parse().map_err(Failure::usage)?;
    let most = info.limits.max_count.max(1);
    print(args, &layout, |n| {
        let count = n.min(most).to_string();
        let mut request = server.agent.post(server.url("/v1/ids")).query("count", count);
        if let Some(scope) = &args.scope {
            request = request.query("scope", scope);
        }
        let reply: IdsReply = server.answer(request.send_empty())?;
        Ok(Issue { ids: reply.ids, token: Some(reply.metadata.token) })
    })
}

struct Server {
    agent: Agent,
    base: String,
}

impl Server {
    fn new(url: &str) -> Result<Self, Failure> {
        if !url.starts_with("http://") {
            return Err(Failure::usage(
                "write the server as http://HOST:PORT: this command speaks plain HTTP",
            ));
        }
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .proxy(None)
            .build();
        Ok(Self { agent: config.into(), base: url.trim_end_matches('/').to_owned() })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn answer<T: DeserializeOwned>(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, Failure> {
        let mut answer = answer.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| self.unreachable(&error))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| self.stranger(status.as_u16()));
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(refused(&problem)),
            Err(_) => Err(self.stranger(status.as_u16())),
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        let base = &self.base;
        Failure::new(
            Exit::Unavailable,
            format_args!("{base} does not answer: {error}; is `frazil serve` running there?"),
        )
    }

    fn stranger(&self, status: u16) -> Failure {
        let base = &self.base;
        Failure::new(
            Exit::Unavailable,
            format_args!("{base} answers with status {status}, but not as a frazil server does"),
        )
    }
}

/// What the server refused, in its own words.
fn refused(problem: &Problem) -> Failure {
    let exit = match problem.status {
        400..=499 => Exit::Usage,
        _ if problem.reason.starts_with("CLOCK") || problem.reason == "QUARANTINED" => {
            Exit::Refused
        }
        _ => Exit::Unavailable,
    };
    let Problem { reason, detail, help, .. } = problem;
    Failure::new(exit, format_args!("{reason}: {detail}. {help}"))
}
