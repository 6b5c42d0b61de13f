//! A recording of what was drawn, as a moving picture (SVG).

use std::fmt::Write;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::draw::draw;
use super::journal::Journal;

/// The screen, in characters.
const SIZE: (u16, u16) = (96, 22);
/// A character, in units of the picture.
const CELL: (u32, u32) = (8, 17);
/// The last frame is shown for this long before it begins again.
const LAST: Duration = Duration::from_secs(3);

/// Frames, each with when it was taken.
#[derive(Debug, Default)]
pub(super) struct Recording {
    frames: Vec<(Duration, Buffer)>,
}

impl Recording {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Takes a frame, unless it looks like the last one, of the clock apart.
    pub(super) fn take(&mut self, journal: &Journal) {
        let Ok(mut terminal) = Terminal::new(TestBackend::new(SIZE.0, SIZE.1));
        let Ok(_) = terminal.draw(|frame| draw(frame, journal));
        let buffer = terminal.backend().buffer().clone();
        let is_new = self.frames.last().is_none_or(|(_, last)| !is_same(last, &buffer));
        if is_new {
            self.frames.push((journal.now, buffer));
        }
    }

    /// What a line looked like, each time from when until when.
    fn stretches(&self, y: u16) -> Vec<(Duration, Option<Duration>, String)> {
        let mut stretches: Vec<(Duration, Option<Duration>, String)> = Vec::new();
        for (at, buffer) in &self.frames {
            let line = drawn(buffer, y);
            match stretches.last_mut() {
                Some((_, _, last)) if *last == line => continue,
                Some((_, until, _)) => *until = Some(*at),
                None => {}
            }
            stretches.push((*at, None, line));
        }
        stretches.retain(|(_, _, line)| !line.is_empty());
        stretches
    }

    /// The moving picture.
    pub(super) fn into_svg(self) -> String {
        let Some((first, _)) = self.frames.first() else { return String::new() };
        let (first, last) = (*first, self.frames.last().map_or(*first, |(at, _)| *at));
        let total = (last - first + LAST).as_secs_f64();
        let (width, height) = (u32::from(SIZE.0) * CELL.0, u32::from(SIZE.1) * CELL.1);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"13\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
            hex(Color::Black, "")
        );
        let share = |at: Duration| (at - first).as_secs_f64() / total;
        for y in 0..SIZE.1 {
            for (from, to, text) in self.stretches(y) {
                let to = to.map_or(1.0, share);
                svg.push_str(&shown(share(from), to, total, &text));
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// A line that is shown from one time until another, as shares of the whole.
fn shown(from: f64, to: f64, total: f64, line: &str) -> String {
    let (values, times) = match from > 0.0 {
        true if to < 1.0 => ("none;inline;none", format!("0;{from:.5};{to:.5}")),
        true => ("none;inline", format!("0;{from:.5}")),
        false if to < 1.0 => ("inline;none", format!("0;{to:.5}")),
        false => return format!("<g>{line}</g>\n"),
    };
    // Whoever shows no movement shows the last frame.
    let still = if to < 1.0 { " display=\"none\"" } else { "" };
    format!(
        "<g{still}><animate attributeName=\"display\" calcMode=\"discrete\" \
         dur=\"{total:.2}s\" repeatCount=\"indefinite\" values=\"{values}\" \
         keyTimes=\"{times}\"/>{line}</g>\n"
    )
}

/// Whether two frames differ in no more than their first line, where the clock is.
fn is_same(a: &Buffer, b: &Buffer) -> bool {
    let below = |buffer: &Buffer| buffer.content[usize::from(SIZE.0)..].to_vec();
    below(a) == below(b)
}

/// The texts of a line, each as long as its style lasts.
fn drawn(buffer: &Buffer, y: u16) -> String {
    let style = |x: u16| {
        let cell = &buffer[(x, y)];
        (cell.fg, cell.bg, cell.modifier)
    };
    let (mut svg, mut x) = (String::new(), 0);
    while x < SIZE.0 {
        let (from, mut text) = (x, String::new());
        while x < SIZE.0 && style(x) == style(from) {
            text.push_str(buffer[(x, y)].symbol());
            x += 1;
        }
        stretch(&mut svg, (from, x, y), &text, buffer[(from, y)].style());
    }
    svg
}

/// One text, with what is behind it.
fn stretch(
    svg: &mut String,
    (from, to, y): (u16, u16, u16),
    text: &str,
    style: ratatui::style::Style,
) {
    let (left, width) = (u32::from(from) * CELL.0, u32::from(to - from) * CELL.0);
    let top = u32::from(y) * CELL.1;
    let behind = style.bg.unwrap_or(Color::Reset);
    // Writing to a text does not fail.
    if behind != Color::Reset {
        let (fill, height) = (hex(behind, ""), CELL.1);
        let _ = write!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
        );
    }
    // Viewers drop spaces at the ends, and would pull the rest apart to the length that is said.
    let leading = text.chars().take_while(|letter| *letter == ' ').count();
    let (text, trimmed) = (text.trim_matches(' '), u32::try_from(leading).unwrap_or_default());
    if text.is_empty() {
        return;
    }
    let left = left + trimmed * CELL.0;
    let width = u32::try_from(text.chars().count()).unwrap_or_default() * CELL.0;
    let fill = hex(style.fg.unwrap_or(Color::Reset), "#d0d0d0");
    let weight = match style.add_modifier.contains(ratatui::style::Modifier::BOLD) {
        true => " font-weight=\"bold\"",
        false => "",
    };
    let _ = write!(
        svg,
        "<text x=\"{left}\" y=\"{}\" fill=\"{fill}\"{weight} textLength=\"{width}\">{}</text>",
        top + CELL.1 - 4,
        escaped(text)
    );
}

/// The text in ASCII, with entities for all else, and for spaces, of which viewers make one.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '!'..='~' => escaped.push(c),
            _ => {
                let c = if c == ' ' { '\u{a0}' } else { c };
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
        }
    }
    escaped
}

fn hex(colour: Color, otherwise: &'static str) -> &'static str {
    match colour {
        Color::Black => "#14161a",
        Color::Red => "#c4453d",
        Color::Green => "#5fb35f",
        Color::Yellow => "#d7a84b",
        Color::Blue => "#5b8dd9",
        Color::Magenta => "#b678c9",
        Color::Cyan => "#4fb8c4",
        Color::Gray => "#b8bcc4",
        Color::DarkGray => "#7a7f88",
        Color::White => "#f2f2f2",
        _ => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::{Condition, Note};
    use super::*;

    #[test]
    fn a_line_is_drawn_again_only_where_it_changed() {
        let mut journal = Journal::new("<a> & b".into(), 2, 3, Duration::ZERO);
        let mut recording = Recording::new();
        recording.take(&journal);
        journal.now = Duration::from_millis(100);
        recording.take(&journal);
        assert_eq!(recording.frames.len(), 1, "only the clock differs");
        let up = Note::Node { node: 0, condition: Condition::Up };
        journal.note(up, Duration::from_millis(200));
        recording.take(&journal);
        let svg = recording.into_svg();
        assert!(svg.is_ascii() && svg.ends_with("</svg>\n"));
        let count = |text: &str| svg.matches(text).count();
        assert_eq!(count("<g"), count("</g>"));
        assert_eq!(count("values=\"inline;none\""), count("values=\"none;inline\""));
        assert!(count("<g>") > 2, "lines that stayed the same do not move");
        assert_eq!(count("without&#160;a&#160;leader"), 1, "and are drawn once");
        assert!(svg.contains("&lt;a>&#160;&amp;&#160;b"), "{svg}");
        assert!(svg.contains("node-1&#160;is&#160;up"), "{svg}");
        assert!(
            !svg.contains("\">&#160;") && !svg.contains("&#160;<"),
            "no text begins or ends with a space"
        );
        assert_eq!(
            count("display=\"none\""),
            count("values=\"inline;none\""),
            "the last frame is seen"
        );
        assert!(svg.contains("dur=\"3.20s\""), "{svg}");
    }
}
