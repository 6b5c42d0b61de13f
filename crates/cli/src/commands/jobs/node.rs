//! `frazil jobs node`: one node of a demonstration, alone in its process.

mod line;
mod work;

use frazil::coord::stores::file::Copied;
use frazil::election::processor::{Event, Processor, Run, Running};
use frazil::election::{Elections, Settings, store_url};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use self::line::Line;
use self::work::Pen;
use super::sample::{BALANCE, job_name, shared};
use crate::args::JobsNodeArgs;
use crate::commands::elect::{Signals, settings};
use crate::commands::place;
use crate::output::{Data, Exit, Failure};

pub(super) fn run(args: &JobsNodeArgs) -> Result<(), Failure> {
    let settings = settings(&args.terms)?;
    settings.checked().map_err(Failure::usage)?;
    if let Some(directory) = &args.write {
        std::fs::create_dir_all(directory).map_err(|error| {
            let path = directory.display();
            Failure::new(Exit::Unavailable, format_args!("{path} cannot be made: {error}"))
        })?;
    }
    let runtime = place::runtime()?;
    let outcome = runtime.block_on(live(args, settings));
    // What still waits for the kernel or the store is left alone.
    runtime.shutdown_background();
    outcome
}

/// Lives until a signal asks to end, or nobody reads what is said.
async fn live(args: &JobsNodeArgs, settings: Settings) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let (lines, written) = mpsc::unbounded_channel();
    let instance = settings.instance.clone();
    let running = tokio::select! {
        biased;
        signal = signals.next() => return Err(Failure::Interrupted(signal)),
        running = start(args, settings, &lines) => running?,
    };
    let mut voice = Voice { instance, events: Some(running.events()), written, data: Data::new() };
    voice.say(&Line::up())?;
    let asked = tokio::select! {
        biased;
        signal = signals.next() => Ok(signal),
        failure = voice.tell_all() => Err(failure),
    };
    let report = voice.tell_meanwhile(running.stop()).await;
    let said = voice.say(&Line::down(report.unfinished));
    match asked {
        Ok(signal) => said.and(Err(Failure::Interrupted(signal))),
        Err(failure) => Err(failure),
    }
}

async fn start(
    args: &JobsNodeArgs,
    settings: Settings,
    lines: &mpsc::UnboundedSender<Line>,
) -> Result<Running, Failure> {
    let url = store_url(&shared(args.work.place.url()?)?, settings.ttl);
    let store = frazil::coord::open(&url, &args.work.place.namespace, Copied::Refuse).await?;
    let instance = settings.instance.clone();
    let mut processor =
        Processor::new(Elections::new(store), &args.work.app, instance).settings(settings);
    for job in 0..usize::try_from(args.work.jobs).expect("there are few") {
        let name = job_name(job);
        let pen = args
            .write
            .as_ref()
            .map(|directory| Pen::new(&directory.join(&name), args.every, lines.clone()));
        processor = processor.job(name, move |run: Run| work::work(run, pen.clone()));
    }
    processor.balance(Some(BALANCE)).start().map_err(Failure::usage)
}

/// Who says what happens.
struct Voice {
    instance: String,
    /// Until the processor has ended.
    events: Option<broadcast::Receiver<Event>>,
    written: mpsc::UnboundedReceiver<Line>,
    data: Data,
}

impl Voice {
    /// Tells of everything; ends if that cannot be.
    async fn tell_all(&mut self) -> Failure {
        loop {
            let line = self.next().await;
            if let Err(failure) = self.say(&line) {
                return failure;
            }
        }
    }

    /// Tells of everything until something is over.
    async fn tell_meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let ended = loop {
            tokio::select! {
                biased;
                line = self.next() => {
                    // Jobs are given back whether or not anybody listens.
                    let _ = self.say(&line);
                }
                ended = &mut work => break ended,
            }
        };
        // What was said at the very end.
        while let Some(event) = self.events.as_mut().and_then(|events| events.try_recv().ok()) {
            let _ = self.say(&Line::of(event));
        }
        while let Ok(line) = self.written.try_recv() {
            let _ = self.say(&line);
        }
        ended
    }

    async fn next(&mut self) -> Line {
        loop {
            let event = async {
                match &mut self.events {
                    Some(events) => events.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                event = event => match event {
                    Ok(event) => return Line::of(event),
                    Err(RecvError::Lagged(count)) => return Line::missed(count),
                    Err(RecvError::Closed) => self.events = None,
                },
                Some(line) = self.written.recv() => return line,
            }
        }
    }

    fn say(&mut self, line: &Line) -> Result<(), Failure> {
        self.data.json(&line.by(&self.instance))?;
        self.data.flush()
    }
}
