//! `frazil layout`: what a layout holds, how long it lasts, and where its bits are.

use std::io::{self, IsTerminal};
use std::iter;
use std::time::SystemTime;

use frazil_id::{Layout, PRESETS, rfc3339};
use serde::Serialize;

use crate::args::LayoutArgs;
use crate::output::{Data, Failure};

/// Columns where the terminal does not say how many it has.
const COLUMNS: usize = 80;

pub(crate) fn run(args: &LayoutArgs) -> Result<(), Failure> {
    let facts = Facts::new(&args.layout, now_ms());
    let mut data = Data::new();
    if args.json {
        data.json(&facts)?;
    } else {
        data.text(facts.heading())?;
        data.text("")?;
        for line in picture(&args.layout, columns()) {
            data.text(line)?;
        }
        data.text("")?;
        for (name, value) in facts.lines() {
            data.text(format_args!("{name:<13} {value}"))?;
        }
    }
    data.flush()
}

#[derive(Serialize)]
struct Facts {
    name: Option<&'static str>,
    layout: Layout,
    fields: Vec<Field>,
    epoch: String,
    epoch_ms: u64,
    tick_ms: u32,
    workers: u64,
    ids_per_tick: u64,
    ids_per_second: u64,
    last_instant: String,
    last_instant_ms: u64,
    days_left: u64,
    fits_i64: bool,
    fits_js_number: bool,
    fingerprint: String,
}

#[derive(Serialize)]
struct Field {
    name: String,
    bits: u32,
    /// The most significant bit, counted from 0 at the other end.
    high_bit: u32,
    low_bit: u32,
}

impl Facts {
    fn new(layout: &Layout, now_ms: u64) -> Self {
        let instant = |ms: u64| rfc3339::Instant::from_unix_ms(ms.cast_signed()).to_string();
        Self {
            name: PRESETS.iter().find(|(_, preset)| preset == layout).map(|(name, _)| *name),
            layout: *layout,
            fields: fields(layout.fields(), layout.bits()),
            epoch: instant(layout.epoch_ms()),
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms(),
            workers: layout.workers(),
            ids_per_tick: layout.ids_per_tick(),
            ids_per_second: layout.ids_per_second(),
            last_instant: instant(layout.last_instant_ms()),
            last_instant_ms: layout.last_instant_ms(),
            days_left: layout.days_left(now_ms),
            fits_i64: layout.fits_i64(),
            fits_js_number: layout.fits_js_number(),
            fingerprint: format!("{:016x}", layout.fingerprint()),
        }
    }

    fn heading(&self) -> String {
        match self.name {
            Some(name) => format!("{name}: {}", self.layout),
            None => self.layout.to_string(),
        }
    }

    fn lines(&self) -> [(&'static str, String); 8] {
        let yes_no = |yes| if yes { "yes" } else { "no" };
        [
            ("epoch", self.epoch.clone()),
            ("last instant", format!("{}, {} days left", self.last_instant, self.days_left)),
            ("tick", format!("{} ms", self.tick_ms)),
            ("workers", self.workers.to_string()),
            (
                "IDs a worker",
                format!("{} a tick, {} a second", self.ids_per_tick, self.ids_per_second),
            ),
            ("fits i64", yes_no(self.fits_i64).to_owned()),
            ("fits 2^53", format!("{} (JavaScript numbers)", yes_no(self.fits_js_number))),
            ("fingerprint", self.fingerprint.clone()),
        ]
    }
}

/// Places fields of so many bits in all, from the most significant bit.
fn fields<'a>(named: impl Iterator<Item = (&'a str, u32)>, bits: u32) -> Vec<Field> {
    let mut below = bits;
    named
        .map(|(name, bits)| {
            below -= bits;
            Field { name: name.to_owned(), bits, high_bit: below + bits - 1, low_bit: below }
        })
        .collect()
}

/// Draws the fields as boxes, the numbers of their outer bits above, their names and widths inside.
fn picture(layout: &Layout, columns: usize) -> [String; 5] {
    let unused = (layout.bits() < 64).then(|| ("unused", 64 - layout.bits()));
    let fields = fields(unused.into_iter().chain(layout.fields()), 64);
    let widths = widths(&fields, columns);
    let boxes = || fields.iter().zip(&widths);
    let edge = boxes().map(|(_, width)| "-".repeat(*width)).collect::<Vec<_>>().join("+");
    let edge = format!("+{edge}+");
    let bits = boxes().map(|(field, width)| {
        let (high, low) = (field.high_bit.to_string(), field.low_bit.to_string());
        if field.bits == 1 {
            format!("{high:^width$}")
        } else {
            format!("{high}{low:>0$}", width - high.len())
        }
    });
    let row = |cells: Vec<String>| format!("|{}|", cells.join("|"));
    let names = boxes().map(|(field, width)| format!("{:^width$}", field.name));
    let counts = boxes().map(|(field, width)| format!("{:^width$}", field.bits));
    let bits = format!(" {}", bits.collect::<Vec<_>>().join(" "));
    [bits, edge.clone(), row(names.collect()), row(counts.collect()), edge]
}

/// A column for each bit where there is room; names always fit, and time gives way first.
fn widths(fields: &[Field], columns: usize) -> Vec<usize> {
    let least = |field: &Field| field.name.len() + 2;
    let wanted = |field: &Field| least(field).max(field.bits as usize);
    let borders = fields.len() + 1;
    let mut too_wide = (fields.iter().map(wanted).sum::<usize>() + borders).saturating_sub(columns);
    let mut widths: Vec<usize> = fields.iter().map(wanted).collect();
    for (field, width) in iter::zip(fields, &mut widths) {
        let cut = too_wide.min(*width - least(field));
        *width -= cut;
        too_wide -= cut;
    }
    widths
}

fn columns() -> usize {
    let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map_or(COLUMNS, |(width, _)| usize::from(width.0))
}

#[expect(clippy::disallowed_methods, reason = "only shown: how many days are left from today")]
fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_shows_every_field_with_its_bits() {
        let lines = picture(&Layout::FRAZIL, 80);
        assert_eq!(
            lines.join("\n"),
            "    63    62                                     22 21      12 11         0
+--------+-----------------------------------------+----------+------------+
| unused |                  time                   |  worker  |  sequence  |
|   1    |                   41                    |    10    |     12     |
+--------+-----------------------------------------+----------+------------+"
        );
    }

    #[test]
    fn the_picture_fits_the_terminal_where_names_allow() {
        for &(name, layout) in PRESETS {
            for line in picture(&layout, 72) {
                assert!(line.len() <= 72, "{name}: {line}");
            }
            let narrow = picture(&layout, 1);
            assert!(narrow[2].contains("time"), "{name}");
        }
    }
}
