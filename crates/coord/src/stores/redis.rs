//! Redis: records are fields of a hash, presence is an expiry by the server's clock, and every
//! commit is one script.
//!
//! Redis may lose the end of what it acknowledged, when it restarts or another server is promoted.
//! It has a [`History`](crate::store::History) therefore (`history.rs`), and `settle` tells when a
//! write cannot be lost.
//!
//! A user needs no more than this (and `+cluster|info +cluster|nodes` in a cluster); `+config|get`
//! shows when the log is synced, and without it the worst is assumed. `+scan` shows other namespaces:
//!
//! ```text
//! ACL SETUSER frazil on >PASSWORD resetkeys ~{frazil:* resetchannels &{frazil:* -@all
//!     +eval +evalsha +info +time +ping +wait +publish +subscribe +get +set +exists
//!     +hget +hset +hdel +hmget +hkeys +hlen +sadd +srem +sismember +smembers
//!     +zadd +zrem +zrange +zrangebyscore +zcard +zcount +config|get +scan
//! ```

mod answer;
mod failure;
mod guarantees;
mod history;
mod keys;
mod link;
mod neighbours;
mod replicas;
mod scripts;
mod server;
mod session;
mod settings;
mod settle;
mod text;
mod watching;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use self::answer::Answer;
use self::history::Level;
use self::keys::Keys;
use self::scripts::{COMMIT, FREE_SLOTS, READ, Script, WRITE};
use self::session::{Session, Step};
use self::settings::Settings;
use crate::choose::walk;
use crate::error::{Error, ErrorKind};
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::namespace::Namespace;
use crate::record::{Meta, Record, Version, json};
use crate::replicas::ForgottenReplica;
use crate::slot::{Group, Slot};
use crate::store::{
    Act, Changes, Commit, Committed, Entry, FreeSlots, Look, PresenceChange, Present, Put, Store,
    Wanted, Watched, Written,
};
use crate::time::millis;
use crate::timing::Timing;
use crate::url::{Scheme, StoreUrl};

/// How many changes one commit tries. If all of a crowd see the same free workers, a claim fails on
/// all of these with a chance of 1 in 9; more would make every request larger.
const CHANGES_MAX: usize = 8;
/// Up to this many workers are all looked at.
const RANGE_READ_MAX: u64 = 64;
/// How often a commit begins a history that others keep changing.
const BEGINNINGS_MAX: usize = 4;

/// A namespace on Redis.
pub struct RedisStore {
    session: Arc<Session>,
    namespace: Namespace,
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
        Ok(Self { session, namespace: namespace.clone(), alive })
    }

    fn strange(&self, act: Act, answer: &Answer) -> Error {
        let why = format_args!("the script answered {:?}", answer.status);
        Error::new(ErrorKind::Corrupt, act.word(), self, why)
    }

    /// What a script that reads shows.
    async fn look(&self, act: Act, group: Group, names: Vec<String>) -> Result<Answer, Error> {
        self.session.run(&Step { arguments: names, ..reading(act, &READ, group) }).await
    }

    /// What a script shows to somebody who claims a slot, once the history has begun: whoever waits
    /// until all has passed that was lost must count from one moment.
    async fn run_begun(&self, step: &Step) -> Result<Answer, Error> {
        for _ in 0..BEGINNINGS_MAX {
            let answer = self.session.run(step).await?;
            if answer.meta.is_none() || answer.stored.is_current(&answer) {
                return Ok(answer);
            }
            self.begin(step.group, &answer).await?;
        }
        Err(self.never_begun(step.act))
    }

    fn never_begun(&self, act: &'static str) -> Error {
        let why = "a new history could not be begun: others begin it at the same time";
        Error::new(ErrorKind::Unavailable, act, self, why)
    }

    /// Remembers that a new history began, with what it may lack, before anything is written in it.
    async fn begin(&self, group: Group, answer: &Answer) -> Result<(), Error> {
        let (server, settings) = (self.session.server(), &self.session.settings);
        let level = Level::of(answer, &server, settings);
        let overlap_ms = history::overlap_ms(answer, settings);
        let next = answer.stored.next(answer, level, overlap_ms);
        if answer.stored.id != next.id {
            tracing::info!(
                store = %self, since = next.began, forked = next.forked,
                "the server was restarted or promoted: a new history begins"
            );
        }
        let arguments = vec![
            "begin".to_owned(),
            answer.stored.read.clone(),
            next.began.to_string(),
            next.forked.to_string(),
            next.level.digit().to_owned(),
        ];
        let step = Step { arguments, ..writing(Act::Put, &WRITE, group) };
        // If somebody else was faster the history has begun.
        self.session.run(&step).await.map(drop)
    }

    fn look_of(&self, answer: Answer) -> Look {
        let history = self.session.history(&answer);
        Look { meta: answer.meta, entries: answer.entries, clock: Some(answer.clock), history }
    }

    fn put_answer(&self, act: Act, answer: &Answer) -> Result<Put, Error> {
        match (answer.status.as_str(), answer.more.first()) {
            ("conflict", _) => Ok(Put::Conflict),
            ("done", version) => {
                let version = version.and_then(|version| version.parse().ok()).unwrap_or(0);
                Ok(Put::Done(Version(version)))
            }
            _ => Err(self.strange(act, answer)),
        }
    }
}

fn reading(act: Act, script: &'static Script, group: Group) -> Step {
    Step { writes: false, is_acknowledged: false, ..writing(act, script, group) }
}

fn writing(act: Act, script: &'static Script, group: Group) -> Step {
    Step {
        act: act.word(),
        script,
        group,
        arguments: Vec::new(),
        more: 0,
        // What was carried out already is recognised by its version.
        is_repeatable: true,
        writes: true,
        is_acknowledged: true,
    }
}

#[async_trait]
impl Store for RedisStore {
    fn guarantees(&self) -> Guarantees {
        guarantees::guarantees(&self.session)
    }

    async fn diagnose(&self, _timing: &Timing) -> Result<Vec<Finding>, Error> {
        // If the connection was lost, it is made anew, and the server asked again.
        let answer = self.look(Act::Read, Group::Workers, Vec::new()).await?;
        let mut found = guarantees::findings(&self.session);
        // Whether sentinels answer is not what is asked here.
        found.extend(replicas::findings(&self.session, &answer).await.unwrap_or_default());
        Ok(found)
    }

    async fn missing_replicas(&self) -> Result<Vec<String>, Error> {
        if self.session.settings.url.scheme == Scheme::Redis {
            return Ok(Vec::new());
        }
        let answer = self.look(Act::Read, Group::Workers, Vec::new()).await?;
        replicas::missing(&self.session, &answer, 0).await
    }

    async fn forget_replica(&self, address: &str) -> Result<ForgottenReplica, Error> {
        let answer = self.look(Act::Read, Group::Workers, Vec::new()).await?;
        replicas::forget(&self.session, &answer, address).await
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let group = slots.first().map_or(Group::Workers, Slot::group);
        let names: Vec<String> = slots.iter().map(|slot| slot.name().to_owned()).collect();
        let is_claimed = !names.is_empty();
        // What a claim finds to be its own may be what was written and not confirmed.
        let step = Step {
            arguments: names,
            is_acknowledged: is_claimed,
            ..reading(Act::Read, &READ, group)
        };
        // Who asks for no slot only looks on, and writes nothing.
        let answer = match is_claimed {
            true => self.run_begun(&step).await?,
            false => self.session.run(&step).await?,
        };
        Ok(self.look_of(answer))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        Ok(self.look(Act::List, group, vec!["*".to_owned()]).await?.entries)
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        let size = u64::from(wanted.last.saturating_sub(wanted.first)) + 1;
        if size <= RANGE_READ_MAX {
            let all: Vec<Slot> = (wanted.first..=wanted.last).map(Slot::worker).collect();
            let look = self.read(&all).await?;
            return Ok(FreeSlots::of_all(look));
        }
        let (start, step) = walk(wanted);
        let arguments = vec![
            wanted.first.to_string(),
            wanted.last.to_string(),
            CHANGES_MAX.to_string(),
            start.to_string(),
            step.to_string(),
            wanted.favourite.map(|number| number.to_string()).unwrap_or_default(),
            wanted.nonce.to_string(),
        ];
        let step = Step {
            arguments,
            more: 1,
            is_acknowledged: true,
            ..reading(Act::FreeSlots, &FREE_SLOTS, Group::Workers)
        };
        let answer = self.run_begun(&step).await?;
        if answer.status == "unindexed" {
            // An index was lost: nobody would find the workers that are in none.
            let all = self.look(Act::FreeSlots, Group::Workers, vec!["*".to_owned()]).await?;
            return Ok(FreeSlots::of_all(self.look_of(all)));
        }
        let held = answer.more.first().and_then(|held| held.parse().ok()).unwrap_or(0);
        Ok(FreeSlots { look: self.look_of(answer), is_complete: false, held })
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        let group = commit.changes.first().map_or(Group::Workers, |change| change.slot.group());
        let step = Step {
            arguments: arguments(commit).map_err(|why| {
                Error::new(ErrorKind::InvalidConfig, commit.act.word(), self, why)
            })?,
            more: 3,
            // A release that is lost costs nothing but time, so that nobody waits for replicas.
            is_acknowledged: commit.act != Act::Release,
            ..writing(commit.act, &COMMIT, group)
        };
        for _ in 0..BEGINNINGS_MAX {
            let answer = self.session.run(&step).await?;
            match answer.status.as_str() {
                // Where there is no namespace there is nothing to remember.
                "begin" if answer.meta.is_some() => self.begin(group, &answer).await?,
                "begin" | "conflict" => return Ok(Committed::Conflict(self.look_of(answer))),
                "done" => {
                    let number = |at: usize| answer.more.get(at)?.parse::<u64>().ok();
                    let (Some(expires), Some(version), Some(index)) =
                        (number(0), number(1), number(2))
                    else {
                        return Err(self.strange(commit.act, &answer));
                    };
                    return Ok(Committed::Done {
                        index: usize::try_from(index).unwrap_or(usize::MAX),
                        version: Version(version),
                        expires: Some(expires).filter(|expires| *expires > 0),
                        look: self.look_of(answer),
                    });
                }
                _ => return Err(self.strange(commit.act, &answer)),
            }
        }
        Err(self.never_begun(commit.act.word()))
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let answer = self.look(Act::Read, Group::Workers, Vec::new()).await?;
        let level = Level::of(&answer, &self.session.server(), &self.session.settings);
        let arguments = vec![
            "meta".to_owned(),
            expected.map(|version| version.0.to_string()).unwrap_or_default(),
            json(meta),
            level.digit().to_owned(),
        ];
        // A repetition would take its own first try for somebody else's.
        let step = Step {
            arguments,
            more: 1,
            is_repeatable: false,
            ..writing(Act::PutMeta, &WRITE, Group::Workers)
        };
        let answer = self.session.run(&step).await?;
        self.put_answer(Act::PutMeta, &answer)
    }

    async fn settle(&self, written: &Written) -> Result<bool, Error> {
        settle::settle(self, written).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        if slot.group() == Group::Workers {
            return Ok(Put::Conflict);
        }
        let arguments = vec!["forget".to_owned(), version.0.to_string(), slot.name().to_owned()];
        let step = Step { arguments, ..writing(Act::Forget, &WRITE, slot.group()) };
        let answer = self.session.run(&step).await?;
        self.put_answer(Act::Forget, &answer)
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        watching::watch(&self.session, watched, self.alive.subscribe()).await
    }

    async fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Error> {
        neighbours::find(&self.session, &self.namespace, most).await
    }

    fn namespace(&self) -> Option<&Namespace> {
        Some(&self.namespace)
    }

    fn changes_max(&self) -> usize {
        CHANGES_MAX
    }
}

/// A commit in the words of its script.
fn arguments(commit: &Commit) -> Result<Vec<String>, String> {
    let once = commit.served_once().map(|nonce| nonce.to_string()).unwrap_or_default();
    let meta = commit.meta.map(|version| version.0.to_string()).unwrap_or_default();
    let mut words = vec![commit.history.clone().unwrap_or_default(), meta, once];
    for change in &commit.changes {
        if !text::fits(&change.record) {
            let most = text::EXACT_MAX;
            return Err(format!("a number is above {most}, which scripts cannot count to"));
        }
        let record = Record { expires: None, ..change.record.clone() };
        words.extend([
            change.slot.name().to_owned(),
            change.version.0.to_string(),
            change.nonce.map(|nonce| nonce.to_string()).unwrap_or_default(),
            match change.present {
                Present::Nobody => "nobody",
                Present::Holder => "holder",
            }
            .to_owned(),
            match change.presence_change {
                PresenceChange::For(ttl) => millis(ttl).min(text::EXACT_MAX).to_string(),
                PresenceChange::Ended => String::new(),
            },
            record.horizon.to_string(),
            json(&record),
        ]);
    }
    Ok(words)
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
