//! `GET /v1/elections` and `GET /v1/elections/{name}`.

use frazil::coord::{Group, Slot};
use frazil_wire::{ApiError, Elections, Reason};
use hyper::Request;
use hyper::body::Incoming;

use crate::app::Shared;
use crate::http::answer::{self, Answer};
use crate::http::query;
use crate::http::route::Route;

pub(crate) async fn all(shared: &Shared, request: &Request<Incoming>) -> Result<Answer, ApiError> {
    query::none(request.uri())?;
    let elections = shared.node_elections.all(&shared.name).await?;
    Ok(answer::json(&Elections::new(elections)))
}

pub(crate) async fn one(shared: &Shared, request: &Request<Incoming>) -> Result<Answer, ApiError> {
    query::none(request.uri())?;
    let name = Route::find(request.uri().path()).map_or("", |(_, name)| name);
    let name = decoded(name).ok_or_else(|| invalid("the name is not UTF-8"))?;
    Slot::named(Group::Elections, &name).map_err(invalid)?;
    let elections = shared.node_elections.all(&shared.name).await?;
    match elections.into_iter().find(|election| election.name == name) {
        Some(election) => Ok(answer::json(&election)),
        None => Err(ApiError::new(Reason::NotFound, "nobody ever campaigned in that election")),
    }
}

fn invalid(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::InvalidArgument, why)
}

/// A part of a path without its percent signs.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let digits = tail.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_written_with_percent_signs() {
        for (text, name) in [
            ("frazil:cluster", Some("frazil:cluster")),
            ("frazil%3Acluster", Some("frazil:cluster")),
            ("a%", Some("a%")),
            ("a%3", Some("a%3")),
            ("%zz", Some("%zz")),
            ("%ff", None),
        ] {
            assert_eq!(decoded(text).as_deref(), name, "{text}");
        }
    }
}
