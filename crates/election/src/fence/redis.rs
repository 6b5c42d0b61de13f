//! A key of Redis that is written only under the highest token that it has seen.

use std::fmt;

use frazil_coord::Token;

use super::WriteOutcome;

/// A string in Redis with the highest token that wrote it in a key beside it. Both are in one hash
/// slot, so that it works in a cluster too.
///
/// What to send is given as data, for any client: `EVAL script numkeys key... argument...`.
///
/// Redis can lose the last writes with a master, a fence with them. Where that matters let the
/// client `WAIT`, or guard with a database.
///
/// ```
/// use frazil_election::fence::{FencedKey, WriteOutcome};
/// use frazil_coord::Token;
///
/// let report = FencedKey::new("report")?;
/// let call = report.write(Token(1_794_745_654_763), "42");
/// assert_eq!(call.keys, ["report", "{report}:fence"]);
/// // With the crate `redis`:
/// //   let reply: (i64, String) =
/// //       redis::Script::new(call.script).key(&call.keys[..]).arg(&call.arguments[..]).invoke(..)?;
/// let reply = (0, "1794745660000".to_owned());
/// let outcome = FencedKey::outcome(reply.0, &reply.1)?;
/// assert_eq!(outcome, WriteOutcome::Refused { highest: Token(1_794_745_660_000) });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedKey {
    key: String,
    fence: String,
}

/// A call of a script, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisCall {
    /// The script, for `EVAL` or `SCRIPT LOAD`.
    pub script: &'static str,
    /// Its keys.
    pub keys: [String; 2],
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
}

/// A key beside which no fence can be put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError(String);

/// An answer that the script does not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyError(String);

impl FencedKey {
    /// The script of every call.
    pub const SCRIPT: &'static str = include_str!("write.lua");

    /// A key with its fence beside it.
    ///
    /// # Errors
    /// If the key is empty, or has braces that make no hash tag: the two would be in different
    /// places of a cluster.
    pub fn new(key: impl Into<String>) -> Result<Self, KeyError> {
        let key = key.into();
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        let fence = match tag {
            Some((tag, _)) if !tag.is_empty() => format!("{key}:fence"),
            None if !key.is_empty() && !key.contains(['{', '}']) => format!("{{{key}}}:fence"),
            _ => return Err(KeyError(key)),
        };
        Ok(Self { key, fence })
    }

    /// Writes a value.
    #[must_use]
    pub fn write(&self, token: Token, value: impl Into<Vec<u8>>) -> RedisCall {
        self.call(vec![token.to_string().into_bytes(), value.into()])
    }

    /// Raises the fence and writes nothing: what a new leader does before it reads.
    #[must_use]
    pub fn raise(&self, token: Token) -> RedisCall {
        self.call(vec![token.to_string().into_bytes()])
    }

    /// What the two parts of the script's answer mean.
    ///
    /// # Errors
    /// If the script does not answer like that.
    pub fn outcome(accepted: i64, highest: &str) -> Result<WriteOutcome, ReplyError> {
        match (accepted, highest.parse()) {
            (1, Ok(_)) => Ok(WriteOutcome::Accepted),
            (0, Ok(highest)) => Ok(WriteOutcome::Refused { highest: Token(highest) }),
            _ => Err(ReplyError(format!("{accepted} {highest}"))),
        }
    }

    fn call(&self, arguments: Vec<Vec<u8>>) -> RedisCall {
        let keys = [self.key.clone(), self.fence.clone()];
        RedisCall { script: Self::SCRIPT, keys, arguments }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.0;
        write!(f, "{key:?} cannot be guarded: use braces for a hash tag or not at all")
    }
}

impl std::error::Error for KeyError {}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no answer of the script: was another one called?", self.0)
    }
}

impl std::error::Error for ReplyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_its_fence_share_a_hash_tag() {
        for (key, fence) in [
            ("report", "{report}:fence"),
            ("{app}:report", "{app}:report:fence"),
            ("a{app}b", "a{app}b:fence"),
        ] {
            assert_eq!(FencedKey::new(key).unwrap().fence, fence);
        }
        for key in ["", "{}x", "a}b", "a{b", "{}{app}", "}{"] {
            assert!(FencedKey::new(key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn an_answer_that_the_script_does_not_give_is_no_verdict() {
        assert_eq!(FencedKey::outcome(1, "7"), Ok(WriteOutcome::Accepted));
        assert_eq!(FencedKey::outcome(0, "7"), Ok(WriteOutcome::Refused { highest: Token(7) }));
        for (accepted, highest) in [(2, "7"), (1, ""), (0, "x"), (-1, "7")] {
            assert!(FencedKey::outcome(accepted, highest).is_err());
        }
    }
}
