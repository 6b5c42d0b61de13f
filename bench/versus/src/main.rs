//! Measures frazil beside other generators, in one run on one machine.

mod at_cap;
mod contender;
mod genuine;
mod real_time;
mod uncapped;

use std::error::Error;
use std::io;
use std::process::ExitCode;

use frazil_bench::Pace;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let pace = match Pace::from_command_line("frazil-bench-versus") {
        Ok(pace) => pace,
        Err(code) => return Ok(code),
    };
    let mut out = io::stdout();
    uncapped::report(&mut out, pace)?;
    at_cap::report(&mut out, pace)?;
    Ok(ExitCode::SUCCESS)
}
