//! Redis 6 or newer: one server, servers behind Sentinel, or a cluster.
//!
//! Every step is a script, hence atomic; presence is judged by the server's `TIME`; nothing has a
//! Redis TTL. `scripts` and the Lua files hold the rules, which a test compares with
//! [`rules`](crate::rules); the guard against lost writes is explained in `lua/prelude.lua`.
//!
//! A user needs no more than this, here for the default prefix (`+config|get` is optional, and
//! `+select` is needed for a database other than 0):
//!
//! ```text
//! ACL SETUSER frazil on >PASSWORD resetkeys ~{frazil:* resetchannels &{frazil:* -@all
//!   +eval +evalsha +info +time +ping +wait +publish +subscribe +get +set +exists +hget +hset +hdel
//!   +hmget +hgetall +hexists +hlen +sadd +sismember +smembers +zadd +zrem +zrange +zrangebyscore
//!   +zcard +zcount
//! ```

mod failure;
mod keys;
mod link;
mod promise;
mod scripts;
mod server;
mod session;
mod settings;
mod text;
mod watching;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use self::keys::Keys;
use self::scripts::{ACQUIRE, Call, EXTEND, PUT, PUT_META, READ, RELEASE};
use self::session::{Answer, Session, Step};
use self::settings::Settings;
use crate::error::{Error, ErrorKind};
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::lease::{Acquired, Ask, Census, Choice, Claim, Extended, Guard, Loss, Released, Tenure};
use crate::namespace::Namespace;
use crate::record::{FORMAT, Meta, Record, Token, UnixMs, Version, Versioned};
use crate::rules::WINDOW_MAX_MS;
use crate::slot::{Group, Slot};
use crate::store::{Changes, Entry, Found, Presence, Put, Store};
use crate::timing::Timing;
use crate::url::StoreUrl;

/// A namespace on Redis.
pub struct RedisStore {
    session: Arc<Session>,
    /// Whoever watches it sees when the store is dropped.
    alive: watch::Sender<()>,
}

impl RedisStore {
    /// Connects to the master, and checks that it can be relied upon.
    ///
    /// # Errors
    /// If the server cannot be reached, does not let us in, or may forget records.
    pub async fn connect(url: &StoreUrl, namespace: &Namespace) -> Result<Self, Error> {
        let settings = Settings::of(url)?;
        let keys = Keys::new(&settings.prefix, namespace);
        let session = Arc::new(Session::open(settings, keys).await?);
        let (alive, _) = watch::channel(());
        Ok(Self { session, alive })
    }

    fn corrupt(&self, act: &'static str, why: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Corrupt, act, self, why)
    }

    /// For an answer that no script of ours gives.
    fn strange(&self, act: &'static str, answer: &Answer) -> Error {
        self.corrupt(act, format_args!("the script answered {:?}", answer.words))
    }

    fn step(act: &'static str, script: &'static scripts::Script, group: Group) -> Step<'static> {
        Step {
            act,
            script,
            group,
            arguments: Vec::new(),
            is_repeatable: true,
            writes: true,
            is_acknowledged: true,
        }
    }

    /// A step that reads the server's time, meta and the guard.
    fn reading(act: &'static str) -> Step<'static> {
        Step { writes: false, is_acknowledged: false, ..Self::step(act, &READ, Group::Workers) }
    }

    fn acquired(&self, claim: &Claim, answer: &Answer) -> Result<Acquired, Error> {
        const ACT: &str = "acquire";
        let words: Vec<&str> = answer.words.iter().map(String::as_str).collect();
        match words[..] {
            ["held", name, version, token, floor, horizon, expires, now, lineage, _] => {
                let group = match &claim.choice {
                    Choice::This(slot, _) => slot.group(),
                    Choice::Any { .. } => Group::Workers,
                };
                let tenure = || {
                    Some(Tenure {
                        slot: Slot::named(group, name).ok()?,
                        token: Token(token.parse().ok()?),
                        nonce: claim.nonce,
                        version: Version(version.parse().ok()?),
                        floor: floor.parse().ok()?,
                        horizon: horizon.parse().ok()?,
                        expires: Some(expires.parse().ok()?),
                        store_now: Some(now.parse().ok()?),
                        lineage: Some(lineage.to_owned()),
                    })
                };
                tenure().map(Acquired::Held).ok_or_else(|| self.strange(ACT, answer))
            }
            ["taken"] => Ok(Acquired::Taken),
            ["moved"] => Ok(Acquired::MetaMoved),
            ["full", held, blocked, poisoned, next_floor] => Ok(Acquired::Full(Census {
                held: held.parse().unwrap_or(0),
                blocked: blocked.parse().unwrap_or(0),
                poisoned: poisoned.parse().unwrap_or(0),
                next_floor: next_floor.parse().ok(),
            })),
            ["newer", format] => {
                Err(Error::new(ErrorKind::NewerFormat, ACT, self, text::newer(format)))
            }
            ["corrupt", why] => Err(self.corrupt(ACT, why)),
            _ => Err(self.strange(ACT, answer)),
        }
    }

    fn put_answer(&self, act: &'static str, answer: &Answer) -> Result<Put, Error> {
        match (answer.words.first().map(String::as_str), answer.words.get(1)) {
            (Some("conflict"), _) => Ok(Put::Conflict),
            (Some("done"), Some(version)) => match version.parse() {
                Ok(version) => Ok(Put::Done(Version(version))),
                Err(_) => Err(self.strange(act, answer)),
            },
            (Some("corrupt"), Some(why)) => Err(self.corrupt(act, why)),
            _ => Err(self.strange(act, answer)),
        }
    }
}

#[async_trait]
impl Store for RedisStore {
    fn guarantees(&self) -> Guarantees {
        promise::guarantees(&self.session)
    }

    async fn diagnose(&self, _timing: &Timing) -> Result<Vec<Finding>, Error> {
        // If the connection was lost, it is made anew, and the server asked again.
        self.session.run(&Self::reading("diagnose")).await?;
        Ok(promise::findings(&self.session))
    }

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        const ACT: &str = "read meta";
        let answer = self.session.run(&Self::reading(ACT)).await?;
        match answer.words.get(1).map(String::as_str) {
            Some("") => Ok(None),
            Some(meta) => text::meta(meta.as_bytes())
                .map(Some)
                .map_err(|(kind, why)| Error::new(kind, ACT, self, why))
                .map_err(|error| {
                    error.with_way_out(format_args!("DEL {}", self.session.keys.meta()))
                }),
            None => Err(self.strange(ACT, &answer)),
        }
    }

    async fn guard(&self) -> Result<Option<Guard>, Error> {
        let answer = self.session.run(&Self::reading("read the guard")).await?;
        let until = answer.words.get(2).and_then(|until| until.parse().ok());
        Ok(until.map(|until| Guard { until, reason: promise::GUARDED.into() }))
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        const ACT: &str = "write meta";
        let text = serde_json::to_string(meta).map_err(|error| self.corrupt(ACT, error))?;
        let expected = expected.map(|version| version.0.to_string()).unwrap_or_default();
        let window = meta.window_ms.min(WINDOW_MAX_MS).to_string();
        let arguments = vec![expected, text, window];
        // A repetition would take its own first try for somebody else's.
        let step =
            Step { arguments, is_repeatable: false, ..Self::step(ACT, &PUT_META, Group::Workers) };
        let answer = self.session.run(&step).await?;
        self.put_answer(ACT, &answer)
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        // First the marks and then the records: what is born in between is in the records.
        let (settings, keys) = (&self.session.settings, &self.session.keys);
        let mut pipeline = redis::pipe();
        pipeline.add_command(READ.by_text(&Call::new(settings, keys, group, false)));
        pipeline.cmd("SMEMBERS").arg(keys.born());
        pipeline.cmd("HGETALL").arg(keys.records(group));
        let (read, born, records): (Vec<String>, HashSet<String>, HashMap<String, Vec<u8>>) =
            self.session.read("list", &pipeline).await?;
        let now = read.first().and_then(|now| now.parse().ok()).unwrap_or(0);
        let name =
            |mark: &str| Some(mark.strip_prefix(group.letter())?.strip_prefix('/')?.to_owned());
        let mut names: HashSet<String> = born.iter().filter_map(|mark| name(mark)).collect();
        names.extend(records.keys().cloned());
        let entries = names.into_iter().filter_map(|name| {
            let slot = Slot::named(group, &name).ok()?;
            Some(entry(slot, records.get(&name).map(Vec::as_slice), now))
        });
        Ok(entries.collect())
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        let group = match &claim.choice {
            Choice::This(slot, _) => slot.group(),
            Choice::Any { .. } => Group::Workers,
        };
        let info =
            serde_json::to_string(&claim.info).map_err(|error| self.corrupt("acquire", error))?;
        let step = Step {
            arguments: acquire_arguments(claim, info),
            ..Self::step("acquire", &ACQUIRE, group)
        };
        match (self.session.run(&step).await, &claim.choice) {
            (Ok(answer), _) => self.acquired(claim, &answer),
            (Err(error), Choice::This(slot, read)) if error.kind() == ErrorKind::Unknown => {
                tracing::warn!(%error, %slot, "whether the slot was taken is not known yet");
                Ok(Acquired::Unsure(slot.clone(), *read))
            }
            // The same claim, repeated, gets the slot that it got before, if it did.
            (Err(error), _) => Err(error),
        }
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        let mut arguments = tenure_arguments(tenure);
        arguments.extend([
            text::time(ask.horizon),
            millis(ask.ttl),
            text::time(ask.now),
            ask.window_ms.min(WINDOW_MAX_MS).to_string(),
        ]);
        let step = Step { arguments, ..Self::step("extend", &EXTEND, tenure.slot.group()) };
        let answer = self.session.run(&step).await?;
        extended(tenure, &answer).ok_or_else(|| self.strange("extend", &answer))
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        let mut arguments = tenure_arguments(tenure);
        arguments.push(text::time(last));
        // A release that is lost costs nothing but time, so that nobody waits for replicas.
        let step = Step {
            arguments,
            is_acknowledged: false,
            ..Self::step("release", &RELEASE, tenure.slot.group())
        };
        let answer = self.session.run(&step).await?;
        let words: Vec<&str> = answer.words.iter().map(String::as_str).collect();
        match words[..] {
            ["done"] => Ok(Released::Done),
            // Its first sending was carried out, and the answer was lost.
            ["over", "released"] if answer.is_repeated => Ok(Released::Done),
            ["over", _] => Ok(Released::NotHeld),
            _ => Err(self.strange("release", &answer)),
        }
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        const ACT: &str = "put";
        let record = Record { expires: None, ..record.clone() };
        if !text::fits(&record) {
            let why = format_args!(
                "a number is above {}, which scripts cannot count to",
                text::EXACT_MAX
            );
            return Err(Error::new(ErrorKind::InvalidConfig, ACT, self, why));
        }
        let text = serde_json::to_string(&record).map_err(|error| self.corrupt(ACT, error))?;
        let arguments = vec![slot.name().to_owned(), expected.0.to_string(), text];
        let step = Step { arguments, is_repeatable: false, ..Self::step(ACT, &PUT, slot.group()) };
        let answer = self.session.run(&step).await?;
        self.put_answer(ACT, &answer)
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        watching::watch(&self.session, group, self.alive.subscribe()).await
    }

    async fn time(&self) -> Result<Option<UnixMs>, Error> {
        const ACT: &str = "read the time";
        let answer = self.session.run(&Self::reading(ACT)).await?;
        let now = answer.words.first().and_then(|now| now.parse().ok());
        now.map(Some).ok_or_else(|| self.strange(ACT, &answer))
    }
}

fn entry(slot: Slot, text: Option<&[u8]>, now: UnixMs) -> Entry {
    let (version, record) = text.map_or((Version(0), None), text::record);
    let left = record.as_ref().and_then(|record| record.expires?.checked_sub(now));
    let presence = match left {
        None | Some(0) => Presence::Free,
        Some(left) => Presence::Held { expires_in: Some(Duration::from_millis(left)) },
    };
    Entry { slot, version, found: record.map_or(Found::Lost, Found::Known), presence }
}

fn acquire_arguments(claim: &Claim, info: String) -> Vec<String> {
    let mut arguments = vec![
        claim.nonce.to_string(),
        claim.holder.clone(),
        info,
        millis(claim.ttl),
        text::time(claim.now),
        text::time(claim.ask),
        claim.window_ms.min(WINDOW_MAX_MS).to_string(),
        text::time(claim.quarantine),
        claim.meta.0.to_string(),
        FORMAT.to_string(),
    ];
    match &claim.choice {
        Choice::This(slot, read) => {
            arguments.extend(["this".to_owned(), slot.name().to_owned(), read.0.to_string()]);
        }
        Choice::Any { first, last, favourite } => arguments.extend([
            "any".to_owned(),
            first.to_string(),
            last.to_string(),
            favourite.map(|number| number.to_string()).unwrap_or_default(),
        ]),
    }
    arguments
}

/// What the holder knows, empty where it does not.
fn tenure_arguments(tenure: &Tenure) -> Vec<String> {
    let optional = |time: Option<UnixMs>| time.map(text::time).unwrap_or_default();
    vec![
        tenure.slot.name().to_owned(),
        text::time(tenure.token.0),
        tenure.nonce.to_string(),
        tenure.lineage.clone().unwrap_or_default(),
        optional(tenure.expires),
        optional(tenure.store_now),
        text::time(tenure.horizon),
    ]
}

fn extended(tenure: &Tenure, answer: &Answer) -> Option<Extended> {
    let words: Vec<&str> = answer.words.iter().map(String::as_str).collect();
    Some(match words[..] {
        ["held", version, horizon, expires, now, lineage] => Extended::Held(Tenure {
            version: Version(version.parse().ok()?),
            horizon: horizon.parse().ok()?,
            expires: Some(expires.parse().ok()?),
            store_now: Some(now.parse().ok()?),
            lineage: Some(lineage.to_owned()),
            ..tenure.clone()
        }),
        ["lost", "superseded", token, holder] => Extended::Lost(Loss::Superseded {
            token: Token(token.parse().ok()?),
            holder: holder.to_owned(),
        }),
        ["lost", "overlapped", token, holder] => Extended::Lost(Loss::Overlapped {
            token: Token(token.parse().ok()?),
            holder: holder.to_owned(),
        }),
        ["lost", "vanished"] => Extended::Lost(Loss::Vanished),
        ["lost", "released"] => Extended::Lost(Loss::Released),
        ["lost", "regressed"] => Extended::Lost(Loss::Regressed),
        ["lost", "lapsed"] => Extended::Lost(Loss::Lapsed),
        _ => return None,
    })
}

fn millis(duration: Duration) -> String {
    text::time(crate::time::millis(duration))
}

impl fmt::Display for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.settings.url.fmt(f)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({self}, {})", self.session.keys.tag())
    }
}
