//! How mutants break the scripts of Redis: lines of them are replaced, so that the scripts themselves
//! have no trace of it.

use super::{Mutant, is};

/// A line or two of a script, and what a mutant has instead.
struct Change {
    mutant: Mutant,
    right: &'static str,
    wrong: &'static str,
}

const CHANGES: &[Change] = &[
    Change {
        mutant: Mutant::HorizonInLease,
        right: "if state == 'known' then return math.max(record.horizon, base) end",
        wrong: "if state == 'known' then return base end",
    },
    // What is free can be taken at once.
    Change {
        mutant: Mutant::HorizonInLease,
        right: "redis.call('ZADD', FREE, int(record.horizon), name)",
        wrong: "redis.call('ZADD', FREE, 0, name)",
    },
    Change {
        mutant: Mutant::ExtendWithoutToken,
        right: "if record.nonce ~= nonce or record.token ~= token then\n  if record.nonce == nil",
        wrong: "if false then\n  if record.nonce == nil",
    },
    Change {
        mutant: Mutant::ReacquireByName,
        right: "local before = redis.call('HGET', NONCES, nonce)\n",
        wrong: "local before = redis.call('HGET', NONCES, nonce)
for _, name in ipairs(redis.call('HKEYS', RECORDS)) do
  local _, _, record = look(name)
  if record and record.nonce and record.holder == holder then
    record.nonce = nonce
    redis.call('HSET', RECORDS, name, encode(record))
    before = name
  end
end
",
    },
    Change {
        mutant: Mutant::UnfencedTokens,
        right: "token = math.max(record and record.token + 1 or 0, TIME),",
        wrong: "token = record and record.token or 1,",
    },
];

/// A script, broken if this process is a mutant that breaks it.
#[must_use]
pub fn rewrite(code: &str) -> String {
    let changes = CHANGES.iter().filter(|change| is(change.mutant));
    changes.fold(code.to_owned(), |code, change| code.replace(change.right, change.wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPTS: [&str; 3] = [
        include_str!("../stores/redis/lua/prelude.lua"),
        include_str!("../stores/redis/lua/acquire.lua"),
        include_str!("../stores/redis/lua/extend.lua"),
    ];

    #[test]
    fn every_change_meets_one_place_in_the_scripts() {
        for change in CHANGES {
            let places: usize = SCRIPTS.iter().map(|code| code.matches(change.right).count()).sum();
            assert_eq!(places, 1, "{:?}: {}", change.mutant, change.right);
        }
    }

    #[test]
    fn without_a_mutant_scripts_stay_as_they_are() {
        for code in SCRIPTS {
            assert_eq!(rewrite(code), code);
        }
    }
}
