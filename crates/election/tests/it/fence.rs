//! Fences on what they guard: real databases, real servers, a real disk. Each also in broken
//! variants, which the same rules must catch.

#[cfg(feature = "etcd")]
mod etcd;
mod file;
#[cfg(feature = "redis")]
mod redis;
mod sql;

use frazil_coord::Token;

/// Something that is written under tokens.
trait Register {
    /// Writes; whether it was accepted.
    fn write(&mut self, token: Token, value: &str) -> bool;
    /// What is there now.
    fn value(&mut self) -> String;
}

/// What is wrong with a register that nobody has written yet. A number must be no token to it.
fn faults(register: &mut dyn Register) -> Vec<&'static str> {
    // Tokens with different numbers of digits: texts that are compared as such would be found out.
    let (stale, old, new) = (Token(98), Token(99), Token(1_794_745_654_763));
    let mut faults = Vec::new();
    let mut expect = |holds: bool, rule: &'static str| {
        if !holds {
            faults.push(rule);
        }
    };
    expect(register.write(old, "first"), "the first write is accepted");
    expect(register.write(old, "second"), "an equal token is accepted");
    expect(register.value() == "second", "an accepted write is there");
    expect(!register.write(stale, "stale"), "a lower token is refused");
    expect(register.value() == "second", "a refused write changes nothing");
    expect(register.write(new, "third"), "a higher token is accepted");
    expect(!register.write(old, "late"), "a higher token raises the fence");
    expect(register.value() == "third", "a late write changes nothing");
    expect(register.write(new, "fourth") && register.value() == "fourth", "the leader goes on");
    faults
}
