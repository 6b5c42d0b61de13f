//! Nodes of jobs that are processes of their own: this program, as `storm jobs-node`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use frazil_rig::{Daemon, Recipe};
use tempfile::TempDir;

use super::JOBS;
use super::steps::{History, ProcessRun};
use crate::stage::Plan;
use crate::store::{self, Link, Store};
use crate::verdict::Verdict;

/// Not the shortest: 33 leaderships are renewed at a time, and a disk that is busy with others makes a
/// store of one machine slow. What is lost for that is no finding, but loads never come to rest.
pub(super) const TTL: Duration = Duration::from_secs(3);
pub(super) const LOCK_DELAY: Duration = Duration::from_millis(500);
pub(super) const WORKERS: usize = 4;
/// Between two writes of a job.
const EVERY: Duration = Duration::from_millis(100);
/// A disk in memory, where writes take no time: they are many.
const MEMORY: &str = "/dev/shm";

/// One worker, its way to the store, and how far its log was read.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) daemon: Daemon,
    pub(super) link: Link,
    log: PathBuf,
    read: u64,
    process_run: Option<ProcessRun>,
}

/// All of them, and what they said.
#[derive(Debug)]
pub(super) struct WorkerSet {
    pub(super) workers: Vec<Worker>,
    pub(super) history: History,
    /// What the jobs write.
    files: TempDir,
    /// The token in the file of each job, as it was last read.
    tokens: BTreeMap<PathBuf, u64>,
    pub(super) reads: u64,
}

impl WorkerSet {
    pub(super) fn start(plan: &Plan, store: &Store) -> io::Result<Self> {
        let memory = Path::new(MEMORY);
        let files = TempDir::with_prefix_in("storm-jobs-", memory)
            .or_else(|_| TempDir::with_prefix("storm-jobs-"))?;
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            let mut link = store.link()?;
            link.url = store::with_long_session(&link.url);
            let log = plan.directory.join(format!("worker-{number}.log"));
            // What an earlier run of the same seed has said is not of this one.
            let _ = std::fs::remove_file(&log);
            let recipe = recipe(number, &link.url, files.path(), log.clone())?;
            let daemon = Daemon::new(recipe);
            daemon.launch()?;
            workers.push(Worker { daemon, link, log, read: 0, process_run: None });
        }
        let (history, tokens) = (History::default(), BTreeMap::new());
        Ok(Self { workers, history, files, tokens, reads: 0 })
    }

    /// Hears what was said since the last time, and looks at what was written.
    pub(super) fn listen(&mut self, verdict: &mut Verdict) -> io::Result<()> {
        // Before the logs: who wrote says so afterwards.
        self.look(verdict)?;
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let text = worker.news()?;
            for line in text.lines() {
                worker.process_run = self.history.take(number, worker.process_run, line)?;
            }
        }
        Ok(())
    }

    /// The runs of workers that run, as they said.
    pub(super) fn process_runs(&self) -> Vec<ProcessRun> {
        let process_run = |worker: &Worker| {
            worker.process_run.filter(|process_run| worker.daemon.id() == Some(process_run.process))
        };
        self.workers.iter().filter_map(process_run).collect()
    }

    /// What jobs wrote is never replaced by what has a lower token.
    fn look(&mut self, verdict: &mut Verdict) -> io::Result<()> {
        for number in 1..=JOBS {
            let path = self.files.path().join(format!("job-{number:02}"));
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let token: u64 = text
                .trim_end()
                .parse()
                .map_err(|_| io::Error::other(format!("{} has {text:?}", path.display())))?;
            self.reads += 1;
            let before = self.tokens.insert(path, token).unwrap_or_default();
            verdict.hold("fence", token >= before, || {
                format!("what job-{number:02} wrote with {before} was replaced with {token}")
            });
        }
        Ok(())
    }
}

impl Worker {
    /// What it has printed since the last time: whole lines.
    fn news(&mut self) -> io::Result<String> {
        let mut log = match File::open(&self.log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            log => log?,
        };
        log.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        bytes.truncate(whole);
        self.read += whole as u64;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn recipe(number: usize, url: &str, files: &Path, log: PathBuf) -> io::Result<Recipe> {
    let ms = |time: Duration| time.as_millis().to_string();
    let name = format!("worker-{number}");
    let mut arguments: Vec<OsString> = ["jobs-node", "--app", "crash", "--store", url]
        .into_iter()
        .chain(["--jobs", &JOBS.to_string(), "--instance", &name, "--ttl-ms", &ms(TTL)])
        .chain(["--lock-delay-ms", &ms(LOCK_DELAY), "--every-ms", &ms(EVERY), "--write"])
        .map(Into::into)
        .collect();
    arguments.push(files.into());
    let program = std::env::current_exe()?;
    // It listens nowhere.
    Ok(Recipe { program, arguments, environment: Vec::new(), log, port: 0 })
}
