//! The workers as a table that fits the terminal.

use std::env;
use std::io::{self, IsTerminal};

use comfy_table::{Table, presets};
use frazil::coord::internal::SlotState;

use super::view::View;
use crate::words::printable;

/// The columns, with how soon each is left out where there is too little room; 0 never is.
const COLUMNS: [(&str, u8); 7] = [
    ("WORKER", 0),
    ("STATE", 0),
    ("HOLDER", 0),
    ("HOST", 3),
    ("TOKEN", 2),
    ("HORIZON", 1),
    ("SECONDS LEFT", 0),
];
/// The last rank of a column.
const RANKS: u8 = 3;

/// The workers as a table: a header and a line for each.
pub(super) fn table(views: &[View]) -> String {
    fitted(views, room())
}

/// How many characters a line may have; `None` where no terminal breaks it.
fn room() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let told = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    told.filter(|columns| *columns > 0).or_else(seen)
}

/// With as many columns as there is room for; the holder is cut short if that is not enough.
fn fitted(views: &[View], room: Option<usize>) -> String {
    let Some(room) = room else { return with_columns(views, RANKS, usize::MAX) };
    let fits = |text: &String| text.lines().all(|line| line.chars().count() <= room);
    (0..=RANKS)
        .rev()
        .map(|most| with_columns(views, most, usize::MAX))
        .chain((1..=room).rev().map(|holder| with_columns(views, 0, holder)))
        .find(fits)
        .unwrap_or_else(|| with_columns(views, 0, 1))
}

fn with_columns(views: &[View], most: u8, holder_max: usize) -> String {
    let kept = |row: [String; COLUMNS.len()]| {
        let ranked = row.into_iter().zip(COLUMNS);
        ranked.filter(move |(_, (_, rank))| *rank <= most).map(|(text, _)| text)
    };
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(kept(COLUMNS.map(|(name, _)| name.to_owned())));
    for view in views {
        table.add_row(kept(row(view, holder_max)));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn row(view: &View, holder_max: usize) -> [String; COLUMNS.len()] {
    let text = |value: &Option<String>| printable(value.as_deref().unwrap_or("-"));
    [
        view.worker.to_string(),
        view.state.word().to_owned(),
        shortened(text(&view.holder), holder_max),
        text(&view.host),
        text(&view.token),
        text(&view.horizon),
        match view.state {
            // It can be taken now; nothing runs out.
            SlotState::Free => "-".to_owned(),
            _ => format!("{:.1}", view.seconds_left),
        },
    ]
}

fn shortened(text: String, most: usize) -> String {
    if text.chars().count() <= most {
        return text;
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}~")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn view() -> View {
        View {
            worker: 7,
            state: SlotState::Held,
            holder: Some("a-machine-with-a-long-name:4711\u{202e}".into()),
            host: Some("a-machine-with-a-long-name".into()),
            token: Some("1794745654763".into()),
            floor_ms: Some(0),
            horizon_ms: Some(0),
            horizon: Some("2026-11-15T12:27:34.767Z".into()),
            seconds_left: 3.25,
            expires_in_seconds: None,
            info: BTreeMap::new(),
        }
    }

    #[test]
    fn a_table_fits_its_room_and_keeps_worker_state_and_holder() {
        let wide = fitted(&[view()], None);
        assert!(wide.contains("TOKEN") && wide.contains("\\u{202e}"), "{wide}");
        for room in [120, 100, 80, 60, 40] {
            let table = fitted(&[view()], Some(room));
            for line in table.lines() {
                assert!(line.chars().count() <= room, "{room}: {line}");
            }
            assert!(table.contains("HOLDER") && table.contains("held"), "{table}");
        }
    }

    #[test]
    fn a_free_worker_has_nothing_left_to_run_out() {
        let table = fitted(&[View { state: SlotState::Free, ..view() }], None);
        assert!(!table.contains("3.2") && table.ends_with('-'), "{table}");
    }
}
