//! `frazil serve`: run an ID server.

use std::net::SocketAddr;
use std::time::Duration;

use frazil::Node;
use frazil::coord::{StoreUrl, Timing};
use frazil_id::{Options, Rollback};
use frazil_server::{App, BindError, Condition, Config, Limits, RunError};
use tempfile::TempDir;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing::Level;

use crate::args::{Address, LogLevel, RollbackArg, ServeArgs};
use crate::output::{self, Exit, Failure, say};

pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    start_log(args.log);
    check_exposure(args)?;
    raise_descriptor_limit();
    let scratch = if args.dev { Some(scratch()?) } else { None };
    let config = config(args, scratch.as_ref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, format_args!("no threads: {error}")))?;
    let outcome = runtime.block_on(serve(config));
    // Whatever is still running after a second signal is left alone.
    runtime.shutdown_background();
    outcome
}

async fn serve(config: Config) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let store = config.node.chosen_store().map_or_else(String::new, |store| store.to_string());
    let app = App::bind(config).await?;
    introduce(&app, &store);
    let told = tokio::spawn(tell_when_ready(app.condition(), app.addrs().http));
    let (asked, first) = tokio::sync::oneshot::channel();
    let running = app.run(async {
        // Without an answer nobody is left to ask.
        let _ = first.await;
    });
    tokio::pin!(running);
    let outcome = tokio::select! {
        outcome = running.as_mut() => outcome,
        _ = signals.next() => {
            say("shutting down: requests in flight are finished, then the worker is released; \
                 a second signal ends at once");
            let _ = asked.send(());
            tokio::select! {
                outcome = running => outcome,
                signal = signals.next() => return Err(Failure::Interrupted(signal)),
            }
        }
    };
    told.abort();
    Ok(outcome?)
}

/// Says where it listens.
fn introduce(app: &App, store: &str) {
    let addrs = app.addrs();
    say(format_args!("frazil {} as {}, store {store}", env!("CARGO_PKG_VERSION"), app.name()));
    for (protocol, prefix, address) in
        [("HTTP", "http://", addrs.http), ("gRPC", "", addrs.grpc), ("RESP", "", addrs.resp)]
    {
        if let Some(address) = address {
            say(format_args!("  {protocol}  {prefix}{address}"));
        }
    }
}

/// Says how to get an Id, as soon as there is one.
async fn tell_when_ready(mut condition: watch::Receiver<Condition>, http: Option<SocketAddr>) {
    let is_ready = condition.wait_for(|condition| condition.state.is_ready()).await.is_ok();
    if let (true, Some(address)) = (is_ready, http) {
        say(format_args!("ready; try: curl -X POST http://{address}/ids"));
    }
}

/// Interrupt and terminate.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed.
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let catch = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(Exit::Unavailable, format_args!("signals cannot be caught: {error}"))
            })
        };
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hang_up: catch(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> output::Signal {
        tokio::select! {
            _ = self.interrupt.recv() => output::Signal::Interrupt,
            _ = self.terminate.recv() => output::Signal::Terminate,
            _ = self.hang_up.recv() => output::Signal::Terminate,
        }
    }
}

fn config(args: &ServeArgs, scratch: Option<&TempDir>) -> Result<Config, Failure> {
    let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = |own: Address| if args.dev { free } else { own.0 };
    let defaults = Config::default();
    Ok(Config {
        node: node(args, scratch)?,
        name: args.node.clone().unwrap_or(defaults.name),
        region: args.region.clone(),
        advertise: args.advertise.clone(),
        http: address(args.http),
        grpc: address(args.grpc),
        resp: address(args.resp),
        insecure: args.insecure,
        threads: args.threads.map_or(defaults.threads, usize::from),
        lanes: args.lanes,
        scopes: args.scopes.clone(),
        limits: Limits {
            max_count: args.limits.max_count,
            max_wait: args.limits.max_wait,
            ..defaults.limits
        },
        drain_delay: if args.dev { Duration::ZERO } else { args.limits.drain_delay },
        drain_timeout: args.limits.drain_timeout,
        refusal_limit: args.limits.refusal_limit,
        ..defaults
    })
}

fn node(args: &ServeArgs, scratch: Option<&TempDir>) -> Result<frazil::Builder, Failure> {
    let lease = &args.lease;
    let rollback = match lease.rollback {
        RollbackArg::Refuse => Rollback::Refuse,
        RollbackArg::Ride => Rollback::Ride,
    };
    let mut node = Node::builder()
        .store_url(store(args, scratch)?)
        .namespace(args.place.namespace.clone())
        .layout(args.layout.layout)
        .timing(Timing {
            ttl: lease.ttl,
            heartbeat: lease.heartbeat,
            outage_budget: lease.outage_budget,
        })
        .options(Options { max_ahead: lease.max_ahead, rollback, ..Options::default() });
    if let Some((first, last)) = args.workers.workers {
        node = node.workers(first..=last);
    }
    Ok(node)
}

fn store(args: &ServeArgs, scratch: Option<&TempDir>) -> Result<StoreUrl, Failure> {
    match (scratch, args.worker) {
        (Some(scratch), _) => Ok(StoreUrl::file(scratch.path().display().to_string())),
        (None, Some(worker)) => {
            let text = format!("static:{worker}");
            let named = text.parse().map_err(Failure::usage)?;
            frazil::store_or_default(Some(named)).ok_or_else(|| {
                Failure::usage("there is no state directory: set FRAZIL_STATE_DIR or HOME")
            })
        }
        (None, None) => args.place.url(),
    }
}

fn scratch() -> Result<TempDir, Failure> {
    tempfile::Builder::new().prefix("frazil-dev-").tempdir().map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no temporary directory: {error}"))
    })
}

/// Whoever reaches a listener gets Ids: that must be meant.
fn check_exposure(args: &ServeArgs) -> Result<(), Failure> {
    let exposed = [args.http, args.grpc, args.resp]
        .into_iter()
        .find_map(|address| address.0.filter(|address| !address.ip().is_loopback()));
    match exposed {
        Some(address) if !args.insecure => Err(Failure::usage(format_args!(
            "{address} can be reached from other machines, without TLS or keys: listen on \
             127.0.0.1, or say --insecure"
        ))),
        _ => Ok(()),
    }
}

/// Takes as many file descriptors as the system allows: each connection is one.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // What is not granted is not used: the server looks at the limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn start_log(level: LogLevel) {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .with_ansi(std::env::var_os("NO_COLOR").is_none() && is_terminal())
        .with_target(false);
    // One was started already: then that one it is.
    let _ = log.try_init();
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Listen { .. } | BindError::Threads(_) => Self::new(Exit::Unavailable, error),
            BindError::Node(error) => error.into(),
            _ => Self::usage(error),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Start(error) => error.into(),
            _ => Self::new(Exit::Refused, error),
        }
    }
}
