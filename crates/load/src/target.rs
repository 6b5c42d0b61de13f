//! The CPU time and memory of the measured server, if they can be known.

use std::fs;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::param::{clock_ticks_per_second, page_size};
use serde::{Deserialize, Serialize};

use crate::client::Facts;
use crate::error::Error;
use crate::moment::now;
use crate::observer::Pages;
use crate::plan::Plan;

/// Metrics that take longer are not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where it is read.
#[derive(Debug)]
enum Source {
    Process(u32),
    Metrics(Arc<dyn Pages>),
}

/// What a process had used at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    at: Instant,
    cpu: Duration,
    pub(crate) resident_bytes: u64,
}

/// What the target used during the measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Where this was read: `pid` or `metrics`.
    pub(crate) source: String,
    pub(crate) cpu_seconds: f64,
    /// Cores kept busy on average.
    pub(crate) cores: f64,
    pub(crate) cpu_us_per_request: Option<f64>,
    pub(crate) cpu_ns_per_id: Option<f64>,
    pub(crate) rss_start_bytes: u64,
    pub(crate) rss_peak_bytes: u64,
    pub(crate) rss_end_bytes: u64,
}

/// A thread that looks when it is told to, so that nobody waits for it.
#[derive(Debug)]
pub(crate) struct Watch {
    source: &'static str,
    look: mpsc::Sender<()>,
    thread: JoinHandle<()>,
    seen: Arc<Mutex<Vec<Usage>>>,
}

impl Watch {
    /// Finds a way to look; none where nothing was named and the server's metrics are not for us.
    pub(crate) fn start(plan: &Plan, facts: Option<&Facts>) -> Result<Option<Self>, Error> {
        let Some(source) = Source::find(plan, facts)? else { return Ok(None) };
        let name = match source {
            Source::Process(_) => "pid",
            Source::Metrics(_) => "metrics",
        };
        let (look, told) = mpsc::channel::<()>();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let watch = move || {
            while told.recv().is_ok() {
                if let Some(usage) = source.read() {
                    noted.lock().push(usage);
                }
            }
        };
        let thread = thread::Builder::new().name("watch".to_owned()).spawn(watch);
        let thread = thread.map_err(|error| Error::no_threads(&error))?;
        Ok(Some(Self { source: name, look, thread, seen }))
    }

    /// Looks soon.
    pub(crate) fn look(&self) {
        // Its thread ends after this does.
        let _ = self.look.send(());
    }

    /// The latest: cores that were busy, and memory.
    pub(crate) fn latest(&self) -> Option<(f64, u64)> {
        let seen = self.seen.lock();
        let [.., before, last] = seen.as_slice() else { return None };
        Some((cores(before, last)?, last.resident_bytes))
    }

    /// What was used from the first look to the last, for so many requests and IDs in that time.
    #[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
    pub(crate) fn finish(self, seconds: f64, requests: u64, ids: u64) -> Option<Target> {
        drop(self.look);
        self.thread.join().ok()?;
        let seen = self.seen.lock();
        let (first, last) = (seen.first()?, seen.last()?);
        let cores = cores(first, last)?;
        let cpu = cores * seconds;
        let each = |count: u64, unit: f64| (count > 0).then(|| cpu * unit / count as f64);
        Some(Target {
            source: self.source.to_owned(),
            cpu_seconds: cpu,
            cores,
            cpu_us_per_request: each(requests, 1e6),
            cpu_ns_per_id: each(ids, 1e9),
            rss_start_bytes: first.resident_bytes,
            rss_peak_bytes: seen.iter().map(|usage| usage.resident_bytes).max()?,
            rss_end_bytes: last.resident_bytes,
        })
    }
}

/// Cores that were busy in between; none where no time has passed, or it was started anew.
fn cores(before: &Usage, after: &Usage) -> Option<f64> {
    let span = after.at.saturating_duration_since(before.at).as_secs_f64();
    let cpu = after.cpu.checked_sub(before.cpu)?.as_secs_f64();
    (span > 0.0).then(|| cpu / span)
}

impl Source {
    fn find(plan: &Plan, facts: Option<&Facts>) -> Result<Option<Self>, Error> {
        if let Some(pid) = plan.pid {
            let source = Self::Process(pid);
            return match source.read() {
                Some(_) => Ok(Some(source)),
                None => Err(Error::usage(format_args!(
                    "process {pid} is not there: give --pid the number that `pgrep frazil` shows"
                ))),
            };
        }
        let Some(pages) = plan.pages.clone() else { return Ok(None) };
        if !plan.are_pages_named {
            let is_known = is_of(&*pages, facts) && readable(&*pages);
            return Ok(is_known.then_some(Self::Metrics(pages)));
        }
        let (status, text) = pages.get("/metrics", PATIENCE)?;
        match usage(&text) {
            Some(_) => Ok(Some(Self::Metrics(pages))),
            None => Err(Error::unavailable(format_args!(
                "{} tells no CPU time and memory (status {status}): a key with the role read may be \
                 needed, or use --pid",
                pages.base()
            ))),
        }
    }

    fn read(&self) -> Option<Usage> {
        match self {
            Self::Process(pid) => {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                let (cpu, resident_bytes) = of_stat(&stat)?;
                Some(Usage { at: now(), cpu, resident_bytes })
            }
            Self::Metrics(server) => {
                let (_, text) = server.get("/metrics", PATIENCE).ok()?;
                let (cpu, resident_bytes) = usage(&text)?;
                Some(Usage { at: now(), cpu, resident_bytes })
            }
        }
    }
}

/// Whether it is the node that is measured: another one's use would be a wrong answer.
fn is_of(server: &dyn Pages, facts: Option<&Facts>) -> bool {
    let Some(facts) = facts else { return true };
    let page = server.get("/v1/info", PATIENCE).ok();
    let info = page.and_then(|(_, text)| serde_json::from_str::<serde_json::Value>(&text).ok());
    info.is_some_and(|info| info["node"]["name"] == facts.node)
}

fn readable(server: &dyn Pages) -> bool {
    server.get("/metrics", PATIENCE).is_ok_and(|(_, text)| usage(&text).is_some())
}

/// CPU time and memory in the text of metrics.
fn usage(text: &str) -> Option<(Duration, u64)> {
    let value = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        rest.split(' ').next()?.parse::<f64>().ok().filter(|value| value.is_finite())
    };
    let cpu = Duration::try_from_secs_f64(value("process_cpu_seconds_total")?).ok()?;
    let bytes = value("process_resident_memory_bytes")?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    Some((cpu, bytes as u64))
}

/// CPU time and memory in a line of `/proc/PID/stat`.
fn of_stat(stat: &str) -> Option<(Duration, u64)> {
    // The name in brackets may have anything in it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // Counted from the state, which is the third field of the line: 14, 15 and 24.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let per_second = u32::try_from(clock_ticks_per_second()).ok().filter(|ticks| *ticks > 0)?;
    let cpu = Duration::from_secs(field(14)? + field(15)?) / per_second;
    Some((cpu, field(24)? * page_size() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_by_their_whole_name() {
        let text = "# HELP process_cpu_seconds_total x\nprocess_cpu_seconds_total 1.5\n\
                    process_resident_memory_bytes_more 1\nprocess_resident_memory_bytes 4096\n";
        assert_eq!(usage(text), Some((Duration::from_millis(1500), 4096)));
        assert_eq!(usage("process_cpu_seconds_total 1.5\n"), None);
        assert_eq!(usage(&text.replace("1.5", "-1")), None);
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        assert!(of_stat(&own).unwrap().1 > 0);
        let odd = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 0 0 0 0 0 0 3 0";
        let (cpu, bytes) = of_stat(odd).unwrap();
        assert_eq!((cpu.as_secs(), bytes), (2, 3 * page_size() as u64));
        assert_eq!(of_stat("nothing"), None);
    }
}
