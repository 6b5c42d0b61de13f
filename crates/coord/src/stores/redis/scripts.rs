//! The scripts: each one is one atomic step, and all its keys are in one hash slot.
//!
//! They compare and write, and know no rule of leasing.

use std::sync::LazyLock;

use redis::Cmd;

use super::keys::Keys;
use super::server::Server;
use crate::slot::Group;

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

script!(COMMIT, "lua/commit.lua");
script!(READ, "lua/read.lua");
script!(FREE_SLOTS, "lua/free_slots.lua");
script!(WRITE, "lua/write.lua");

impl Script {
    fn new(code: &'static str) -> Self {
        Self { code, hash: sha1(code) }
    }

    pub(super) fn name(&self) -> &str {
        &self.hash
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

/// What scripts call `sha1hex`.
pub(super) fn sha1(text: &str) -> String {
    redis::Script::new(text).get_hash().to_owned()
}

/// What a script is called with.
pub(super) struct Call {
    keys: [String; 7],
    arguments: Vec<String>,
}

impl Call {
    /// With what every script wants to know.
    pub(super) fn new(keys: &Keys, server: &Server, group: Group) -> Self {
        let arguments = vec![
            group.letter().to_owned(),
            keys.channel(),
            server.run_id.clone(),
            u8::from(server.in_cluster == Some(true)).to_string(),
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

/// The commands that the scripts and the store use, each with as many arguments as it needs.
const COMMANDS: &str = "info replication, time, ping, wait 0 1, get KEY, set KEY 1, exists KEY, \
                        hget KEY f, hset KEY f 1, hdel KEY f, hmget KEY f, hkeys KEY, hlen KEY, \
                        sadd KEY m, srem KEY m, sismember KEY m, smembers KEY, zadd KEY 1 m, \
                        zrem KEY m, zrange KEY 0 1, zrangebyscore KEY 0 1, zcard KEY, \
                        zcount KEY 0 1, evalsha x 1 KEY, publish CHANNEL m, subscribe CHANNEL";

/// Asks which rights the user lacks, and in a cluster, who owns the namespace's slot.
pub(super) fn probe(keys: &Keys) -> Cmd {
    let filled = |word: &str| match word {
        "KEY" => keys.born(),
        "CHANNEL" => keys.channel(),
        other => other.to_owned(),
    };
    let words = |command: &str| command.split(' ').map(filled).collect::<Vec<_>>();
    let needed: Vec<Vec<String>> = COMMANDS.split(", ").map(words).collect();
    let needed = serde_json::to_string(&needed).expect("texts are JSON");
    let mut command = redis::cmd("EVAL");
    command.arg(include_str!("lua/probe.lua")).arg(1).arg(keys.born()).arg(needed);
    command
}
