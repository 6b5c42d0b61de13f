//! The measurement as it goes, on a terminal.

use std::io::{self, IsTerminal, Stderr};

use frazil_load::{Snapshot, duration_text, rate_text};
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

    pub(super) fn draw(&mut self, picture: &Snapshot) {
        // A terminal that has gone is no reason to stop measuring.
        let size = screen_size();
        if size != self.size
            && let Some(terminal) = of_size(size)
        {
            let _ = execute!(io::stderr(), Clear(ClearType::All));
            (self.terminal, self.size) = (terminal, size);
        }
        let _ = self.terminal.draw(|frame| draw(frame, picture));
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

fn draw(frame: &mut Frame, picture: &Snapshot) {
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
    frame.render_widget(progress(picture), gauge);
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

fn progress(picture: &Snapshot) -> LineGauge<'static> {
    let passed = picture.elapsed;
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

fn rate_line(picture: &Snapshot) -> Line<'static> {
    let Some(sample) = picture.samples.last() else { return Line::default() };
    #[expect(clippy::cast_precision_loss, reason = "only shown")]
    let requests = rate_text(sample.requests as f64 / sample.seconds);
    let wanted = picture.rate.map(|rate| format!(" of {}", HumanCount(rate)));
    Line::from(vec![
        Span::styled(format!(" {} IDs/s", rate_text(sample.ids_per_second)), Modifier::BOLD),
        Span::raw(format!("   {requests}{} requests/s", wanted.unwrap_or_default())),
    ])
}

fn latency_line(picture: &Snapshot) -> Line<'static> {
    let last = picture.samples.last();
    let of = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), duration_text);
    let p50 = of(last.and_then(|sample| sample.p50_us));
    let p99 = of(last.and_then(|sample| sample.p99_us));
    Line::raw(format!(" last second: p50 {p50}   p99 {p99}"))
}

fn errors_line(picture: &Snapshot) -> Line<'static> {
    let errors = match &picture.last_error {
        None => Span::styled(" no errors", Color::DarkGray),
        Some(why) => {
            let text = format!(" {} errors: {why}", HumanCount(picture.errors));
            Span::styled(text, Style::new().fg(Color::White).bg(Color::Red))
        }
    };
    let Some((checked, findings)) = picture.checked else { return Line::from(errors) };
    let checked = format!("   {} IDs checked", HumanCount(checked));
    let verdict = match findings {
        0 => Span::styled(checked, Color::Green),
        found => {
            let text = format!("{checked}, {} FINDINGS", HumanCount(found));
            Span::styled(text, Style::new().fg(Color::White).bg(Color::Red))
        }
    };
    Line::from(vec![errors, verdict])
}

fn used_line(picture: &Snapshot) -> Line<'static> {
    match picture.used {
        Some((cores, bytes)) => {
            Line::raw(format!(" server: {cores:.2} cores, {} of memory", HumanBytes(bytes)))
        }
        None => Line::styled(" server: CPU and memory unknown", Color::DarkGray),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::backend::TestBackend;

    use frazil_load::{Accept, Address, Call, Plan, Protocol, Sample};

    use super::*;

    fn picture() -> Snapshot {
        Snapshot::new(&Plan::new(Address::local(Protocol::Http), Call::Http(Accept::Binary)))
    }

    fn screen(picture: &Snapshot, passed: u64) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 14)).unwrap();
        let elapsed = Duration::from_secs(passed);
        let picture = {
            let mut picture = picture.clone();
            picture.elapsed = elapsed;
            picture
        };
        terminal.draw(|frame| draw(frame, &picture)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn what_is_known_is_drawn() {
        let mut picture = picture();
        let drawn = screen(&picture, 0);
        assert!(drawn.contains("warming up") && drawn.contains("no errors"), "{drawn}");
        let mut sample = Sample::default();
        (sample.seconds, sample.ids_per_second, sample.p50_us) = (1.0, 12_345.0, Some(2000.0));
        picture.samples.push(sample);
        (picture.errors, picture.last_error) = (1, Some("timed out".to_owned()));
        picture.used = Some((0.75, 10 << 20));
        picture.checked = Some((0, 0));
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
        picture.is_ending = true;
        assert!(screen(&picture, 11).contains("waiting for the last answers"));
    }

    #[test]
    fn a_small_screen_is_drawn_too() {
        for (width, height) in [(1, 1), (10, 3), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &picture())).unwrap();
        }
    }
}
