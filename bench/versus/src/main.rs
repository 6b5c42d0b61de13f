//! Measures frazil beside other generators, in one run on one machine.

mod at_cap;
mod contender;
mod genuine;
mod real_time;
mod uncapped;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use frazil_bench::{Pace, machine, wide_layout};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let pace = match Pace::from_command_line("frazil-bench-versus") {
        Ok(pace) => pace,
        Err(code) => return Ok(code),
    };
    let mut out = io::stdout();
    let machine = machine();
    // Measured first: later there is a thread of ferroid's clock, which would count as everyone's.
    let at_cap = (!contender::HAS_FAST_RNG).then(|| at_cap::measure(pace)).transpose()?;

    writeln!(out, "Table A, nothing caps: {}\n{machine}\n", wide_layout())?;
    uncapped::report(&mut out, pace)?;
    if let Some(at_cap) = at_cap {
        writeln!(out, "Table B, at the cap: 4096 IDs a millisecond\n{machine}\n\n{at_cap}")?;
    }
    Ok(ExitCode::SUCCESS)
}
