//! SIGHUP: the configuration is read again.

use std::sync::Arc;

use frazil_log::Log;
use frazil_server::Reloader;
use tokio::sync::Notify;

use crate::args::ServeArgs;
use crate::config::{self, Files, Settings};

/// What takes effect without a restart.
const AT_ONCE: [&str; 1] = ["log.level"];

/// Reads the configuration again whenever it is asked to. It is a task of its own: a file that is
/// slow to read holds nothing up. Ends when it is aborted.
pub(super) async fn reload(mut reloading: Reloading, server: Reloader, asked: Arc<Notify>) {
    loop {
        asked.notified().await;
        reloading.reload(&server).await;
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
    async fn reload(&mut self, server: &Reloader) {
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
                tracing::error!(error = %format_args!("{error:#}"), "the configuration was not read");
                return;
            }
        };
        self.take_over_level(&new);
        take_over_files(server.clone()).await;
        self.warn_of_the_rest(&new);
    }

    fn take_over_level(&mut self, new: &Settings) {
        let (before, now) = (&self.running.args.log.log, &new.args.log.log);
        tracing::info!("the configuration was read again");
        if before != now {
            self.log.set_filter(now);
            tracing::info!(state = %now, was = %before, "the log level changed");
            self.running.args.log.log = now.clone();
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

/// Keys, quotas and certificates, which the server reads by itself.
async fn take_over_files(server: Reloader) {
    let problems = match tokio::task::spawn_blocking(move || server.reload()).await {
        Ok(Ok(done)) => {
            done.iter().for_each(|what| tracing::info!("read again: {what}"));
            return;
        }
        Ok(Err(problems)) => problems,
        Err(error) => vec![format!("{error:#}")],
    };
    for problem in problems {
        tracing::error!("not read again, what was there stays in force: {problem}");
    }
}
