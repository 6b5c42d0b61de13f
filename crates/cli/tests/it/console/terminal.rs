//! A shell in a directory of its own, beside the servers that the pages speak of.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_rig::{Certificates, Etcd, Redis, free_port};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::page::{Block, Step};
use super::pattern;

/// How long a block may take: the first node of a namespace on a server waits for 19 s.
const LIMIT: Duration = Duration::from_secs(90);
/// Printed after each command, with its number and its exit code.
const MARK: &str = "--end-of-command--";
/// The ports on which servers listen in the pages.
const SERVED: std::ops::RangeInclusive<u16> = 7780..=7795;

pub(crate) struct Terminal {
    home: TempDir,
    redis: Redis,
    etcd: Etcd,
    /// A free port for each of those in the pages.
    ports: Vec<(u16, u16)>,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let certificates = Certificates::generate().unwrap();
        for (name, from) in [
            ("ca.pem", certificates.ca()),
            ("cert.pem", certificates.server_cert()),
            ("key.pem", certificates.server_key()),
        ] {
            fs::copy(from, home.path().join(name)).unwrap();
        }
        // An ID of Monday came again on Tuesday.
        fs::write(home.path().join("monday.txt"), "293056809512497152\n293056809512497153\n")
            .unwrap();
        let tuesday = "293056809508302848\n293056809512497152\n";
        fs::write(home.path().join("tuesday.txt"), tuesday).unwrap();
        for name in ["report.sh", "worker.sh"] {
            let path = home.path().join(name);
            fs::write(&path, "#!/bin/sh\necho done\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let (redis, etcd) = (Redis::start().unwrap(), Etcd::start().unwrap());
        let mut ports: Vec<_> = SERVED.map(|port| (port, free_port().unwrap())).collect();
        ports.extend([(6379, redis.port()), (2379, etcd.port())]);
        let terminal = Self { home, redis, etcd, ports };
        // Else the first command on each waits for holders that a lost namespace might have.
        for url in [terminal.redis.url(), terminal.etcd.url()] {
            let init = terminal.shell(&format!("exec frazil store init --store {url}")).status();
            assert!(init.unwrap().success());
        }
        terminal
    }

    /// Types the commands of a block; what is not as the page shows it.
    pub(crate) fn play(&self, block: &Block) -> Result<(), String> {
        let mut screen = Screen::open(self.shell(&self.script(block)));
        for (number, step) in block.steps.iter().enumerate() {
            let is_last = number + 1 == block.steps.len();
            let stops_at = (is_last && block.marks.runs_on).then_some(step);
            let (printed, code) = screen.output(number, stops_at, block.marks.exact)?;
            let expected = if is_last { block.marks.exit } else { 0 };
            if code.is_some_and(|code| code != expected) {
                let (code, step) = (code.unwrap_or_default(), &step.command);
                return Err(format!("`{step}` ended with exit code {code}:\n{printed}"));
            }
            let is_shown = !step.output.is_empty() || block.marks.exact;
            if is_shown && !pattern::matches(&step.output, &printed, block.marks.exact) {
                let Step { command, output } = step;
                return Err(format!("`{command}` printed\n{printed}\nand not\n{output}"));
            }
        }
        Ok(())
    }

    /// The commands, and a mark after each. What is started in the background is waited for until it
    /// is ready.
    fn script(&self, block: &Block) -> String {
        let mut script = String::new();
        if block.marks.with_server {
            script += &self.background("frazil serve &", "server");
        }
        for (number, Step { command, .. }) in block.steps.iter().enumerate() {
            script += &match command.ends_with('&') {
                true => self.background(command, &format!("background{number}")),
                false => format!("{}\n", self.local(command)),
            };
            // On a line of its own, also after a text that does not end its line.
            script += &format!("printf '\\n%s\\n' \"{MARK} {number} $?\"\n");
        }
        script
    }

    fn background(&self, command: &str, name: &str) -> String {
        let command = self.local(command.trim_end_matches('&'));
        format!(
            "{command} > {name}.log 2>&1 &\n\
             while kill -0 $! && ! grep -q '^ready' {name}.log; do :; done\n"
        )
    }

    /// A command with the addresses of this machine.
    fn local(&self, command: &str) -> String {
        let mut command =
            command.replace("10.0.0.1", "127.0.0.1").replace("ids.example.net", "localhost");
        for (page, here) in &self.ports {
            for before in [':', ' '] {
                let (page, here) = (format!("{before}{page}"), format!("{before}{here}"));
                command = command.replace(&page, &here);
            }
        }
        command
    }

    fn shell(&self, script: &str) -> Command {
        let frazil = Path::new(env!("CARGO_BIN_EXE_frazil")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-c", script]).env_clear().current_dir(self.home.path());
        shell.env("PATH", format!("{}:{path}", frazil.display())).env("HOME", self.home.path());
        for (name, port) in [("HTTP", 7780), ("GRPC", 7781), ("RESP", 7782)] {
            shell.env(format!("FRAZIL_{name}"), self.local(&format!("127.0.0.1:{port}")));
        }
        shell
    }
}

/// A shell that runs, and what it prints.
struct Screen {
    shell: Child,
    lines: Receiver<String>,
    /// In boot time.
    deadline: Duration,
}

impl Screen {
    fn open(mut shell: Command) -> Self {
        // Both streams, in the order in which they are written.
        let (reader, writer) = std::io::pipe().unwrap();
        shell.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let child = shell.process_group(0).spawn().unwrap();
        drop(shell);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                // After the block nobody reads.
                let _ = sender.send(line);
            }
        });
        Self { shell: child, lines, deadline: boot_time() + LIMIT }
    }

    /// What a command printed, and its exit code; none for one that was to be left running.
    fn output(
        &mut self,
        number: usize,
        stops_at: Option<&Step>,
        is_exact: bool,
    ) -> Result<(String, Option<i32>), String> {
        let mut printed = String::new();
        let mark = format!("{MARK} {number} ");
        loop {
            let left = self.deadline.saturating_sub(boot_time());
            let Ok(line) = self.lines.recv_timeout(left) else {
                return Err(format!("no end within {LIMIT:?}, or no shell any more:\n{printed}"));
            };
            if let Some(code) = line.strip_prefix(&mark) {
                return Ok((printed, code.parse().ok()));
            }
            printed += &format!("{line}\n");
            if stops_at.is_some_and(|step| pattern::matches(&step.output, &printed, is_exact)) {
                return Ok((printed, None));
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The group of the shell that was started here, and of all that it started.
        let group = i32::try_from(self.shell.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.shell.wait();
    }
}
