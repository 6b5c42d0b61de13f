//! `frazil bench compare`: two measurements side by side.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use frazil_load::{Comparison, Report};

use crate::args::CompareArgs;
use crate::output::{Data, Failure, say};

/// Bytes of a measurement: a day has 86,400 samples of some 200 bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

pub(super) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let comparison = Comparison::of(&before, &after);
    comparison.warnings().for_each(|warning| say(format_args!("warning: {warning}")));
    let mut data = Data::new();
    match args.json {
        true => data.json(&comparison)?,
        false => {
            data.text(format_args!("A  {}", before.title()))?;
            data.text(format_args!("B  {}", after.title()))?;
            data.text(table(&comparison))?;
            data.text(comparison.verdict())?;
        }
    }
    data.flush()
}

fn read(path: &Path) -> Result<Report, Failure> {
    let bad = |why: String| Failure::usage(format_args!("{path:?} {why}"));
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text))
        .map_err(|error| bad(format!("cannot be read: {error}")))?;
    Report::from_json(&text).map_err(|error| bad(error.to_string()))
}

fn table(comparison: &Comparison) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["", "A", "B", "B/A"]);
    comparison.rows().for_each(|row| {
        table.add_row(row);
    });
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
