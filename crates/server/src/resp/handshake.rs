//! The commands that Redis tools and clients send before they do what they came for.

use frazil_wire::Reason;

use super::command::{COMMANDS, is};
use super::reply::{Replies, Version};
use super::session::Session;
use crate::app::Shared;
use crate::node::info;
use crate::policy::access::{Authenticator, Permission};

/// Clients read it to know what they may send; the commands here behave as that version's.
const REDIS_VERSION: &str = "7.0.0";
/// Answers `HELLO [version [AUTH user password] [SETNAME name]]`.
pub(super) fn hello(
    authenticator: &Authenticator,
    session: &mut Session,
    words: &[&[u8]],
    replies: &mut Replies,
) {
    let (mut words, mut version) = (words, replies.version);
    if let [number, rest @ ..] = words {
        version = match *number {
            b"2" => Version::Two,
            b"3" => Version::Three,
            _ => return replies.error("NOPROTO unsupported protocol version"),
        };
        words = rest;
    }
    loop {
        words = match words {
            [] => break,
            [option, user, key, rest @ ..] if is(option, "AUTH") => {
                if let Err(why) = log_in(authenticator, session, Some(user), key) {
                    return replies.error(&why);
                }
                rest
            }
            [option, name, _rest @ ..] if is(option, "SETNAME") && !is_name(name) => {
                return replies.error(BAD_NAME);
            }
            [option, name, rest @ ..] if is(option, "SETNAME") => {
                session.name = name.to_vec();
                rest
            }
            _ => return replies.error("ERR syntax error in HELLO"),
        };
    }
    match session.check(authenticator, Permission::AnyKey) {
        Ok(()) => {}
        Err(error) if error.reason == Reason::Unauthenticated => {
            return replies.error(
                "NOAUTH HELLO must be called with the client already authenticated: HELLO 3 AUTH \
                 default KEY",
            );
        }
        Err(error) => return replies.failure(&error),
    }
    replies.version = version;
    replies.map(7);
    for (name, value) in [
        ("server", "frazil"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("mode", "standalone"),
        ("role", "master"),
    ] {
        replies.bulk(name.as_bytes());
        replies.bulk(value.as_bytes());
    }
    replies.bulk(b"proto");
    replies.integer(replies.version.number());
    replies.bulk(b"id");
    replies.integer(session.remote.connection.cast_signed());
    replies.bulk(b"modules");
    replies.array(0);
}

const NO_PASSWORD: &str = "ERR AUTH called without any password configured for the default user. \
                           Are you sure your configuration is correct?";

/// Answers `AUTH [user] key`.
pub(super) fn auth(
    authenticator: &Authenticator,
    session: &mut Session,
    words: &[&[u8]],
    replies: &mut Replies,
) {
    let (user, key) = match words {
        [key] => (None, *key),
        [user, key] => (Some(*user), *key),
        _ => return replies.error("ERR wrong number of arguments for 'auth' command"),
    };
    match log_in(authenticator, session, user, key) {
        Ok(()) => replies.simple("OK"),
        Err(why) => replies.error(&why),
    }
}

fn log_in(
    authenticator: &Authenticator,
    session: &mut Session,
    user: Option<&[u8]>,
    key: &[u8],
) -> Result<(), String> {
    if authenticator.keys().is_none() {
        return Err(NO_PASSWORD.to_owned());
    }
    session.log_in(authenticator, user, key).map_err(|error| match error.reason {
        Reason::Unauthenticated => format!("WRONGPASS {error}"),
        _ => error.to_resp(),
    })
}

/// Answers `SELECT`: there is one database.
pub(super) fn select(words: &[&[u8]], replies: &mut Replies) {
    match words {
        [b"0"] => replies.simple("OK"),
        _ => replies.error("ERR DB index is out of range"),
    }
}

const BAD_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

/// A name that lists of clients can show, as with Redis.
fn is_name(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

/// Answers `CLIENT`.
pub(super) fn client(session: &mut Session, words: &[&[u8]], replies: &mut Replies) {
    match words {
        [sub, name] if is(sub, "SETNAME") => match is_name(name) {
            true => {
                session.name = name.to_vec();
                replies.simple("OK");
            }
            false => replies.error(BAD_NAME),
        },
        [sub] if is(sub, "GETNAME") && session.name.is_empty() => replies.null(),
        [sub] if is(sub, "GETNAME") => replies.bulk(&session.name),
        [sub] if is(sub, "ID") => replies.integer(session.remote.connection.cast_signed()),
        [sub] if is(sub, "INFO") || is(sub, "LIST") => {
            let name = String::from_utf8_lossy(&session.name).replace(['\r', '\n'], " ");
            let line = format!("id={} name={name} db=0\n", session.remote.connection);
            replies.bulk(line.as_bytes());
        }
        [sub, ..] if ["SETINFO", "NO-EVICT", "NO-TOUCH"].iter().any(|known| is(sub, known)) => {
            replies.simple("OK");
        }
        _ => replies.error("ERR unknown subcommand of CLIENT"),
    }
}

/// Answers `COMMAND`: names and no more, since nothing here has keys.
pub(super) fn command(words: &[&[u8]], replies: &mut Replies) {
    match words {
        [sub, ..] if is(sub, "COUNT") => {
            replies.integer(i64::try_from(COMMANDS.len()).unwrap_or(i64::MAX));
        }
        [sub, ..] if is(sub, "LIST") => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|(name, _)| replies.bulk(name.as_bytes()));
        }
        [sub, ..] if is(sub, "DOCS") => replies.map(0),
        _ => replies.array(0),
    }
}

/// Answers `CONFIG GET`: what tools look up before they measure.
pub(super) fn config(words: &[&[u8]], replies: &mut Replies) {
    let [get, names @ ..] = words else {
        return replies.error("ERR wrong number of arguments for 'config' command");
    };
    if !is(get, "GET") {
        return replies.error(
            "ERR only CONFIG GET is known here: frazil is configured by its file and flags",
        );
    }
    let known = [("save", ""), ("appendonly", "no"), ("databases", "1")];
    let found: Vec<_> = known
        .iter()
        .filter(|(name, _)| names.iter().any(|asked| is(asked, name) || *asked == b"*"))
        .collect();
    replies.map(found.len());
    for (name, value) in found {
        replies.bulk(name.as_bytes());
        replies.bulk(value.as_bytes());
    }
}

/// Answers `INFO`.
pub(super) fn info(shared: &Shared, replies: &mut Replies) {
    let info = info::info(shared);
    let text = format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\n\
         frazil_version:{}\r\nrole:master\r\n\r\n# Frazil\r\nnamespace:{}\r\nnode:{}\r\n\
         state:{}\r\nlanes:{}\r\nissuable_seconds:{:.3}\r\n",
        info.version,
        info.namespace,
        info.node.name,
        info.node.state,
        info.lanes.len(),
        info.node.issuable_seconds,
    );
    replies.bulk(text.as_bytes());
}
