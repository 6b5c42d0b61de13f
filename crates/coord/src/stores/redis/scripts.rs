//! The scripts: each one is one atomic step, safe to repeat, and all in one hash slot.

use std::sync::LazyLock;

use redis::Cmd;

use super::keys::Keys;
use super::settings::Settings;
use crate::rules::RUN_AHEAD_MS;
use crate::slot::Group;

/// How far the clocks of two Redis servers may be apart: far more than synchronised clocks are, and
/// little against a window.
pub(super) const SKEW_MS: u64 = 2000;

/// A script, and the name that servers which have seen it know it by.
pub(super) struct Script {
    code: &'static str,
    hash: String,
}

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!(include_str!("lua/prelude.lua"), include_str!($file)))
        });
    };
}

script!(ACQUIRE, "lua/acquire.lua");
script!(EXTEND, "lua/extend.lua");
script!(RELEASE, "lua/release.lua");
script!(PUT, "lua/put.lua");
script!(PUT_META, "lua/put_meta.lua");
script!(READ, "lua/read.lua");

impl Script {
    fn new(code: &'static str) -> Self {
        let hash = redis::Script::new(code).get_hash().to_owned();
        Self { code, hash }
    }

    /// Runs it by its name. A server that does not know it does nothing and says so.
    pub(super) fn by_name(&self, call: &Call) -> Cmd {
        call.fill(redis::cmd("EVALSHA").arg(&self.hash))
    }

    /// Runs it by its text, after which the server knows its name.
    pub(super) fn by_text(&self, call: &Call) -> Cmd {
        call.fill(redis::cmd("EVAL").arg(self.code))
    }
}

/// What a script is called with.
pub(super) struct Call {
    keys: [String; 7],
    arguments: Vec<String>,
}

impl Call {
    /// With what every script wants to know.
    pub(super) fn new(settings: &Settings, keys: &Keys, group: Group, is_durable: bool) -> Self {
        let isolation = u64::try_from(settings.isolation.as_millis()).unwrap_or(u64::MAX);
        let arguments = vec![
            group.letter().to_owned(),
            keys.channel(),
            isolation.to_string(),
            SKEW_MS.to_string(),
            u8::from(is_durable).to_string(),
            RUN_AHEAD_MS.to_string(),
        ];
        Self { keys: keys.all(group), arguments }
    }

    pub(super) fn with(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(arguments);
        self
    }

    fn fill(&self, command: &mut Cmd) -> Cmd {
        command.arg(self.keys.len());
        for text in self.keys.iter().chain(&self.arguments) {
            command.arg(text);
        }
        command.clone()
    }
}

/// Asks which rights the user lacks, and in a cluster, who owns the namespace's slot.
pub(super) fn probe(keys: &Keys) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(include_str!("lua/probe.lua")).arg(1).arg(keys.born()).arg(keys.channel());
    command
}
