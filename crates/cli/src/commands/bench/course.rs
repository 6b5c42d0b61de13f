//! The course of a measurement of a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use frazil_id::Layout;

use super::client::Facts;
use super::descriptors;
use super::display::{Display, Picture};
use super::flags;
use super::load::{Load, no_threads};
use super::machine;
use super::moment::{cpu_of_process, now};
use super::plan::Plan;
use super::probe;
use super::report::{
    Config, FORM, Generator, Latency, Outage, Report, Results, Sample, Schedule, Verify,
};
use super::schedule::Times;
use super::tally::Tally;
use super::target::Watch;
use super::verify::Verifier;
use crate::args::BenchArgs;
use crate::commands::elect::Signals;
use crate::output::{Failure, Signal};

/// How often the picture changes.
const FRAME: Duration = Duration::from_millis(200);
/// What a sample covers.
const SECOND: Duration = Duration::from_secs(1);

/// Measures a server; with the signal that ended it early, if one did.
pub(super) fn measure(args: &BenchArgs) -> Result<(Report, Option<Signal>), Failure> {
    let plan = Arc::new(Plan::new(args)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| no_threads(&error))?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        let course = tokio::select! {
            course = Course::prepare(args, &plan) => course?,
            signal = signals.next() => return Err(Failure::Interrupted(signal)),
        };
        course.run(&mut signals).await
    })
}

/// Everything that takes part.
struct Course {
    plan: Arc<Plan>,
    facts: Option<Facts>,
    layout: Layout,
    load: Load,
    verifier: Option<Verifier>,
    watch: Option<Watch>,
    picture: Picture,
    sum: Tally,
}

impl Course {
    async fn prepare(args: &BenchArgs, plan: &Arc<Plan>) -> Result<Self, Failure> {
        descriptors::provide(plan)?;
        let (client, facts) = probe::look(plan).await?;
        let layout = flags::layout(args, facts.as_ref())?;
        let is_strict = facts.as_ref().is_some_and(|facts| probe::is_strict(args, plan, facts));
        let verifier = match plan.verify {
            true => Some(Verifier::start(&layout, is_strict, plan.connections)),
            false => None,
        };
        let verifier = verifier.transpose().map_err(|error| no_threads(&error))?;
        let sender = verifier.as_ref().map(|verifier| verifier.sender(plan.connections));
        probe::try_once(plan, client, sender).await?;
        let watch = Watch::start(args, plan, facts.as_ref())?;
        let mut load = Load::start(plan, verifier.as_ref())?;
        load.prepared().await;
        let title = format!("{} ({})", plan.address, plan.request());
        let progress = verifier.as_ref().map(Verifier::progress);
        Ok(Self {
            plan: Arc::clone(plan),
            facts,
            layout,
            load,
            verifier,
            watch,
            picture: Picture::new(title, plan, progress),
            sum: Tally::new(),
        })
    }

    async fn run(mut self, signals: &mut Signals) -> Result<(Report, Option<Signal>), Failure> {
        let mut display = Display::open();
        let start = now();
        let begin = start + self.plan.warm_up;
        let times = Times { start, begin, end: begin + self.plan.duration };
        self.picture.begin(start);
        self.load.go(times);
        let mut interrupted = self.wait(begin, &mut display, signals).await;
        let cpu_before = cpu_of_process();
        let mut begun = begin;
        if interrupted.is_none() {
            self.look();
            begun = now();
            interrupted = self.take_samples(times, &mut display, signals).await;
        }
        let cpu = cpu_of_process().saturating_sub(cpu_before);
        let span = now().saturating_duration_since(begun);
        self.look();
        self.load.stop();
        self.picture.ending();
        let second = self.drain(&mut display, signals).await;
        drop(display);
        if let Some(signal) = second {
            return Err(Failure::Interrupted(signal));
        }
        // What was due within the time and answered after it.
        self.load.pour_into(&mut self.sum);
        let mut outage = None;
        if interrupted.is_none() {
            tokio::select! {
                found = self.outage(times) => outage = found,
                signal = signals.next() => interrupted = Some(signal),
            }
        }
        Ok((self.report(times, span, cpu, interrupted, outage), interrupted))
    }

    /// Takes a sample at the end of each second, until the time is up or a signal comes.
    async fn take_samples(
        &mut self,
        times: Times,
        display: &mut Option<Display>,
        signals: &mut Signals,
    ) -> Option<Signal> {
        let mut since = times.begin;
        while since < times.end {
            let until = (since + SECOND).min(times.end);
            let interrupted = self.wait(until, display, signals).await;
            let at = now();
            self.sample(times.begin, since, at);
            if interrupted.is_some() {
                return interrupted;
            }
            self.look();
            since = at;
        }
        None
    }

    fn sample(&mut self, begin: Instant, since: Instant, at: Instant) {
        let mut tally = Tally::new();
        self.load.pour_into(&mut tally);
        let seconds = at.saturating_duration_since(since).as_secs_f64();
        // What is shorter says nothing about a second, unless there is nothing else.
        if seconds >= SECOND.as_secs_f64() / 2.0 || self.picture.samples.is_empty() {
            let at = at.saturating_duration_since(begin).as_secs_f64();
            self.picture.samples.push(Sample::new(&tally, at, seconds.max(f64::EPSILON)));
        }
        self.picture.add_errors(&tally);
        tally.pour_into(&mut self.sum);
    }

    fn look(&self) {
        if let Some(watch) = &self.watch {
            watch.look();
        }
    }

    /// Waits until then, and draws meanwhile.
    async fn wait(
        &mut self,
        until: Instant,
        display: &mut Option<Display>,
        signals: &mut Signals,
    ) -> Option<Signal> {
        loop {
            self.draw(display);
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                return None;
            }
            let span = if display.is_some() { left.min(FRAME) } else { left };
            tokio::select! {
                biased;
                signal = signals.next() => return Some(signal),
                () = tokio::time::sleep(span) => {}
            }
        }
    }

    /// Waits for the answers that are still to come; a signal means that nobody wants them.
    async fn drain(
        &mut self,
        display: &mut Option<Display>,
        signals: &mut Signals,
    ) -> Option<Signal> {
        loop {
            self.draw(display);
            tokio::select! {
                biased;
                signal = signals.next() => return Some(signal),
                () = self.load.ended() => return None,
                () = tokio::time::sleep(FRAME), if display.is_some() => {}
            }
        }
    }

    /// What keeps the server from answering now, if requests failed in the end and still do. Refusals
    /// are an outage only if they were all that came in the last second: a server that is asked for
    /// too much refuses now and then.
    async fn outage(&self, times: Times) -> Option<Outage> {
        if !self.sum.ends_in_failure() {
            return None;
        }
        let place = self.plan.connections + 1;
        let sender = || self.verifier.as_ref().map(|verifier| verifier.sender(place));
        let fault = probe::last_look(&self.plan, sender).await.err()?;
        let gave_nothing = self.picture.samples.last().is_some_and(|sample| sample.requests == 0);
        (fault.breaks_connection() || gave_nothing).then(|| {
            let last = self.sum.last_answer.unwrap_or(times.begin).min(times.end);
            Outage {
                since_seconds: last.saturating_duration_since(times.begin).as_secs_f64(),
                error: fault.name().to_owned(),
                why: format!("{} {fault}", self.plan.address),
            }
        })
    }

    fn draw(&mut self, display: &mut Option<Display>) {
        if let Some(display) = display {
            self.picture.used = self.watch.as_ref().and_then(Watch::latest);
            display.draw(&self.picture);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
    fn report(
        self,
        times: Times,
        span: Duration,
        cpu: Duration,
        interrupted: Option<Signal>,
        outage: Option<Outage>,
    ) -> Report {
        let sum = &self.sum;
        let planned = times.end.saturating_duration_since(times.begin);
        let seconds = if interrupted.is_some() { span.min(planned) } else { planned };
        let seconds = seconds.as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let (requests, ids) = (sum.requests, sum.ids);
        let verify = self.verifier.map(Verifier::finish);
        let connections = self.plan.connections as u64;
        Report {
            frazil_bench: FORM,
            config: config(&self.plan, self.facts.as_ref(), &self.layout),
            results: Results {
                seconds,
                ended_early: interrupted.is_some(),
                requests,
                ids,
                requests_per_second: per_second(requests),
                ids_per_second: per_second(ids),
                share_of_cap: None,
            },
            latency_us: Latency::of(sum),
            schedule: Schedule::of(&self.plan, sum),
            errors: sum.errors.clone(),
            target: self.watch.and_then(|watch| watch.finish(seconds, requests, ids)),
            generator: Generator {
                cpu_seconds: cpu.as_secs_f64(),
                // Nothing was measured if it ended in the warm-up.
                cores: if span.is_zero() { 0.0 } else { cpu.as_secs_f64() / span.as_secs_f64() },
                cpu_ns_per_id: (ids > 0).then(|| cpu.as_secs_f64() * 1e9 / ids as f64),
            },
            verify: verify.map(|verified| Verify::of(verified, connections, seconds)),
            samples: self.picture.samples,
            outage,
        }
    }
}

fn config(plan: &Plan, facts: Option<&Facts>, layout: &Layout) -> Config {
    Config {
        target: plan.address.to_string(),
        request: plan.request(),
        node: facts.map(|facts| facts.node.clone()),
        version: facts.map(|facts| facts.version.clone()),
        layout: layout.to_string(),
        batch: plan.batch,
        scope: plan.scope.clone(),
        connections: Some(plan.connections as u64),
        threads: plan.threads as u64,
        rate: plan.rate,
        duration_seconds: plan.duration.as_secs_f64(),
        warmup_seconds: plan.warm_up.as_secs_f64(),
        build: Some(machine::build()),
        host: Some(machine::host()),
    }
}
