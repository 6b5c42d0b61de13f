//! Settings of an election from the environment.

use std::env;
use std::fmt;
use std::time::Duration;

use frazil_coord::internal::duration;

use super::settings::Settings;

/// A setting that the environment can give: its variable, and the one that other libraries use for
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// How it is called.
    pub name: &'static str,
    /// Read where the first is not set.
    pub alias: Option<&'static str>,
}

impl Settings {
    /// [`Settings::ttl`].
    pub const TTL: Variable =
        Variable { name: "FRAZIL_ELECTION_TTL", alias: Some("LEADER_ELECTION_LOCK_TTL") };
    /// [`Settings::heartbeat`].
    pub const HEARTBEAT: Variable = Variable {
        name: "FRAZIL_ELECTION_HEARTBEAT",
        alias: Some("LEADER_ELECTION_HEARTBEAT_INTERVAL"),
    };
    /// [`Settings::retry`].
    pub const RETRY: Variable =
        Variable { name: "FRAZIL_ELECTION_RETRY", alias: Some("LEADER_ELECTION_RETRY_INTERVAL") };
    /// [`Settings::lock_delay`].
    pub const LOCK_DELAY: Variable = Variable { name: "FRAZIL_ELECTION_LOCK_DELAY", alias: None };
    /// [`Settings::instance`].
    pub const INSTANCE: Variable = Variable {
        name: "FRAZIL_ELECTION_INSTANCE_ID",
        alias: Some("LEADER_ELECTION_INSTANCE_ID"),
    };
    /// [`Settings::host`].
    pub const HOST: Variable =
        Variable { name: "FRAZIL_ELECTION_HOSTNAME", alias: Some("LEADER_ELECTION_HOSTNAME") };

    /// The defaults, over which the environment is laid: `FRAZIL_ELECTION_TTL`, `_HEARTBEAT`,
    /// `_RETRY`, `_LOCK_DELAY`, `_INSTANCE_ID` and `_HOSTNAME`, or else `LEADER_ELECTION_LOCK_TTL`,
    /// `_HEARTBEAT_INTERVAL`, `_RETRY_INTERVAL`, `_INSTANCE_ID` and `_HOSTNAME`. Durations are
    /// written as `10s` or `1m30s`. A variable that is empty counts as not set.
    ///
    /// Without a heartbeat or a retry interval of their own, those follow the time to live.
    ///
    /// # Errors
    /// If a variable has a text that is no duration. How the settings go together is
    /// [checked](Self::checked) when there is a candidate.
    pub fn from_env() -> Result<Self, VariableError> {
        Self::from_variables(|name| env::var(name).ok())
    }

    /// As [`from_env`](Self::from_env), with variables from elsewhere.
    ///
    /// # Errors
    /// As for `from_env`.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, VariableError> {
        let given = Environment(&variable);
        let mut settings = Self::default();
        if let Some(ttl) = given.duration(Self::TTL)? {
            settings = settings.with_ttl(ttl);
        }
        if let Some(heartbeat) = given.duration(Self::HEARTBEAT)? {
            settings.heartbeat = heartbeat;
        }
        if let Some(retry) = given.duration(Self::RETRY)? {
            settings.retry = retry;
        }
        if let Some(lock_delay) = given.duration(Self::LOCK_DELAY)? {
            settings.lock_delay = lock_delay;
        }
        if let Some((_, host)) = given.text(Self::HOST) {
            settings = settings.with_host(host);
        }
        if let Some((_, instance)) = given.text(Self::INSTANCE) {
            settings.instance = instance;
        }
        Ok(settings)
    }
}

/// The text of a variable is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableError {
    name: &'static str,
    text: String,
}

/// Where variables are looked up.
struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// The text of the first variable that is set, with its name.
    fn text(&self, variable: Variable) -> Option<(&'static str, String)> {
        let names = [Some(variable.name), variable.alias];
        let texts = names.into_iter().flatten().map(|name| Some((name, (self.0)(name)?)));
        texts.flatten().find(|(_, text)| !text.is_empty())
    }

    fn duration(&self, variable: Variable) -> Result<Option<Duration>, VariableError> {
        let Some((name, text)) = self.text(variable) else { return Ok(None) };
        match duration(&text) {
            Some(duration) => Ok(Some(duration)),
            None => Err(VariableError { name, text }),
        }
    }
}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {:?} is no duration: write whole numbers with ms, s, m or h (10s, 1m30s)",
            self.name, self.text
        )
    }
}

impl std::error::Error for VariableError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, VariableError> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Settings::from_variables(|name| find(name).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn every_variable_is_read() {
        let read = settings(&[
            ("FRAZIL_ELECTION_TTL", "1m30s"),
            ("FRAZIL_ELECTION_HEARTBEAT", "9s"),
            ("FRAZIL_ELECTION_RETRY", "1500ms"),
            ("FRAZIL_ELECTION_LOCK_DELAY", "0s"),
            ("FRAZIL_ELECTION_INSTANCE_ID", "one"),
            ("FRAZIL_ELECTION_HOSTNAME", "here"),
        ])
        .unwrap();
        assert_eq!(read.ttl, Duration::from_secs(90));
        assert_eq!(read.heartbeat, Duration::from_secs(9));
        assert_eq!(read.retry, Duration::from_millis(1500));
        assert_eq!(read.lock_delay, Duration::ZERO);
        assert_eq!((read.instance.as_str(), read.host.as_str()), ("one", "here"));
    }

    #[test]
    fn the_names_of_others_are_read_where_ours_are_not_set() {
        let read = settings(&[
            ("LEADER_ELECTION_LOCK_TTL", "30s"),
            ("LEADER_ELECTION_HEARTBEAT_INTERVAL", "4s"),
            ("LEADER_ELECTION_RETRY_INTERVAL", "1s"),
            ("LEADER_ELECTION_INSTANCE_ID", "theirs"),
            ("FRAZIL_ELECTION_INSTANCE_ID", ""),
            ("LEADER_ELECTION_HOSTNAME", "there"),
            ("FRAZIL_ELECTION_TTL", "20s"),
        ])
        .unwrap();
        assert_eq!((read.ttl, read.heartbeat), (Duration::from_secs(20), Duration::from_secs(4)));
        assert_eq!(read.retry, Duration::from_secs(1));
        assert_eq!((read.instance.as_str(), read.host.as_str()), ("theirs", "there"));
    }

    #[test]
    fn what_is_not_given_follows_from_what_is() {
        assert_eq!(settings(&[]).unwrap(), Settings::default());
        let read = settings(&[("FRAZIL_ELECTION_TTL", "20s"), ("FRAZIL_ELECTION_HOSTNAME", "h")]);
        let read = read.unwrap();
        assert_eq!((read.heartbeat, read.retry), (Duration::from_secs(6), Duration::from_secs(4)));
        assert_eq!(read.instance, format!("h:{}", std::process::id()));
        assert_eq!(read.checked(), Ok(()));
    }

    #[test]
    fn a_text_that_is_no_duration_is_named_with_its_variable() {
        for name in ["FRAZIL_ELECTION_TTL", "LEADER_ELECTION_HEARTBEAT_INTERVAL"] {
            let said = settings(&[(name, "soon")]).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{name}: \"soon\"")), "{said}");
        }
    }
}
