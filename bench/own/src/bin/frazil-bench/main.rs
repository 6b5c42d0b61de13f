//! Measures the core against the bars of its design.

mod audit;
mod bar;
mod speed;
mod sustained;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use frazil_bench::{Pace, machine};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let pace = match Pace::from_command_line("frazil-bench") {
        Ok(pace) => pace,
        Err(code) => return Ok(code),
    };
    let mut out = io::stdout();
    writeln!(out, "{}\n", machine())?;

    let speed = speed::measure(pace)?;
    let sustained = sustained::measure(pace)?;
    let audit = audit::measure(pace);
    let bars = speed.bars().into_iter().chain(sustained.bars()).chain(audit.bars());
    writeln!(out, "{}\n{}\n", bar::table(bars), sustained.control())?;
    writeln!(out, "{}", speed.table())?;
    writeln!(out, "{}", audit.table())?;
    Ok(ExitCode::SUCCESS)
}
