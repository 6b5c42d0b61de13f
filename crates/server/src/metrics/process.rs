//! The process as the operating system sees it, with the names that all exporters use.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

pub(super) fn register(registry: &mut Registry) {
    registry.register_collector(Box::new(Process));
}

/// Reads `/proc/self` whenever somebody asks; says nothing where there is none.
#[derive(Debug)]
struct Process;

/// The fields of `/proc/self/stat`, counted as proc(5) does.
const UTIME: usize = 14;
const STIME: usize = 15;
const START_TIME: usize = 22;
const VSIZE: usize = 23;
const RSS: usize = 24;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return Ok(()) };
        let field = |number: usize| number_of(&stat, number);
        let ticks = per_second();
        let cpu = (field(UTIME) + field(STIME)) / ticks;
        let mut counter = |name: &str, help: &str, value: f64| {
            let metric = ConstCounter::new(value);
            let family = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(family)
        };
        counter("process_cpu_seconds", "CPU time spent", cpu)?;
        let mut gauge = |name: &str, help: &str, value: f64| {
            let metric = ConstGauge::new(value);
            let family = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(family)
        };
        let page = page_bytes();
        gauge("process_resident_memory_bytes", "Memory in use", field(RSS) * page)?;
        gauge("process_virtual_memory_bytes", "Address space in use", field(VSIZE))?;
        if let Some(boot) = boot_seconds() {
            let started = boot + field(START_TIME) / ticks;
            gauge("process_start_time_seconds", "When it started", started)?;
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            gauge("process_open_fds", "Open file descriptors", as_f64(entries.count()))?;
        }
        if let Some(most) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
            gauge("process_max_fds", "The most file descriptors", as_f64(most))?;
        }
        Ok(())
    }
}

/// A field by its number; the second may contain blanks and ends with the last parenthesis.
fn number_of(stat: &str, number: usize) -> f64 {
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = rest.split_ascii_whitespace().nth(number - 3);
    field.and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

/// When the machine started, in Unix seconds.
fn boot_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn per_second() -> f64 {
    as_f64(rustix::param::clock_ticks_per_second())
}

fn page_bytes() -> f64 {
    as_f64(rustix::param::page_size())
}

#[expect(clippy::cast_precision_loss, reason = "shown, not counted with")]
fn as_f64(number: impl TryInto<u64>) -> f64 {
    number.try_into().unwrap_or(0) as f64
}
