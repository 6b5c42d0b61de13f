//! Other namespaces with the same prefix, on the same master.

use redis::{Cmd, FromRedisValue};
use tokio::time::timeout;

use super::link::Link;
use super::session::Session;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::record::Meta;

/// How many keys the server looks at in one step: a millisecond of its time at the most.
const STEP_KEYS: usize = 1000;
/// How many steps are made: a server with more keys than both together is looked at in part.
const STEPS_MAX: usize = 100;

const ACT: &str = "list the namespaces";

pub(super) async fn find(
    session: &Session,
    own: &Namespace,
    most: usize,
) -> Result<Vec<(Namespace, Meta)>, Error> {
    let prefix = &session.settings.prefix;
    let mut link = session.link().await?;
    let (mut cursor, mut found) = (0_u64, Vec::<(Namespace, Meta)>::new());
    for _ in 0..STEPS_MAX {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern(prefix)).arg("COUNT").arg(STEP_KEYS);
        let (next, keys): (u64, Vec<Vec<u8>>) = ask(session, &mut link, &scan).await?;
        for (key, name) in keys.iter().filter_map(|key| Some((key, name_of(key, prefix)?))) {
            let is_known = found.iter().any(|(known, _)| *known == name);
            if name == *own || is_known || found.len() >= most {
                continue;
            }
            let get = redis::cmd("GET").arg(key).to_owned();
            let text: Option<Vec<u8>> = ask(session, &mut link, &get).await?;
            if let Some(Ok(meta)) = text.map(|text| serde_json::from_slice(&text)) {
                found.push((name, meta));
            }
        }
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    Ok(found)
}

async fn ask<T: FromRedisValue>(
    session: &Session,
    link: &mut Link,
    command: &Cmd,
) -> Result<T, Error> {
    let settings = &session.settings;
    match timeout(settings.timeout, command.query_async(&mut link.connection)).await {
        Ok(answer) => answer.map_err(|error| settings.failed(ACT, &error)),
        Err(_) => Err(settings.silent("the server")),
    }
}

/// What the keys of all meta records match. A prefix may have characters that mean something there.
fn pattern(prefix: &str) -> String {
    let mut escaped = String::new();
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '^' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    format!("{{{escaped}:*}}:meta")
}

/// The namespace whose meta record is under a key.
fn name_of(key: &[u8], prefix: &str) -> Option<Namespace> {
    let key = std::str::from_utf8(key).ok()?;
    let name = key.strip_prefix('{')?.strip_prefix(prefix)?.strip_prefix(':')?;
    name.strip_suffix("}:meta")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_taken_as_it_is_written() {
        assert_eq!(pattern("frazil"), "{frazil:*}:meta");
        assert_eq!(pattern("a*[b]"), "{a\\*\\[b\\]:*}:meta");
        let name = |key: &str| name_of(key.as_bytes(), "frazil").map(|name| name.to_string());
        assert_eq!(name("{frazil:orders}:meta").as_deref(), Some("orders"));
        for other in ["{frazil:orders}:w", "{other:orders}:meta", "{frazil:a:b}:meta", ""] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
