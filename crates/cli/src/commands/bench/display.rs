//! The measurement as it goes, on a terminal.

use std::io::{self, IsTerminal, Stderr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen,
};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, LineGauge, Paragraph, Sparkline};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

use super::moment::now;
use super::plan::Plan;
use super::report::{Sample, time, whole};
use super::tally::Tally;
use super::verify::Progress;

/// A terminal on stderr: stdout is for the result.
pub(super) struct Display {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    size: (u16, u16),
}

impl Display {
    /// Takes the screen, if there is one.
    pub(super) fn open() -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let size = screen_size();
        let terminal = of_size(size)?;
        execute!(io::stderr(), EnterAlternateScreen, Hide).ok()?;
        Some(Self { terminal, size })
    }

    pub(super) fn draw(&mut self, picture: &Picture) {
        // A terminal that has gone is no reason to stop measuring.
        let size = screen_size();
        if size != self.size
            && let Some(terminal) = of_size(size)
        {
            let _ = execute!(io::stderr(), Clear(ClearType::All));
            (self.terminal, self.size) = (terminal, size);
        }
        let _ = self.terminal.draw(|frame| draw(frame, picture, now()));
    }
}

/// What the terminal says, or what terminals have that say nothing.
fn screen_size() -> (u16, u16) {
    terminal::size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or((80, 24))
}

/// A screen of a fixed size. One that follows the terminal by itself would ask it where the cursor
/// is, by writing to stdout.
fn of_size((columns, rows): (u16, u16)) -> Option<Terminal<CrosstermBackend<Stderr>>> {
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
    let backend = CrosstermBackend::new(io::stderr());
    Terminal::with_options(backend, TerminalOptions { viewport }).ok()
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
    }
}

/// What is drawn.
#[derive(Debug)]
pub(super) struct Picture {
    title: String,
    start: Instant,
    warm_up: Duration,
    duration: Duration,
    rate: Option<u64>,
    pub(super) samples: Vec<Sample>,
    errors: u64,
    last_error: Option<String>,
    is_ending: bool,
    /// Cores and memory of the server, lately.
    pub(super) used: Option<(f64, u64)>,
    progress: Option<Arc<Progress>>,
}

impl Picture {
    pub(super) fn new(title: String, plan: &Plan, progress: Option<Arc<Progress>>) -> Self {
        Self {
            title,
            start: now(),
            warm_up: plan.warm_up,
            duration: plan.duration,
            rate: plan.rate,
            samples: Vec::new(),
            errors: 0,
            last_error: None,
            is_ending: false,
            used: None,
            progress,
        }
    }

    /// The load begins now.
    pub(super) const fn begin(&mut self, start: Instant) {
        self.start = start;
    }

    pub(super) fn add_errors(&mut self, tally: &Tally) {
        self.errors += tally.errors();
        if let Some(name) = tally.errors.keys().next() {
            self.last_error = Some(name.clone());
        }
    }

    /// No more is sent: the last answers are waited for.
    pub(super) const fn ending(&mut self) {
        self.is_ending = true;
    }
}

fn draw(frame: &mut Frame, picture: &Picture, now: Instant) {
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(5),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [title, gauge, rate, spark, latency, errors, used, keys] = rows.areas(frame.area());
    frame.render_widget(Line::styled(format!(" {}", picture.title), Modifier::BOLD), title);
    frame.render_widget(progress(picture, now), gauge);
    frame.render_widget(rate_line(picture), rate);
    let width = usize::from(spark.width.saturating_sub(2));
    let skipped = picture.samples.len().saturating_sub(width);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let rates = picture.samples[skipped..].iter().map(|sample| sample.ids_per_second as u64);
    let block = Block::bordered().title(" IDs/s ").border_style(Color::DarkGray);
    let sparkline = Sparkline::default().data(rates.collect::<Vec<_>>()).style(Color::Cyan);
    frame.render_widget(sparkline.block(block), spark);
    frame.render_widget(latency_line(picture), latency);
    frame.render_widget(Paragraph::new(errors_line(picture)), errors);
    frame.render_widget(used_line(picture), used);
    let help = " Ctrl-C ends it with what was measured so far";
    frame.render_widget(Line::styled(help, Color::DarkGray), keys);
}

fn progress(picture: &Picture, now: Instant) -> LineGauge<'static> {
    let passed = now.saturating_duration_since(picture.start);
    let measured = passed.saturating_sub(picture.warm_up).min(picture.duration);
    let left = picture.duration.saturating_sub(measured);
    let label = match () {
        () if picture.is_ending => "waiting for the last answers".to_owned(),
        () if passed < picture.warm_up => "warming up".to_owned(),
        () => format!("{:.0} s, {:.0} s left", measured.as_secs_f64(), left.as_secs_f64()),
    };
    let ratio = measured.as_secs_f64() / picture.duration.as_secs_f64().max(f64::EPSILON);
    LineGauge::default()
        .label(format!(" {label}"))
        .ratio(ratio.clamp(0.0, 1.0))
        .filled_style(Style::new().fg(Color::Cyan))
}

fn rate_line(picture: &Picture) -> Line<'static> {
    let Some(sample) = picture.samples.last() else { return Line::default() };
    #[expect(clippy::cast_precision_loss, reason = "only shown")]
    let requests = whole(sample.requests as f64 / sample.seconds);
    let wanted = picture.rate.map(|rate| format!(" of {}", HumanCount(rate)));
    Line::from(vec![
        Span::styled(format!(" {} IDs/s", whole(sample.ids_per_second)), Modifier::BOLD),
        Span::raw(format!("   {requests}{} requests/s", wanted.unwrap_or_default())),
    ])
}

fn latency_line(picture: &Picture) -> Line<'static> {
    let last = picture.samples.last();
    let of = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), time);
    let p50 = of(last.and_then(|sample| sample.p50_us));
    let p99 = of(last.and_then(|sample| sample.p99_us));
    Line::raw(format!(" last second: p50 {p50}   p99 {p99}"))
}

fn errors_line(picture: &Picture) -> Line<'static> {
    let errors = match &picture.last_error {
        None => Span::styled(" no errors", Color::DarkGray),
        Some(why) => {
            let text = format!(" {} errors: {why}", HumanCount(picture.errors));
            Span::styled(text, Style::new().fg(Color::White).bg(Color::Red))
        }
    };
    let Some(progress) = &picture.progress else { return Line::from(errors) };
    let checked = format!("   {} IDs checked", HumanCount(progress.checked()));
    let verdict = match progress.findings() {
        0 => Span::styled(checked, Color::Green),
        found => {
            let text = format!("{checked}, {} FINDINGS", HumanCount(found));
            Span::styled(text, Style::new().fg(Color::White).bg(Color::Red))
        }
    };
    Line::from(vec![errors, verdict])
}

fn used_line(picture: &Picture) -> Line<'static> {
    match picture.used {
        Some((cores, bytes)) => {
            Line::raw(format!(" server: {cores:.2} cores, {} of memory", HumanBytes(bytes)))
        }
        None => Line::styled(" server: CPU and memory unknown", Color::DarkGray),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::backend::TestBackend;

    use super::super::fault::Fault;
    use super::*;

    fn picture() -> Picture {
        Picture {
            title: "http://127.0.0.1:7780 (HTTP binary)".to_owned(),
            start: now(),
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(10),
            rate: None,
            samples: Vec::new(),
            errors: 0,
            last_error: None,
            is_ending: false,
            used: None,
            progress: None,
        }
    }

    fn screen(picture: &Picture, passed: u64) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 14)).unwrap();
        let now = picture.start + Duration::from_secs(passed);
        terminal.draw(|frame| draw(frame, picture, now)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn what_is_known_is_drawn() {
        let mut picture = picture();
        let drawn = screen(&picture, 0);
        assert!(drawn.contains("warming up") && drawn.contains("no errors"), "{drawn}");
        let mut tally = Tally::new();
        tally.answered(Duration::from_millis(2), 12_345);
        tally.failed(&Fault::TimedOut, Duration::from_secs(1));
        picture.samples.push(Sample::new(&tally, 1.0, 1.0));
        picture.add_errors(&tally);
        picture.used = Some((0.75, 10 << 20));
        picture.progress = Some(Arc::default());
        let drawn = screen(&picture, 4);
        for text in [
            "12,345 IDs/s",
            "3 s, 7 s left",
            "p50 2.00 ms",
            "1 errors: timed out",
            "0.75 cores, 10.00 MiB",
            "0 IDs checked",
        ] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        picture.ending();
        assert!(screen(&picture, 11).contains("waiting for the last answers"));
    }

    #[test]
    fn a_small_screen_is_drawn_too() {
        for (width, height) in [(1, 1), (10, 3), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &picture(), now())).unwrap();
        }
    }
}
