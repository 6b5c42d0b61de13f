//! `frazil bench`: how fast IDs are issued, by a server or by the library. The engine is `frazil-load`.

mod compare;
mod display;
mod flags;

use frazil_load::{Error, Library, LibraryClock, Observer, Report, Snapshot};
use indicatif::ProgressBar;
use std::time::Duration;

use self::display::Display;
use crate::args::{BenchArgs, BenchCommand, ClockArg};
use crate::commands::elect::Signals;
use crate::output::{Data, Failure, Signal, after, say};
use crate::progress;

/// How often the picture changes.
const FRAME: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    if let Some(BenchCommand::Compare(args)) = &args.command {
        return compare::run(args);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut screen = Screen::new(runtime.block_on(async { Signals::new() })?);
    let report = match args.library {
        true => {
            let library = library(args)?;
            screen.bar_for = Some(library.duration);
            frazil_load::measure_library(&library, &runtime, &mut screen)
        }
        false => runtime.block_on(frazil_load::measure(flags::plan(args)?, &mut screen)),
    };
    let report = report.map_err(|error| screen.failure(error))?;
    let verdict = report.verdict().map_err(|error| screen.failure(error));
    after(print(&report, args.json), verdict)
}

fn library(args: &BenchArgs) -> Result<Library, Failure> {
    flags::check_for_library(args)?;
    let mut library = Library::default();
    library.layout = args.layout.unwrap_or(library.layout);
    library.duration = args.demand.duration.unwrap_or(library.duration);
    library.batch = u32::try_from(args.demand.batch).expect("limited by the arguments");
    library.threads = usize::try_from(args.threads.unwrap_or(1)).expect("limited by the arguments");
    library.verify = args.verify;
    if let Some(ClockArg::Ticker) = args.clock {
        library.clock = LibraryClock::Ticker;
    }
    Ok(library)
}

fn print(report: &Report, json: bool) -> Result<(), Failure> {
    let mut data = Data::new();
    match json {
        true => data.json(report)?,
        false => {
            for (name, value) in report.lines() {
                data.text(format_args!("{name:<10} {value}"))?;
            }
        }
    }
    data.flush()
}

/// The terminal and the signals while something is measured.
struct Screen {
    signals: Signals,
    /// The last signal that came.
    signal: Signal,
    display: Option<Display>,
    /// How long a run of the library takes, which is shown as a bar.
    bar_for: Option<Duration>,
    bar: Option<ProgressBar>,
}

impl Screen {
    const fn new(signals: Signals) -> Self {
        Self { signals, signal: Signal::Interrupt, display: None, bar_for: None, bar: None }
    }

    fn failure(&self, error: Error) -> Failure {
        match error {
            Error::Interrupted => Failure::Interrupted(self.signal),
            error => error.into(),
        }
    }
}

impl Observer for Screen {
    fn note(&mut self, text: &str) {
        say(text);
    }

    fn begin(&mut self) {
        match self.bar_for {
            Some(duration) => self.bar = Some(progress::time(duration)),
            None => self.display = Display::open(),
        }
    }

    fn frame(&self) -> Option<Duration> {
        self.display.is_some().then_some(FRAME)
    }

    fn show(&mut self, snapshot: &Snapshot) {
        if let Some(display) = &mut self.display {
            display.draw(snapshot);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "only shown")]
    fn show_issued(&mut self, elapsed: Duration, ids: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
            bar.set_message(format!("{:.0} IDs/s", ids as f64 / elapsed.as_secs_f64()));
        }
    }

    fn end(&mut self) {
        self.display = None;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    async fn interrupted(&mut self) {
        self.signal = self.signals.next().await;
    }
}
