//! The picture of a journal: pure.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Paragraph, Wrap};

use crate::journal::{Condition, Journal, Node, milliseconds, percentile};

/// A job that came this recently stands out.
const NEW: Duration = Duration::from_millis(1500);
/// Lines of news.
const NEWS: u16 = 6;
/// The colours of the nodes, again from the start where there are more.
const COLOURS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Green, Color::Magenta, Color::Blue, Color::Red];

/// Draws everything that is known.
pub(crate) fn draw(frame: &mut Frame, journal: &Journal) {
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(NEWS + 2),
        Constraint::Length(1),
    ]);
    let [title, nodes, nowhere, gaps, news, keys] = rows.areas(frame.area());
    frame.render_widget(Paragraph::new(heading(journal)), title);
    draw_nodes(frame, nodes, journal);
    frame.render_widget(Paragraph::new(unled(journal)), nowhere);
    frame.render_widget(Paragraph::new(hand_overs(journal, gaps.width)), gaps);
    draw_news(frame, news, journal);
    let help = " r  restart the nodes one after the other    q  quit";
    frame.render_widget(Paragraph::new(Line::styled(help, Color::DarkGray)), keys);
}

fn heading(journal: &Journal) -> Line<'_> {
    let passed = journal.now.saturating_sub(journal.began).as_secs_f64();
    let phase = match journal.phases.last() {
        Some(phase) if phase.ended.is_none() => phase.name.as_str(),
        Some(_) => "at rest",
        None => "starting",
    };
    Line::from(vec![
        Span::styled(format!(" {}", journal.title), Modifier::BOLD),
        Span::styled(format!("   {passed:5.1} s   "), Color::DarkGray),
        Span::styled(phase, Style::new().fg(Color::Black).bg(Color::Gray)),
    ])
}

fn draw_nodes(frame: &mut Frame, area: Rect, journal: &Journal) {
    let columns = Layout::horizontal(vec![Constraint::Fill(1); journal.nodes.len()]).split(area);
    let loads = journal.loads();
    for (index, (node, column)) in journal.nodes.iter().zip(columns.iter()).enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let title = format!(" {}: {} ", node.name, loads[index]);
        let block = Block::bordered()
            .title(Span::styled(title, Modifier::BOLD))
            .title_bottom(format!(" {} ", word(node)))
            .border_style(border(node, colour));
        let jobs = Paragraph::new(jobs_on(journal, index, colour)).wrap(Wrap { trim: true });
        frame.render_widget(jobs.block(block), *column);
    }
}

fn word(node: &Node) -> &'static str {
    match node.condition {
        Condition::Up => "up",
        Condition::Stopping => "stops",
        Condition::Down => "down",
    }
}

fn border(node: &Node, colour: Color) -> Style {
    match node.condition {
        Condition::Up => Style::new().fg(colour),
        Condition::Stopping => Style::new().fg(Color::Red),
        Condition::Down => Style::new().fg(Color::DarkGray),
    }
}

/// The jobs of a node; those that have just come stand out.
fn jobs_on(journal: &Journal, node: usize, colour: Color) -> Line<'_> {
    let here = journal.jobs.iter().filter(|(_, job)| job.on == Some(node));
    let spans = here.flat_map(|(name, job)| {
        let is_new = journal.now.saturating_sub(job.since) < NEW;
        let style = match is_new {
            true => Style::new().fg(Color::Black).bg(colour),
            false => Style::new().fg(colour),
        };
        [Span::styled(name.as_str(), style), Span::raw(" ")]
    });
    Line::from_iter(spans)
}

/// The jobs that nobody runs.
fn unled(journal: &Journal) -> Line<'_> {
    let names = journal.jobs.iter().filter(|(_, job)| job.on.is_none());
    let names: Vec<_> = names.map(|(name, _)| name.as_str()).collect();
    match names.is_empty() {
        true => Line::styled(" every job has a leader", Color::DarkGray),
        false => {
            let text = format!(" without a leader: {}", names.join(" "));
            Line::styled(text, Style::new().fg(Color::White).bg(Color::Red))
        }
    }
}

/// What is known of hand-overs: as much as fits, for half a number is a wrong one.
fn hand_overs(journal: &Journal, width: u16) -> Line<'_> {
    let gaps = journal.gaps();
    let mut line = Line::styled(format!(" {}", counted(gaps.len())), Modifier::BOLD);
    if journal.overlaps > 0 {
        let text = format!("   {} OVERLAPS", journal.overlaps);
        line.push_span(Span::styled(text, Style::new().fg(Color::White).bg(Color::Red)));
    }
    for (name, percent) in [("gap max", 100), ("p50", 50), ("p99", 99), ("p90", 90)] {
        let gap = percentile(&gaps, percent).map_or_else(|| "-".to_owned(), milliseconds);
        let text = Span::raw(format!("   {name} {gap}"));
        if line.width() + text.width() > usize::from(width) {
            break;
        }
        line.push_span(text);
    }
    line
}

fn counted(hand_overs: usize) -> String {
    let ending = if hand_overs == 1 { "" } else { "s" };
    format!("{hand_overs} hand-over{ending}")
}

fn draw_news(frame: &mut Frame, area: Rect, journal: &Journal) {
    let room = usize::from(area.height.saturating_sub(2));
    let last = journal.news.iter().skip(journal.news.len().saturating_sub(room));
    let lines = last.map(|(at, line)| {
        let passed = at.saturating_sub(journal.began).as_secs_f64();
        Line::from(vec![
            Span::styled(format!("{passed:7.3} s  "), Color::DarkGray),
            Span::raw(line.as_str()),
        ])
    });
    let block = Block::bordered().border_style(Color::DarkGray).title(" news ");
    frame.render_widget(Paragraph::new(Text::from_iter(lines)).block(block), area);
}

#[cfg(test)]
mod tests {
    use frazil_coord::Token;
    use frazil_election::processor::Step;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::journal::Note;
    use crate::stage::job_name;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn screen(journal: &Journal) -> String {
        let mut terminal = Terminal::new(TestBackend::new(96, 22)).unwrap();
        terminal.draw(|frame| draw(frame, journal)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn jobs_are_drawn_where_they_run_and_told_of_where_they_do_not() {
        let mut journal = Journal::new("a title".into(), 3, 4, seconds(0));
        assert!(screen(&journal).contains("without a leader: job-01 job-02 job-03 job-04"));
        journal.note(Note::Phase("restart node-2".into()), seconds(1));
        for node in 0..3 {
            journal.note(Note::Node { node, condition: Condition::Up }, seconds(1));
        }
        for job in 0..4 {
            let (job, step) = (job_name(job), Step::Started);
            let node = if job == "job-01" { 2 } else { 0 };
            journal.note(Note::Job { node, job, token: Token(1), step }, seconds(2));
        }
        let drawn = screen(&journal);
        for text in ["a title", "restart node-2", "node-1: 3", "node-2: 0", "node-3: 1"] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        assert!(drawn.contains("every job has a leader") && drawn.contains("0 hand-overs"));
        let line = drawn.lines().find(|line| line.contains("job-02 job-03 job-04")).unwrap();
        assert!(line.find("job-02") < line.find("job-01"), "the third node is on the right");
        let (job, aborted) = (job_name(3), false);
        let stopped = Note::Job { node: 0, job, token: Token(1), step: Step::Stopped { aborted } };
        journal.note(stopped, seconds(3));
        journal.note(Note::Node { node: 0, condition: Condition::Stopping }, seconds(3));
        let drawn = screen(&journal);
        assert!(drawn.contains("without a leader: job-04") && drawn.contains("stops"), "{drawn}");
    }

    #[test]
    fn numbers_that_do_not_fit_are_left_out_and_never_cut() {
        let mut journal = Journal::new("a title".into(), 2, 1, seconds(0));
        journal.note(Note::Phase("restart".into()), seconds(0));
        for (token, node, at) in [(1, 0, 1), (2, 1, 3)] {
            let note = |step| Note::Job { node, job: job_name(0), token: Token(token), step };
            journal.note(note(Step::Started), seconds(at));
            journal.note(note(Step::Stopped { aborted: false }), seconds(at));
        }
        let whole = hand_overs(&journal, 200).to_string();
        assert!(whole.ends_with("p99 2000.0 ms   p90 2000.0 ms"), "{whole}");
        for width in 0..100 {
            let drawn = hand_overs(&journal, width).to_string();
            assert!(whole.starts_with(&drawn), "{drawn}");
            assert!(drawn.ends_with(" ms") || drawn == " 1 hand-over", "{width}: {drawn}");
        }
    }

    #[test]
    fn a_small_screen_is_drawn_too() {
        let journal = Journal::new("a title".into(), 9, 500, seconds(0));
        for (width, height) in [(1, 1), (10, 5), (80, 24), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &journal)).unwrap();
        }
    }
}
