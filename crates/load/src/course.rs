//! The course of a measurement of a server.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frazil_id::Layout;

use crate::client::Facts;
use crate::descriptors;
use crate::error::Error;
use crate::machine;
use crate::moment::{cpu_of_process, now};
use crate::observer::{Observer, Snapshot};
use crate::plan::Plan;
use crate::probe;
use crate::report::{
    Config, FORM, Generator, Latency, Outage, Report, Results, Sample, Schedule, Verify,
};
use crate::schedule::Times;
use crate::tally::Tally;
use crate::target::Watch;
use crate::threads::Load;
use crate::verify::Verifier;

/// What a sample covers.
const SECOND: Duration = Duration::from_secs(1);

/// Measures a server.
///
/// # Errors
///
/// What the plan says cannot be done, the server is not there, or it refuses a first request.
pub async fn measure(plan: Plan, observer: &mut impl Observer) -> Result<Report, Error> {
    let (plan, mut notes) = (Arc::new(plan), Vec::new());
    let course = tokio::select! {
        course = prepared(&plan, &mut notes) => course,
        () = observer.interrupted() => return Err(Error::Interrupted),
    };
    notes.iter().for_each(|note| observer.note(note));
    course?.run(observer).await
}

/// A course to be. Boxed, so that the clients are compiled here and not in every crate that measures.
type Preparing<'a> = Pin<Box<dyn Future<Output = Result<Course, Error>> + Send + 'a>>;

fn prepared<'a>(plan: &'a Arc<Plan>, notes: &'a mut Vec<String>) -> Preparing<'a> {
    Box::pin(Course::prepare(plan, notes))
}

/// Everything that takes part.
struct Course {
    plan: Arc<Plan>,
    facts: Option<Facts>,
    layout: Layout,
    load: Load,
    verifier: Option<Verifier>,
    watch: Option<Watch>,
    snapshot: Snapshot,
    sum: Tally,
    /// When the load began.
    start: Instant,
}

impl Course {
    async fn prepare(plan: &Arc<Plan>, notes: &mut Vec<String>) -> Result<Self, Error> {
        descriptors::provide(plan)?;
        let (client, facts) = probe::look(plan, notes).await?;
        let layout = probe::layout(plan, facts.as_ref())?;
        let is_strict = facts.as_ref().is_some_and(|facts| probe::is_strict(plan, facts, notes));
        let verifier = match plan.verify {
            true => Some(Verifier::start(&layout, is_strict, plan.connections)),
            false => None,
        };
        let verifier = verifier.transpose().map_err(|error| Error::no_threads(&error))?;
        let sender = verifier.as_ref().map(|verifier| verifier.sender(plan.connections));
        probe::try_once(plan, client, sender).await?;
        let watch = Watch::start(plan, facts.as_ref())?;
        let mut load = Load::start(plan, verifier.as_ref())?;
        load.prepared().await;
        Ok(Self {
            plan: Arc::clone(plan),
            facts,
            layout,
            load,
            verifier,
            watch,
            snapshot: Snapshot::new(plan),
            sum: Tally::new(),
            start: now(),
        })
    }

    async fn run(mut self, observer: &mut impl Observer) -> Result<Report, Error> {
        observer.begin();
        let start = now();
        let begin = start + self.plan.warm_up;
        let times = Times { start, begin, end: begin + self.plan.duration };
        self.start = start;
        self.load.go(times);
        let mut is_interrupted = self.wait(begin, observer).await;
        let cpu_before = cpu_of_process();
        let mut begun = begin;
        if !is_interrupted {
            self.look();
            begun = now();
            is_interrupted = self.take_samples(times, observer).await;
        }
        let cpu = cpu_of_process().saturating_sub(cpu_before);
        let span = now().saturating_duration_since(begun);
        self.look();
        self.load.stop();
        self.snapshot.is_ending = true;
        let is_over = self.drain(observer).await;
        observer.end();
        if !is_over {
            return Err(Error::Interrupted);
        }
        // What was due within the time and answered after it.
        self.load.pour_into(&mut self.sum);
        let mut outage = None;
        if !is_interrupted {
            tokio::select! {
                found = self.outage(times) => outage = found,
                () = observer.interrupted() => is_interrupted = true,
            }
        }
        Ok(self.report(times, span, cpu, is_interrupted, outage))
    }

    /// Takes a sample at the end of each second, until the time is up; whether somebody ended it.
    async fn take_samples(&mut self, times: Times, observer: &mut impl Observer) -> bool {
        let mut since = times.begin;
        while since < times.end {
            let until = (since + SECOND).min(times.end);
            let is_interrupted = self.wait(until, observer).await;
            let at = now();
            self.sample(times.begin, since, at);
            if is_interrupted {
                return true;
            }
            self.look();
            since = at;
        }
        false
    }

    fn sample(&mut self, begin: Instant, since: Instant, at: Instant) {
        let mut tally = Tally::new();
        self.load.pour_into(&mut tally);
        let seconds = at.saturating_duration_since(since).as_secs_f64();
        // What is shorter says nothing about a second, unless there is nothing else.
        if seconds >= SECOND.as_secs_f64() / 2.0 || self.snapshot.samples.is_empty() {
            let at = at.saturating_duration_since(begin).as_secs_f64();
            self.snapshot.samples.push(Sample::new(&tally, at, seconds.max(f64::EPSILON)));
        }
        self.snapshot.add_errors(&tally);
        tally.pour_into(&mut self.sum);
    }

    fn look(&self) {
        if let Some(watch) = &self.watch {
            watch.look();
        }
    }

    /// Waits until then, and shows the measurement meanwhile; whether somebody ended it.
    async fn wait(&mut self, until: Instant, observer: &mut impl Observer) -> bool {
        loop {
            let frame = self.show(observer);
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                return false;
            }
            tokio::select! {
                biased;
                () = observer.interrupted() => return true,
                () = tokio::time::sleep(frame.map_or(left, |frame| left.min(frame))) => {}
            }
        }
    }

    /// Waits for the answers that are still to come; not if somebody says that nobody wants them.
    async fn drain(&mut self, observer: &mut impl Observer) -> bool {
        loop {
            let frame = self.show(observer);
            tokio::select! {
                biased;
                () = observer.interrupted() => return false,
                () = self.load.ended() => return true,
                () = tokio::time::sleep(frame.unwrap_or_default()), if frame.is_some() => {}
            }
        }
    }

    /// What keeps the server from answering now, if requests failed in the end and still do. Refusals
    /// are an outage only if they were all that came in the last second: a server that is asked for
    /// too much refuses now and then.
    async fn outage(&self, times: Times) -> Option<Outage> {
        match self.sum.ends_in_failure() {
            true => self.last_look(times).await,
            false => None,
        }
    }

    /// Boxed as [`Preparing`] is.
    fn last_look(&self, times: Times) -> Pin<Box<dyn Future<Output = Option<Outage>> + Send + '_>> {
        Box::pin(self.look_at_last(times))
    }

    async fn look_at_last(&self, times: Times) -> Option<Outage> {
        let place = self.plan.connections + 1;
        let sender = || self.verifier.as_ref().map(|verifier| verifier.sender(place));
        let fault = probe::last_look(&self.plan, sender).await.err()?;
        let gave_nothing = self.snapshot.samples.last().is_some_and(|sample| sample.requests == 0);
        (fault.breaks_connection() || gave_nothing).then(|| {
            let last = self.sum.last_answer.unwrap_or(times.begin).min(times.end);
            Outage {
                since_seconds: last.saturating_duration_since(times.begin).as_secs_f64(),
                error: fault.name().to_owned(),
                why: format!("{} {fault}", self.plan.address),
            }
        })
    }

    /// Shows the measurement to whoever wants to see it; how often that is.
    fn show(&mut self, observer: &mut impl Observer) -> Option<Duration> {
        let frame = observer.frame()?;
        self.snapshot.elapsed = now().saturating_duration_since(self.start);
        self.snapshot.used = self.watch.as_ref().and_then(Watch::latest);
        self.snapshot.checked = self.verifier.as_ref().map(Verifier::checked);
        observer.show(&self.snapshot);
        Some(frame)
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
    fn report(
        self,
        times: Times,
        span: Duration,
        cpu: Duration,
        ended_early: bool,
        outage: Option<Outage>,
    ) -> Report {
        let sum = &self.sum;
        let planned = times.end.saturating_duration_since(times.begin);
        let seconds = if ended_early { span.min(planned) } else { planned };
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
                ended_early,
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
            samples: self.snapshot.samples,
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
        threads: plan.threads() as u64,
        rate: plan.rate,
        duration_seconds: plan.duration.as_secs_f64(),
        warmup_seconds: plan.warm_up.as_secs_f64(),
        build: Some(machine::build()),
        host: Some(machine::host()),
    }
}
