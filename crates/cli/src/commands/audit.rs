//! `frazil audit`: which IDs came twice, and whether they ascend.

mod malformed;
mod objects;
mod report;

use std::ffi::OsString;
use std::ops::ControlFlow;

use frazil_audit::reader::{Form, Input};
use frazil_audit::{Auditor, Place, Search, Verdict};

use self::malformed::MalformedLines;
use self::report::Report;
use crate::args::AuditArgs;
use crate::output::{Data, Failure, after, say};
use crate::progress;
use crate::words;

/// Findings of each kind that are told with their places; all are counted.
const FINDINGS_MAX: usize = 10;

pub(crate) fn run(args: &AuditArgs) -> Result<(), Failure> {
    let inputs = inputs(&args.files)?;
    let form = if args.binary { Form::Binary } else { Form::Text(args.format.format) };
    let mut reading =
        Reading { inputs: &inputs, form, malformed: MalformedLines::default(), cut: 0 };
    let mut auditor = Auditor::new(&args.layout.layout, FINDINGS_MAX);
    for input in &inputs {
        reading.check(input, &mut auditor);
    }
    let mut verdict = auditor.finish();
    reading.place_duplicates(&mut verdict);
    reading.malformed.tell_rest();

    let report = Report {
        verdict: &verdict,
        inputs: &inputs,
        format: args.format.format,
        ordered: args.ordered,
        malformed: reading.malformed.count(),
        unreadable: reading.cut,
    };
    if verdict.checked == 0 && report.exit().is_none() {
        say("note: no ID was read, so nothing was checked");
    }
    let found = report.exit().map_or(Ok(()), |exit| Err(Failure::Reported(exit)));
    after(print(&report, args.json), found)
}

/// The files that were typed.
fn inputs(names: &[OsString]) -> Result<Vec<Input>, Failure> {
    if let Some(url) = names.iter().find_map(|name| name.to_str().filter(|name| is_url(name))) {
        return Err(Failure::usage(format_args!(
            "`frazil audit` reads files, not {}: save the IDs that a server issues first, as \
             `frazil next --server URL -n 1000 > ids`",
            words::printable(url.split('@').next_back().unwrap_or(url))
        )));
    }
    Input::all(names).map_err(Failure::usage)
}

fn is_url(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("http://") || name.starts_with("https://")
}

/// A file's name for a terminal.
fn shown(input: &Input) -> String {
    input.shown(words::printable)
}

fn print(report: &Report<'_>, json: bool) -> Result<(), Failure> {
    let mut data = Data::new();
    match json {
        true => report.json(&mut data)?,
        false => report.text(&mut data)?,
    }
    data.flush()
}

/// Reads the files, and remembers what could not be read.
struct Reading<'a> {
    inputs: &'a [Input],
    form: Form,
    malformed: MalformedLines,
    /// Files that could not be read, or not to their end.
    cut: u64,
}

impl Reading<'_> {
    fn check(&mut self, input: &Input, auditor: &mut Auditor) {
        let mut source = auditor.source(input.name());
        let malformed = &mut self.malformed;
        let bar = progress::reading(input.bytes());
        let read = input.open().and_then(|file| {
            self.form.each(&mut bar.wrap_read(file), |(line, entry)| {
                match entry {
                    Ok(id) => source.check(id, line),
                    Err(why) => bar.suspend(|| malformed.note(input, line, &why)),
                }
                ControlFlow::Continue(())
            })
        });
        bar.finish_and_clear();
        if let Err(error) = read {
            self.cut += 1;
            say(format_args!("error: {} cannot be read: {error}", shown(input)));
        }
    }

    /// Reads files once more, up to where the first sighting of each duplicate is found.
    fn place_duplicates(&self, verdict: &mut Verdict) {
        let mut search = Search::new(verdict);
        for (source, input) in self.inputs.iter().enumerate() {
            if !input.is_rereadable() || !search.needs(source) {
                continue;
            }
            let bar = progress::reading(input.bytes());
            let read = input.open().and_then(|file| {
                self.form.each(&mut bar.wrap_read(file), |(at, entry)| {
                    let found = entry.is_ok_and(|id| search.see(id, Place { source, at }));
                    match found && !search.needs(source) {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                })
            });
            bar.finish_and_clear();
            if let Err(error) = read {
                let shown = shown(input);
                say(format_args!("warning: {shown} cannot be read a second time: {error}"));
            }
        }
        search.tell(verdict);
    }
}
