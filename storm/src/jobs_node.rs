//! A node of jobs that is a process of its own, for E30: an application on `frazil-election`.
//!
//! It says every step of every job in a line of JSON, with the fencing token and the time since the
//! machine was started, which all processes of one machine share. Each job replaces a file again and
//! again, under its token: a process that was stopped and wakes up late is refused, and says so.

mod line;
mod work;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use frazil_coord::Copied;
use frazil_coord::{Namespace, StoreUrl};
use frazil_election::processor::{Balance, Event, Processor, Run, Running};
use frazil_election::{Elections, Settings, store_url};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use self::line::Line;
use self::work::Pen;

/// Jobs move sooner here than elsewhere.
const BALANCE: Balance = Balance::DEFAULT
    .with_window(Duration::from_millis(500))
    .with_pause(Duration::from_millis(50))
    .with_min_hold(Duration::from_millis(500));

#[derive(Debug, Args)]
pub(crate) struct JobsNodeArgs {
    #[arg(long)]
    store: StoreUrl,
    #[arg(long)]
    app: String,
    #[arg(long)]
    jobs: u64,
    #[arg(long)]
    instance: String,
    #[arg(long)]
    ttl_ms: u64,
    #[arg(long)]
    lock_delay_ms: u64,
    /// Between two writes of a job
    #[arg(long)]
    every_ms: u64,
    /// Where each job replaces the file of its name; it must be there
    #[arg(long)]
    write: PathBuf,
}

/// Lives until SIGTERM asks to end, or nobody reads what is said.
pub(crate) fn run(args: &JobsNodeArgs) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(live(args));
    // What still waits for the kernel or the store is left alone.
    runtime.shutdown_background();
    outcome
}

async fn live(args: &JobsNodeArgs) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let (lines, written) = mpsc::unbounded_channel();
    let running = tokio::select! {
        biased;
        _ = terminate.recv() => return Ok(()),
        running = start(args, &lines) => running?,
    };
    let instance = args.instance.clone();
    let mut voice = Voice { instance, events: Some(running.events()), written };
    voice.say(&Line::up())?;
    let asked = tokio::select! {
        biased;
        _ = terminate.recv() => Ok(()),
        failure = voice.tell_all() => Err(failure),
    };
    let report = voice.tell_meanwhile(running.stop()).await;
    let said = voice.say(&Line::down(report.unfinished));
    asked.and(said)
}

async fn start(args: &JobsNodeArgs, lines: &mpsc::UnboundedSender<Line>) -> io::Result<Running> {
    let settings = Settings::default()
        .with_ttl(Duration::from_millis(args.ttl_ms))
        .with_lock_delay(Duration::from_millis(args.lock_delay_ms));
    let url = store_url(&args.store, settings.ttl);
    let opened = frazil_coord::open(&url, &Namespace::default(), Copied::Refuse).await;
    let store = opened.map_err(io::Error::other)?;
    let instance = args.instance.clone();
    let mut processor =
        Processor::new(Elections::new(store), &args.app, instance).settings(settings);
    for job in 1..=args.jobs {
        let name = format!("job-{job:02}");
        let every = Duration::from_millis(args.every_ms);
        let pen = Pen::new(&args.write.join(&name), every, lines.clone());
        processor = processor.job(name, move |run: Run| work::work(run, pen.clone()));
    }
    processor.balance(Some(BALANCE)).start().map_err(io::Error::other)
}

/// Who says what happens.
struct Voice {
    instance: String,
    /// Until the processor has ended.
    events: Option<broadcast::Receiver<Event>>,
    written: mpsc::UnboundedReceiver<Line>,
}

impl Voice {
    /// Tells of everything; ends if that cannot be.
    async fn tell_all(&mut self) -> io::Error {
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

    fn say(&self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(&line.by(&self.instance))?;
        text.push(b'\n');
        // At once: the lines of a process that is killed are whole.
        io::stdout().write_all(&text)
    }
}
