//! SIGHUP: the configuration is read again.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::args::ServeArgs;
use crate::config::{self, Files, Settings};
use crate::log::Log;

/// What takes effect without a restart.
const AT_ONCE: [&str; 1] = ["log.level"];

/// Reads the configuration again whenever it is asked to. It is a task of its own: a file that is
/// slow to read holds nothing up. Ends when it is aborted.
pub(super) async fn reload(mut reloading: Reloading, asked: Arc<Notify>) {
    loop {
        asked.notified().await;
        reloading.reload().await;
    }
}

/// What is known of the running configuration, to compare it with what is read.
pub(super) struct Reloading {
    flags: ServeArgs,
    running: Settings,
    log: Arc<Log>,
}

impl Reloading {
    pub(super) fn new(flags: &ServeArgs, running: Settings, log: Arc<Log>) -> Self {
        Self { flags: flags.clone(), running, log }
    }

    /// Takes over what can be taken over. If anything is wrong, nothing is.
    async fn reload(&mut self) {
        let flags = self.flags.clone();
        let read = tokio::task::spawn_blocking(move || config::load(&flags, Files::Look)).await;
        let new = match read {
            Ok(Ok(new)) => new,
            Ok(Err(wrong)) => {
                for problem in wrong.lines() {
                    tracing::error!(
                        "the configuration is wrong, and nothing was changed: {problem}"
                    );
                }
                return;
            }
            Err(error) => {
                tracing::error!(%error, "the configuration was not read");
                return;
            }
        };
        // The one place for everything that the server itself can take over.
        self.take_over_level(&new);
        self.warn_of_the_rest(&new);
    }

    fn take_over_level(&mut self, new: &Settings) {
        let (before, now) = (&self.running.args.log.log, &new.args.log.log);
        if before != now {
            self.log.set_filter(now.clone());
            tracing::info!(state = %now, was = %before, "the log level changed");
            self.running.args.log.log = now.clone();
        } else {
            tracing::info!("the configuration was read again");
        }
    }

    /// Names what changed and has no effect yet.
    fn warn_of_the_rest(&self, new: &Settings) {
        let pairs = self.running.values.iter().zip(&new.values);
        let changed: Vec<String> = pairs
            .filter(|(before, now)| before.texts != now.texts)
            .map(|(_, now)| now.key.to_string())
            .filter(|key| !AT_ONCE.contains(&key.as_str()))
            .collect();
        if !changed.is_empty() {
            let keys = changed.join(", ");
            tracing::warn!("these settings changed and need a restart: {keys}");
        }
    }
}
