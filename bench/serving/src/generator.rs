//! Load generators that exist, as processes of their own: redis-benchmark for RESP, `frazil bench` for
//! HTTP and gRPC. What they had answered is not asked of them but counted by the node.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::process::Process;

/// Commands that redis-benchmark may send: more than it can within any window.
const COMMANDS: &str = "2000000000";
/// Connections of each but streams: as many as redis-benchmark has by itself.
const CONNECTIONS: &str = "50";
/// Streams, each of which can take all that a node has.
const STREAMS: &str = "4";

/// What is asked as often as answers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// So many commands `INCR` under way on each connection.
    Resp { pipeline: u64 },
    /// Batches of so many, as binary.
    Http { batch: u64 },
    /// Calls of `Next`, one ID each.
    Call,
    /// Streams of runs.
    Stream,
}

/// IDs of a grant of a stream.
const GRANT: u64 = 10_000;

impl Demand {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Resp { pipeline } => format!("RESP -P {pipeline}"),
            Self::Http { batch } => format!("HTTP x{batch}"),
            Self::Call => "gRPC Next".to_owned(),
            Self::Stream => "gRPC Stream, runs".to_owned(),
        }
    }

    /// As the node's metrics call it.
    pub(crate) const fn protocol(self) -> &'static str {
        match self {
            Self::Resp { .. } => "resp",
            Self::Http { .. } => "http",
            Self::Call | Self::Stream => "grpc",
        }
    }

    /// IDs of one request.
    pub(crate) const fn batch(self) -> u64 {
        match self {
            Self::Resp { .. } | Self::Call => 1,
            Self::Http { batch } => batch,
            Self::Stream => GRANT,
        }
    }

    fn command(self, node: &Process, key: Option<&str>) -> std::io::Result<Command> {
        let [http, grpc, resp] = [0, 1, 2].map(|place| node.addresses[place].as_str());
        let mut command = match self {
            Self::Resp { pipeline } => {
                let mut command = Command::new("redis-benchmark");
                let port = resp.rsplit(':').next().unwrap_or_default();
                command.args(["-p", port, "-c", CONNECTIONS, "-n", COMMANDS]);
                command.args(["-P", &pipeline.to_string()]);
                command.args(key.iter().flat_map(|key| ["-a", key]));
                command.args(["INCR", "x"]);
                return Ok(command);
            }
            Self::Http { .. } => frazil_bench(&format!("http://{http}"), CONNECTIONS)?,
            Self::Call => frazil_bench(&format!("grpc://{grpc}"), CONNECTIONS)?,
            Self::Stream => {
                let mut command = frazil_bench(&format!("grpc://{grpc}"), STREAMS)?;
                command.args(["--stream", "--runs", "--pipeline", "2"]);
                command
            }
        };
        command.args(["--batch", &self.batch().to_string()]);
        command.envs(key.map(|key| ("FRAZIL_KEY", key)));
        Ok(command)
    }
}

/// `frazil bench` for longer than any window.
fn frazil_bench(url: &str, connections: &str) -> std::io::Result<Command> {
    let mut command = Command::new(frazil()?);
    command.args([
        "bench",
        url,
        "--connections",
        connections,
        "--duration",
        "1h",
        "--warmup",
        "0s",
    ]);
    Ok(command)
}

/// The command that is built beside this program.
fn frazil() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("frazil");
    match path.exists() {
        true => Ok(path),
        false => Err(std::io::Error::other(format!(
            "{} is not there: build it with cargo build --profile dist -p frazil-cli",
            path.display()
        ))),
    }
}

/// Load on a node until it is dropped.
#[derive(Debug)]
pub(crate) struct Load {
    child: Child,
}

impl Load {
    pub(crate) fn start(
        demand: Demand,
        node: &Process,
        key: Option<&str>,
    ) -> std::io::Result<Self> {
        let mut command = demand.command(node, key)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Self { child: command.spawn()? })
    }

    /// Ends it. One that has ended before measured nothing.
    pub(crate) fn stop(mut self) -> Result<(), Box<dyn std::error::Error>> {
        if self.child.try_wait()?.is_none() {
            return Ok(());
        }
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut said)?;
        }
        Err(format!("the load generator ended too early: {said}").into())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
