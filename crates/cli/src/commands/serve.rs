//! `frazil serve`: run an ID server.

mod reload;
mod scratch;
mod signals;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use frazil::coord::FirstUse;
use frazil::coord::Scheme;
use frazil::coord::internal::time::boot_time;
use frazil_log::{Fact, Log};
use frazil_server::{App, Condition, Config};
use tokio::sync::{Notify, watch};

use self::reload::{Reloading, reload};
use self::scratch::Scratch;
use self::signals::{Call, Signals};
use crate::args::ServeArgs;
use crate::config::{self, Examined, Files, Settings, Wrong, server_config};
use crate::output::{self, Exit, Failure, complain};

/// How often the log is asked what it held back.
const CATCH_UP: Duration = Duration::from_secs(1);

/// Signals that are no further apart are one wish.
const ECHO: Duration = Duration::from_millis(200);

pub(crate) fn run(flags: &ServeArgs) -> Result<(), Failure> {
    let Examined { settings, problems, .. } = config::examine(flags, Files::Look)?;
    crate::log::set_form(settings.args.log.log_format);
    let log = Log::start(&settings.args.log.log, settings.args.log.log_format);
    if !problems.is_empty() {
        return Err(Wrong::Problems(problems).into());
    }
    raise_descriptor_limit();
    warn_of_memory(&settings);
    let scratch = if flags.dev { Some(scratch()?) } else { None };
    let config = server_config(&settings.args, scratch.as_ref().map(Scratch::path));
    let mut config = config.map_err(Failure::usage)?;
    if scratch.is_some() {
        // Nobody else can have used a directory that was made just now.
        config.node = config.node.first_use(FirstUse::AtOnce);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, format_args!("no threads: {error}")))?;
    let reloading = Reloading::new(flags, settings, log.clone());
    let outcome = runtime.block_on(serve(config, reloading, &log));
    // Whatever is still running after a second signal is left alone.
    runtime.shutdown_background();
    log.finish();
    outcome
}

/// Servers that do not share a store do not know of each other.
fn warn_of_memory(settings: &Settings) {
    let store = config::store_url(&settings.args);
    if !settings.args.dev && store.is_ok_and(|store| store.scheme == Scheme::Memory) {
        tracing::warn!(
            "the store memory: belongs to this process alone: another server can issue the same \
             IDs. Use it for trials only; file:, redis:, etcd: and zk: are safe"
        );
    }
}

async fn serve(config: Config, reloading: Reloading, log: &Arc<Log>) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let store = config.node.chosen_store().map_or_else(String::new, |store| store.to_string());
    let (has_tls, has_keys) = (config.tls.is_some(), config.keys.is_some());
    let advertised = config.advertise.clone();
    let app = App::bind(config).await?;
    let scheme = if has_tls { "https" } else { "http" };
    introduce(&app, &store, scheme, log);
    let key = if has_keys { " -H 'Authorization: Bearer KEY'" } else { "" };
    let at = app.addrs().http.map(|at| reachable(at, scheme, advertised.as_deref()));
    let hint = at.map(|at| format!("curl -X POST {at}/ids{key}"));
    let told = tokio::spawn(tell_when_ready(app.condition(), hint, log.clone()));
    let caught_up = tokio::spawn(catch_up(log.clone()));
    let asked_again = Arc::new(Notify::new());
    let reloaded = tokio::spawn(reload(reloading, app.reloader(), asked_again.clone()));
    let (asked, first) = tokio::sync::oneshot::channel();
    let running = app.run(async {
        // Without an answer nobody is left to ask.
        let _ = first.await;
    });
    tokio::pin!(running);
    let outcome = loop {
        let call = tokio::select! {
            outcome = running.as_mut() => break outcome,
            call = signals.next() => call,
        };
        if let Call::Reload = call {
            asked_again.notify_one();
            continue;
        }
        log.announce(
            "shutting down: requests in flight are finished, then the worker is released; \
             a second signal ends at once",
        );
        let _ = asked.send(());
        break tokio::select! {
            outcome = running => outcome,
            signal = second_end(&mut signals) => return Err(Failure::Interrupted(signal)),
        };
    };
    for task in [told, caught_up, reloaded] {
        task.abort();
    }
    Ok(outcome?)
}

/// The signal that ends it at once. What comes right after the first one is its echo: some who end
/// a process signal it and then its group.
async fn second_end(signals: &mut Signals) -> output::Signal {
    let first = boot_time();
    loop {
        let signal = signals.next_end().await;
        if boot_time().saturating_sub(first) >= ECHO {
            return signal;
        }
    }
}

/// Says where it listens.
fn introduce(app: &App, store: &str, scheme: &str, log: &Log) {
    let addrs = app.addrs();
    let version = env!("CARGO_PKG_VERSION");
    let http = format!("{scheme}://");
    let listeners = [
        ("HTTP", "http", http.as_str(), addrs.http),
        ("gRPC", "grpc", "", addrs.grpc),
        ("RESP", "resp", "", addrs.resp),
        ("admin", "admin", http.as_str(), addrs.admin),
    ];
    let fact = |(protocol, key, prefix, at): (_, _, &str, Option<SocketAddr>)| {
        Some((protocol, key, format!("{prefix}{}", at?)))
    };
    let facts: Vec<Fact> = listeners.into_iter().filter_map(fact).collect();
    log.announce_with(&format!("frazil {version} as {}, store {store}", app.name()), &facts);
}

/// Says how to get an ID, as soon as there is one.
async fn tell_when_ready(
    mut condition: watch::Receiver<Condition>,
    hint: Option<String>,
    log: Arc<Log>,
) {
    let is_ready = condition.wait_for(|condition| condition.state.is_ready()).await.is_ok();
    if let (true, Some(hint)) = (is_ready, hint) {
        log.announce(&format!("ready; try: {hint}"));
    }
}

/// The URL of a listener for whoever is on this machine: nobody connects to an unspecified address,
/// and certificates have names rather than numbers.
fn reachable(at: SocketAddr, scheme: &str, advertised: Option<&str>) -> String {
    match (at.ip().is_unspecified(), advertised) {
        (false, _) => format!("{scheme}://{at}"),
        (true, Some(url)) => url.trim_end_matches('/').to_owned(),
        (true, None) => format!("{scheme}://localhost:{}", at.port()),
    }
}

/// Lets the log say what it held back. Ends when it is aborted.
async fn catch_up(log: Arc<Log>) {
    let mut beat = tokio::time::interval(CATCH_UP);
    loop {
        beat.tick().await;
        log.catch_up();
    }
}

fn scratch() -> Result<Scratch, Failure> {
    Scratch::new().map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no temporary directory: {error}"))
    })
}

/// Takes as many file descriptors as the system allows: each connection is one.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // What is not granted is not used: the server looks at the limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Says everything that is wrong.
impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        wrong.lines().iter().for_each(|line| complain(line));
        Self::Reported(Exit::Usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_to_try_is_one_that_can_be_reached() {
        let url = |at: &str, advertised| reachable(at.parse().unwrap(), "https", advertised);
        assert_eq!(url("0.0.0.0:7780", None), "https://localhost:7780");
        assert_eq!(url("[::]:7780", Some("https://ids.example/")), "https://ids.example");
        assert_eq!(url("10.0.0.7:1", Some("https://ids.example")), "https://10.0.0.7:1");
    }
}
