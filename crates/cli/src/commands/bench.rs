//! `frazil bench`: how fast IDs are issued, by a server or by the library.

mod address;
mod book;
mod check;
mod chunked;
mod client;
mod compare;
mod connect;
mod course;
mod descriptors;
mod display;
mod fault;
mod flags;
mod grpc;
mod http;
mod library;
mod load;
mod machine;
mod moment;
mod plan;
mod probe;
mod report;
mod resp;
mod schedule;
mod tally;
mod target;
mod unlike;
mod verify;

use self::report::Report;
use crate::args::{BenchArgs, BenchCommand};
use crate::output::{Data, Exit, Failure, Signal, after};

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    if let Some(BenchCommand::Compare(args)) = &args.command {
        return compare::run(args);
    }
    let (report, interrupted) = match args.library {
        true => library::measure(args)?,
        false => course::measure(args)?,
    };
    after(print(&report, args.json), verdict(&report, interrupted))
}

fn print(report: &Report, json: bool) -> Result<(), Failure> {
    let mut data = Data::new();
    match json {
        true => data.json(report)?,
        false => {
            for (name, value) in report.lines() {
                data.text(format_args!("{name:<10} {value}"))?;
            }
        }
    }
    data.flush()
}

/// How the command ends after everything was printed.
fn verdict(report: &Report, interrupted: Option<Signal>) -> Result<(), Failure> {
    if report.faults() > 0 {
        let why = "the IDs are not what they must be: see the findings, and the node's log";
        return Err(Failure::new(Exit::No, why));
    }
    if let Some(signal) = interrupted {
        return Err(Failure::Interrupted(signal));
    }
    if report.results.requests == 0 {
        let errors: Vec<_> = report.errors.keys().map(String::as_str).collect();
        let why = match errors.is_empty() {
            true => "no answer came within the time: measure for longer, or ask for fewer IDs",
            false => "no request succeeded: look at the node's log and at `frazil doctor`",
        };
        let seen =
            if errors.is_empty() { String::new() } else { format!(" ({})", errors.join(", ")) };
        return Err(Failure::new(Exit::Unavailable, format_args!("{why}{seen}")));
    }
    if let Some(outage) = &report.outage {
        let why = format_args!(
            "{}. No request succeeded after {:.1} s of the measurement, so its numbers are those of \
             an outage",
            outage.why, outage.since_seconds
        );
        return Err(Failure::new(Exit::Unavailable, why));
    }
    Ok(())
}
