//! A `frazil serve` process, and what can be done to it.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use frazil_rig::{Daemon, FalseClock, Recipe, free_port, wait_until};

use crate::history::{ProcessRun, Tolerance};
use crate::http::ask_once;
use crate::store::Link;
use crate::timestamp;

/// How long a process may take to listen, on a machine that is busy with others.
const LISTENS: Duration = Duration::from_secs(30);
/// An ID may carry the time at which its request was asked for, less what a clock read takes.
const BEHIND_MS: i64 = 250;
/// A new tenure whose floor is up to 2 s ahead begins there.
const AHEAD_MS: i64 = 2250;

/// What clients know of a node: where it is, and which run of it they talk to.
#[derive(Debug)]
pub(crate) struct NodeEndpoint {
    pub(crate) node: usize,
    pub(crate) address: SocketAddr,
    /// Where it speaks RESP.
    pub(crate) resp: SocketAddr,
    starts: AtomicU32,
    behind_ms: AtomicI64,
    ahead_ms: AtomicI64,
}

/// A node and its own clock.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) endpoint: Arc<NodeEndpoint>,
    pub(crate) daemon: Daemon,
    pub(crate) clock: FalseClock,
    pub(crate) link: Link,
    pub(crate) log: PathBuf,
    /// Where it speaks gRPC.
    pub(crate) grpc: SocketAddr,
}

/// What all nodes of a run are started with.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) frazil: PathBuf,
    pub(crate) mutant: Option<String>,
    pub(crate) flags: Vec<String>,
    pub(crate) directory: PathBuf,
}

impl Node {
    /// A node that does not run yet.
    pub(crate) fn new(
        number: usize,
        name: &str,
        program: &Program,
        link: Link,
    ) -> io::Result<Self> {
        let clock = FalseClock::new()?;
        let port = free_port()?;
        let log = program.directory.join(format!("node-{number}.log"));
        let http = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let resp = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let (at, resp_at) = (http.to_string(), resp.to_string());
        let fixed = ["serve", "--http", &at, "--resp", &resp_at, "--log", "info"];
        let mut arguments: Vec<OsString> = fixed.map(OsString::from).to_vec();
        arguments.extend(["--node".into(), name.into(), "--store".into(), link.url.clone().into()]);
        let grpc = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        arguments.extend(["--grpc".into(), grpc.to_string().into()]);
        arguments.extend(program.flags.iter().map(OsString::from));
        let mut environment: Vec<(OsString, OsString)> = Vec::new();
        for (variable, value) in clock.environment() {
            environment.push((variable.into(), value.into()));
        }
        if let Some(mutant) = &program.mutant {
            environment.push(("STORM_MUTANT".into(), mutant.into()));
        }
        let frazil = program.frazil.clone();
        let recipe = Recipe { program: frazil, arguments, environment, log: log.clone(), port };
        let endpoint = Arc::new(NodeEndpoint::new(number, http, resp));
        Ok(Self { endpoint, daemon: Daemon::new(recipe), clock, link, log, grpc })
    }

    /// Sets its clock off from the beginning, and expects its IDs to be off as much.
    pub(crate) fn set_off(&self, ms: i64) -> io::Result<()> {
        let by = Duration::from_millis(ms.unsigned_abs());
        match ms {
            0 => return Ok(()),
            ..0 => self.endpoint.tolerate(by, Duration::ZERO),
            _ => self.endpoint.tolerate(Duration::ZERO, by),
        }
        self.clock.set(ms * 1_000_000)
    }

    /// A node that leases as many examples do; see [`crate::naive`].
    pub(crate) fn naive(
        number: usize,
        redis: &str,
        ttl: Duration,
        directory: &Path,
    ) -> io::Result<Self> {
        let port = free_port()?;
        let http = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (listen, ttl) = (http.to_string(), ttl.as_millis().to_string());
        let arguments = ["naive-node", "--redis", redis, "--listen", &listen, "--ttl-ms", &ttl];
        let log = directory.join(format!("naive-{number}.log"));
        let recipe = Recipe {
            program: std::env::current_exe()?,
            arguments: arguments.map(OsString::from).to_vec(),
            environment: Vec::new(),
            log: log.clone(),
            port,
        };
        let link = Link { url: String::new(), proxy: None };
        // It speaks neither RESP nor gRPC, and nobody asks it to.
        let endpoint = Arc::new(NodeEndpoint::new(number, http, http));
        let (daemon, clock) = (Daemon::new(recipe), FalseClock::new()?);
        Ok(Self { endpoint, daemon, clock, link, log, grpc: http })
    }

    /// Starts it, and waits until it listens; whether it has a worker is another matter.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.endpoint.begin();
        self.daemon.launch()?;
        self.daemon
            .until_ready(LISTENS, || ask_once(self.endpoint.address, "GET", "/livez").is_ok())
    }

    /// Starts it and does not wait.
    pub(crate) fn launch(&self) -> io::Result<()> {
        self.endpoint.begin();
        self.daemon.launch()
    }

    /// SIGTERM; waits for the end, which releases the worker.
    pub(crate) fn stop(&self, limit: Duration) -> io::Result<()> {
        self.daemon.terminate()?;
        wait_until("a node to end", limit, || matches!(self.daemon.ended(), Ok(Some(_)) | Err(_)))?;
        self.daemon.kill();
        Ok(())
    }

    /// What it says of itself.
    pub(crate) fn info(&self) -> io::Result<serde_json::Value> {
        let (status, body) = ask_once(self.endpoint.address, "GET", "/v1/info")?;
        match status {
            200 => serde_json::from_str(&body).map_err(io::Error::other),
            _ => Err(io::Error::other(format!("/v1/info answered {status}: {body}"))),
        }
    }

    /// What its clock shows, in milliseconds since 1970, by its own word.
    pub(crate) fn clock_unix_ms(&self) -> io::Result<i64> {
        let info = self.info()?;
        let time = info["clock"]["time"].as_str().and_then(timestamp::unix_ms);
        time.ok_or_else(|| io::Error::other(format!("no time in {}", info["clock"])))
    }

    /// A metric, added up over its labels; 0 if there is none, as of a counter that has not begun.
    pub(crate) fn metric(&self, name: &str) -> io::Result<f64> {
        Ok(self.metric_if_any(name)?.unwrap_or(0.0))
    }

    /// A metric, added up over its labels, if there is one.
    pub(crate) fn metric_if_any(&self, name: &str) -> io::Result<Option<f64>> {
        let (_, body) = ask_once(self.endpoint.address, "GET", "/metrics")?;
        Ok(value_of(name, &body))
    }

    /// Whether the kernel shows every thread of it as stopped.
    pub(crate) fn is_frozen(&self) -> bool {
        let Some(id) = self.daemon.id() else { return false };
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{id}/task")) else { return false };
        tasks.flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        })
    }
}

impl NodeEndpoint {
    pub(crate) fn new(node: usize, address: SocketAddr, resp: SocketAddr) -> Self {
        Self {
            node,
            address,
            resp,
            starts: AtomicU32::new(0),
            behind_ms: AtomicI64::new(BEHIND_MS),
            ahead_ms: AtomicI64::new(AHEAD_MS),
        }
    }

    /// The run that answers now.
    pub(crate) fn process_run(&self) -> ProcessRun {
        // Relaxed: a client that reads an old number talks to a connection that is cut.
        ProcessRun { node: self.node, start: self.starts.load(Ordering::Relaxed) }
    }

    /// How far times may be off now.
    pub(crate) fn tolerance(&self) -> Tolerance {
        // Relaxed: it is set before the fault that needs it.
        Tolerance {
            behind_ms: self.behind_ms.load(Ordering::Relaxed),
            ahead_ms: self.ahead_ms.load(Ordering::Relaxed),
        }
    }

    /// Its clock will be this much wrong: so may its IDs.
    pub(crate) fn tolerate(&self, behind: Duration, ahead: Duration) {
        self.set_tolerance(BEHIND_MS + millis(behind), AHEAD_MS + millis(ahead));
    }

    /// The same for a node that never takes a worker which somebody else had: nothing else lets its
    /// IDs be ahead.
    pub(crate) fn tolerate_only(&self, behind: Duration, ahead: Duration) {
        self.set_tolerance(BEHIND_MS + millis(behind), BEHIND_MS + millis(ahead));
    }

    fn set_tolerance(&self, behind_ms: i64, ahead_ms: i64) {
        // Relaxed: see `tolerance`.
        self.behind_ms.store(behind_ms, Ordering::Relaxed);
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }

    fn begin(&self) {
        // Relaxed: see `process_run`.
        self.starts.fetch_add(1, Ordering::Relaxed);
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2)
}

fn value_of(name: &str, metrics: &str) -> Option<f64> {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.starts_with(['{', ' ']).then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())?
    });
    values.reduce(|one, other| one + other)
}

/// What a build of frazil says of itself.
pub(crate) fn version(frazil: &Path) -> io::Result<String> {
    let output = std::process::Command::new(frazil).arg("--version").output().map_err(|error| {
        let what = format!("{}: {error}; build it with cargo build --release", frazil.display());
        io::Error::new(error.kind(), what)
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_is_missing_is_told_from_one_that_is_zero() {
        let text = "# HELP a_total Text.\na_total{x=\"1\"} 2\na_total{x=\"2\"} 3.5\nb 0.0\nbc 7\n";
        assert_eq!(value_of("a_total", text), Some(5.5));
        assert_eq!(value_of("b", text), Some(0.0));
        assert_eq!(value_of("c", text), None);
    }
}
