//! A `frazil serve` process and what it says.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use frazil_rig::{FalseClock, wait_until};

/// How long a server may take to get ready: a new namespace on a server waits for 19 s.
const READY: Duration = Duration::from_secs(60);

/// A server that is stopped by its id when dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) http: String,
    pub(crate) grpc: String,
    pub(crate) resp: String,
    said: mpsc::Receiver<String>,
    heard: Vec<String>,
}

impl Served {
    /// Starts a server on free ports; waits until it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", args)
    }

    /// The same with HTTP at an address.
    pub(crate) fn start_at(http: &str, args: &[&str]) -> Self {
        Self::start_in(http, args, &[])
    }

    /// The same that goes by a clock which can be set.
    pub(crate) fn start_by(clock: &FalseClock, args: &[&str]) -> Self {
        Self::start_in("127.0.0.1:0", args, &clock.environment())
    }

    fn start_in(http: &str, args: &[&str], environment: &[(&str, PathBuf)]) -> Self {
        let free = ["serve", "--http", http, "--grpc", "127.0.0.1:0"];
        let free = [&free[..], &["--resp", "127.0.0.1:0"]].concat();
        Self::spawn(&[&free[..], args].concat(), environment)
    }

    /// Starts a throw-away server that goes by a clock which can be set.
    pub(crate) fn by_clock(clock: &FalseClock, args: &[&str]) -> Self {
        let args = [&["serve", "--dev"][..], args].concat();
        let mut served = Self::spawn(&args, &clock.environment());
        served.wait_until_ready();
        served
    }

    /// Starts a throw-away server.
    pub(crate) fn dev(args: &[&str]) -> Self {
        let mut served = Self::spawn(&[&["serve", "--dev"][..], args].concat(), &[]);
        served.wait_until_ready();
        served
    }

    fn spawn(args: &[&str], environment: &[(&str, PathBuf)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FRAZIL_")) {
            command.env_remove(name);
        }
        // Nobody balances here; a flag still counts for more.
        command.env("FRAZIL_DRAIN_DELAY", "1ms").envs(environment.iter().cloned());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, said) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // After the test nobody listens.
                let _ = sender.send(line);
            }
        });
        let mut served = Self {
            child,
            http: String::new(),
            grpc: String::new(),
            resp: String::new(),
            said,
            heard: Vec::new(),
        };
        served.http = served.line_with("HTTP  http").rsplit('/').next().unwrap().to_owned();
        served.grpc = served.line_with("gRPC  ").rsplit(' ').next().unwrap().to_owned();
        served.resp = served.line_with("RESP  ").rsplit(' ').next().unwrap().to_owned();
        served
    }

    /// Waits for a line that has a text, and gives it.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        loop {
            let line = self.said.recv_timeout(READY);
            let line = line.unwrap_or_else(|_| panic!("no {text:?} after {:#?}", self.heard));
            self.heard.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn wait_until_ready(&mut self) {
        self.line_with("ready; try: curl");
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn resp_port(&self) -> String {
        self.resp.rsplit(':').next().unwrap().to_owned()
    }

    /// The status and the body of a request.
    pub(crate) fn request(&self, method: &str, path: &str) -> (u16, String) {
        use std::io::Write;
        let mut stream = TcpStream::connect(&self.http).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the server to end", READY, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .unwrap();
        status.unwrap()
    }

    /// Sends a signal until it has ended.
    pub(crate) fn insist(&mut self, name: &str) -> ExitStatus {
        let mut status = None;
        wait_until("the server to end", READY, || {
            status = self.child.try_wait().unwrap();
            if status.is_none() {
                self.signal(name);
            }
            status.is_some()
        })
        .unwrap();
        status.unwrap()
    }

    /// Asks it to stop and waits for that.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("-TERM");
        self.wait()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
