//! The script on a real server, through a stock client.

use frazil_coord::Token;
use frazil_election::fence::{FencedKey, RedisCall};
use frazil_rig::Redis;

use super::{Register, faults};

struct Guarded<'a> {
    redis: &'a Redis,
    key: FencedKey,
    name: String,
    /// Changes the script.
    change: Change,
}

type Change = fn(&str) -> String;

impl<'a> Guarded<'a> {
    fn new(redis: &'a Redis, name: &str, change: Change) -> Self {
        Self { redis, key: FencedKey::new(name).unwrap(), name: name.to_owned(), change }
    }

    fn call(&self, call: &RedisCall) -> String {
        let script = (self.change)(call.script);
        let arguments: Vec<_> =
            call.arguments.iter().map(|bytes| str::from_utf8(bytes).unwrap()).collect();
        let mut line = vec!["--raw", "EVAL", &script, "2", &call.keys[0], &call.keys[1]];
        line.extend(arguments);
        self.redis.cli(&line).unwrap()
    }

    fn is_accepted(&self, call: &RedisCall) -> bool {
        let reply = self.call(call);
        let (accepted, highest) = reply.trim_end().split_once('\n').expect("two lines");
        FencedKey::outcome(accepted.parse().unwrap(), highest).unwrap().is_accepted()
    }
}

impl Register for Guarded<'_> {
    fn write(&mut self, token: Token, value: &str) -> bool {
        self.is_accepted(&self.key.write(token, value))
    }

    fn value(&mut self) -> String {
        self.redis.cli(&["--raw", "GET", &self.name]).unwrap().trim_end().to_owned()
    }
}

#[test]
fn a_key_is_written_under_its_highest_token_only() {
    let redis = Redis::start().unwrap();
    for name in ["report", "{app}:report"] {
        assert_eq!(faults(&mut Guarded::new(&redis, name, str::to_owned)), [""; 0]);
    }
    let own = Guarded::new(&redis, "raised", str::to_owned);
    assert!(own.is_accepted(&own.key.raise(Token(8))));
    assert!(!own.is_accepted(&own.key.write(Token(7), "late")));
    assert_eq!(redis.cli(&["EXISTS", "raised"]).unwrap().trim(), "0");
    // 2^53 and the next number are one to Lua.
    assert!(own.is_accepted(&own.key.raise(Token((1 << 53) + 1))));
    assert!(!own.is_accepted(&own.key.raise(Token(1 << 53))));
    assert!(own.is_accepted(&own.key.raise(Token(u64::MAX))));
    assert!(own.call(&own.key.raise(Token(0))).contains("not a positive number"));
    redis.cli(&["SET", "{raised}:fence", "1e99"]).unwrap();
    assert!(own.call(&own.key.raise(Token(9))).contains("the fence is not a token"));
}

#[test]
fn scripts_without_a_proper_fence_are_found_out() {
    let redis = Redis::start().unwrap();
    let broken: [(&str, Change); 4] = [
        ("always", |script| script.replace("if is_less(token, highest)", "if false")),
        ("never-raised", |script| script.replace("if highest ~= token then", "if false then")),
        ("by-text", |script| script.replace("#a ~= #b", "false")),
        ("own-refused", |script| {
            script.replace("is_less(token, highest)", "not is_less(highest, token)")
        }),
    ];
    for (name, change) in broken {
        assert_ne!(change(FencedKey::SCRIPT), FencedKey::SCRIPT, "{name}");
        let found = faults(&mut Guarded::new(&redis, name, change));
        // The first write of `never-raised` is let in by every token.
        assert!(!found.is_empty(), "{name}");
    }
}
