//! Requests to the master: sent once, answered in time, repeated only where that is safe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError};
use tokio::time::timeout;

use super::answer::Answer;
use super::failure::FailureMeaning;
use super::history::{self, Watermark};
use super::keys::Keys;
use super::link::{Link, shown};
use super::scripts::{Call, Script};
use super::server::Server;
use super::settings::{Durability, Settings};
use crate::error::{Error, ErrorKind};
use crate::record::UnixMs;
use crate::slot::Group;
use crate::store::{Act, History};
use crate::sync::lock;
use crate::time::boot_time;

/// How often one request may be sent: once, once more over a new connection, and once more if that
/// led to a server that is no longer the master.
const ATTEMPTS: u32 = 3;

/// A namespace on Redis, and the connection to its master while there is one.
pub(super) struct Session {
    pub(super) settings: Settings,
    pub(super) keys: Keys,
    link: tokio::sync::Mutex<Option<Link>>,
    /// As of the latest connection.
    server: Mutex<Arc<Server>>,
    /// What has settled, as the answers show it.
    mark: Mutex<Watermark>,
}

/// One step to be carried out by a script.
pub(super) struct Step {
    pub(super) act: &'static str,
    pub(super) script: &'static Script,
    pub(super) group: Group,
    pub(super) arguments: Vec<String>,
    /// How many words of its own the script answers with.
    pub(super) more: usize,
    /// Whether it may be sent again after a connection broke.
    pub(super) is_repeatable: bool,
    /// Whether it changes anything.
    pub(super) writes: bool,
    /// Whether replicas must have it before it counts.
    pub(super) is_acknowledged: bool,
}

impl Session {
    /// Connects.
    pub(super) async fn open(settings: Settings, keys: Keys) -> Result<Self, Error> {
        let session = Self {
            settings,
            keys,
            link: tokio::sync::Mutex::new(None),
            server: Mutex::default(),
            mark: Mutex::default(),
        };
        let opened = timeout(session.settings.timeout, session.link()).await;
        match opened {
            Ok(link) => link.map(drop)?,
            Err(_) => return Err(session.settings.silent("the server")),
        }
        Ok(session)
    }

    /// The server as of the latest connection.
    pub(super) fn server(&self) -> Arc<Server> {
        lock(&self.server).clone()
    }

    /// Carries a step out, within the time-out.
    pub(super) async fn run(&self, step: &Step) -> Result<Answer, Error> {
        let (was_sent, began) = (AtomicBool::new(false), boot_time());
        let words = match timeout(self.settings.timeout, self.attempt(step, &was_sent)).await {
            Ok(answer) => answer?,
            Err(_) => {
                return Err(self.late(step.act, step.writes && was_sent.load(Ordering::Relaxed)));
            }
        };
        let answer = Answer::of(&words, step.more, &self.keys, step.group)
            .map_err(|(kind, why)| Error::of(kind, step.act, &self.settings.url, why))?;
        lock(&self.mark).observe(&answer, began, boot_time());
        Ok(answer)
    }

    /// Sends a command that does no harm if it is carried out twice, within the time-out.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        act: Act,
        command: &Cmd,
    ) -> Result<T, Error> {
        let sent = async {
            let mut link = self.link().await?;
            command.query_async(&mut link.connection).await.map_err(|error| {
                self.learn(&link, &error);
                match act {
                    Act::Read => self.nothing_written(act.word(), &error),
                    _ => self.settings.failed(act.word(), &error),
                }
            })
        };
        match timeout(self.settings.timeout, sent).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late(act.word(), act != Act::Read)),
        }
    }

    /// The history that an answer shows.
    pub(super) fn history(&self, answer: &Answer) -> History {
        history::seen(answer, &self.server(), &self.settings, &lock(&self.mark))
    }

    /// What was written in a history up to this time is on the master's disk.
    pub(super) fn settled(&self, history: &str) -> UnixMs {
        lock(&self.mark).settled(history)
    }

    async fn attempt(&self, step: &Step, was_sent: &AtomicBool) -> Result<Vec<String>, Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            // A request of before may have been carried out, even if nobody can be asked now.
            let is_in_doubt = step.writes && was_sent.load(Ordering::Relaxed);
            let link = self.link().await;
            let link = link.map_err(|error| if is_in_doubt { error.into_unknown() } else { error });
            let mut link = link?;
            let failed = match self.send(&mut link, step, was_sent).await {
                Ok(words) => {
                    // Whoever is to begin a history first has nothing to wait for yet.
                    if words.first().is_none_or(|status| status != "begin") {
                        self.acknowledge(&mut link, step).await?;
                    }
                    return Ok(words);
                }
                Err(error) => error,
            };
            let meaning = self.learn(&link, &failed);
            let may_help = match meaning {
                FailureMeaning::Elsewhere => true,
                FailureMeaning::Broken => step.is_repeatable,
                _ => false,
            };
            if meaning == FailureMeaning::Elsewhere && !is_in_doubt {
                was_sent.store(false, Ordering::Relaxed);
            }
            if may_help && attempts < ATTEMPTS {
                continue;
            }
            return Err(match meaning {
                _ if is_in_doubt => self.settings.failed(step.act, &failed).into_unknown(),
                _ if !step.writes => self.nothing_written(step.act, &failed),
                _ => self.settings.failed(step.act, &failed),
            });
        }
    }

    /// The error of a request that only reads: nothing is in doubt.
    fn nothing_written(&self, act: &'static str, error: &RedisError) -> Error {
        match FailureMeaning::of(error) {
            FailureMeaning::Broken => {
                let why = self.settings.redacted(error);
                Error::new(ErrorKind::Unavailable, act, &self.settings.url, "").with_source(why)
            }
            _ => self.settings.failed(act, error),
        }
    }

    async fn send(
        &self,
        link: &mut Link,
        step: &Step,
        was_sent: &AtomicBool,
    ) -> Result<Vec<String>, RedisError> {
        let call =
            Call::new(&self.keys, &link.server, step.group).with(step.arguments.iter().cloned());
        was_sent.store(true, Ordering::Relaxed);
        let query = async |command: Cmd, link: &mut Link| {
            command.query_async::<Vec<String>>(&mut link.connection).await
        };
        if link.is_first_of(step.script) {
            return query(step.script.by_text(&call), link).await;
        }
        match query(step.script.by_name(&call), link).await {
            // This overtook the text, or the server has forgotten its scripts.
            Err(error) if FailureMeaning::of(&error) == FailureMeaning::NoScript => {
                query(step.script.by_text(&call), link).await
            }
            answer => answer,
        }
    }

    /// Waits until as many replicas as configured have all that this connection wrote.
    async fn acknowledge(&self, link: &mut Link, step: &Step) -> Result<(), Error> {
        let needed = match self.settings.durability {
            _ if !step.is_acknowledged => return Ok(()),
            Durability::Async => return Ok(()),
            Durability::Wait(count) => count,
        };
        // The answer to it must be here before the time-out of the whole.
        let limit = self.settings.timeout.mul_f32(0.75).max(Duration::from_millis(1));
        let mut wait = redis::cmd("WAIT");
        wait.arg(needed).arg(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        let unknown =
            |why: String| Error::new(ErrorKind::Unknown, step.act, &self.settings.url, why);
        match wait.query_async::<u32>(&mut link.connection).await {
            Ok(reached) if reached >= needed => Ok(()),
            Ok(reached) => Err(unknown(format!(
                "only {reached} of {needed} replicas confirmed all that was written within {limit:?}"
            ))),
            Err(error) => {
                self.learn(link, &error);
                let why = "written, and not known whether replicas have it";
                Err(unknown(why.into()).with_source(self.settings.redacted(&error)))
            }
        }
    }

    /// The present connection, or a new one.
    pub(super) async fn link(&self) -> Result<Link, Error> {
        let mut held = self.link.lock().await;
        if let Some(link) = held.as_ref().filter(|link| !link.is_lost()) {
            return Ok(link.clone());
        }
        *held = None;
        // Boxed: what connects is nested deeply, and so would be every future that it is a part of.
        let opened = Box::pin(Link::open(&self.settings, &self.keys)).await;
        let link = opened.map_err(|error| {
            // What was fine when the store was opened, and is refused now, may be so for a moment:
            // an address that is led from one server to another, or a server being set up again.
            let was_fine = self.server().is_master;
            match error.kind() {
                ErrorKind::Unsafe if was_fine => {
                    self.settings.refused(ErrorKind::Unavailable, "").with_source(error)
                }
                _ => error,
            }
        })?;
        tracing::debug!(address = %shown(&link.address), lineage = %link.server.lineage, "connected");
        *lock(&self.server) = link.server.clone();
        *held = Some(link.clone());
        Ok(link)
    }

    /// What an error means, and that the connection is of no more use if it says so.
    fn learn(&self, link: &Link, error: &RedisError) -> FailureMeaning {
        let meaning = FailureMeaning::of(error);
        if matches!(meaning, FailureMeaning::Elsewhere | FailureMeaning::Broken) {
            link.mark_lost();
        }
        meaning
    }

    /// The time is over.
    fn late(&self, act: &'static str, may_have_been_carried_out: bool) -> Error {
        // What still waits on this connection would only delay what comes next.
        if let Ok(held) = self.link.try_lock()
            && let Some(link) = held.as_ref()
        {
            link.mark_lost();
        }
        let kind = match may_have_been_carried_out {
            true => ErrorKind::Unknown,
            false => ErrorKind::Unavailable,
        };
        let why = format_args!("no answer within {:?}", self.settings.timeout);
        Error::new(kind, act, &self.settings.url, why)
    }
}
