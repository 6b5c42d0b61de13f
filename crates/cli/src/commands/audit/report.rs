//! The verdict for people and for programs.

use std::fmt::Display;

use frazil_audit::reader::Input;
use frazil_audit::{Break, Duplicate, Place, SourceVerdict, Verdict};
use frazil_id::{Format, Id};

use super::shown;
use crate::output::{Data, Exit, Failure};
use crate::words::{self, instant};

/// Workers that are named for people; programs get all.
const WORKERS_SHOWN: usize = 8;

/// All that is told.
pub(super) struct Report<'a> {
    pub(super) verdict: &'a Verdict,
    pub(super) inputs: &'a [Input],
    pub(super) format: Format,
    /// Whether a break of the order is a finding.
    pub(super) ordered: bool,
    /// Lines that were no IDs.
    pub(super) malformed: u64,
    /// Files that could not be read, or not to their end.
    pub(super) unreadable: u64,
}

impl Report<'_> {
    /// How the command ends. What is certain counts before what is missing.
    pub(super) fn exit(&self) -> Option<Exit> {
        match () {
            () if self.has_findings() => Some(Exit::No),
            () if self.unreadable > 0 => Some(Exit::Unavailable),
            () if self.malformed > 0 => Some(Exit::Usage),
            () => None,
        }
    }

    fn has_findings(&self) -> bool {
        !self.verdict.is_clean() || self.ordered && self.verdict.order_breaks() > 0
    }

    /// The word for the exit code.
    pub(super) fn outcome(&self) -> &'static str {
        match self.exit() {
            None => "clean",
            Some(Exit::No) => "findings",
            Some(_) => "incomplete",
        }
    }

    pub(super) fn text(&self, data: &mut Data) -> Result<(), Failure> {
        let verdict = self.verdict;
        for duplicate in &verdict.first_duplicates {
            data.text(self.duplicate(duplicate))?;
        }
        tell_more(data, verdict.duplicates, verdict.first_duplicates.len(), "duplicate")?;
        for outside in &verdict.first_outside {
            data.text(format_args!("outside: {}: {}", self.place(outside.place), outside.why))?;
        }
        tell_more(data, verdict.outside, verdict.first_outside.len(), "outside")?;
        for (source, input) in verdict.sources.iter().zip(self.inputs) {
            if let Some(first) = source.order.first_break() {
                data.text(self.order_break(source, input, first))?;
            }
        }
        self.summary(data)
    }

    fn duplicate(&self, found: &Duplicate) -> String {
        let (id, again) = (found.id.text(self.format), self.place(found.again));
        match found.first {
            Some(first) => format!("duplicate: {again}: ID {id} was in {}", self.place(first)),
            None => {
                let why = match self.inputs[..=found.again.source].iter().all(Input::is_rereadable)
                {
                    true => "in a file that has changed since",
                    false => "in what cannot be read twice",
                };
                format!("duplicate: {again}: ID {id} was there before, {why}")
            }
        }
    }

    fn order_break(&self, source: &SourceVerdict, input: &Input, first: Break) -> String {
        let name = shown(input);
        let breaks = words::count(source.order.breaks(), "time");
        let [before, after] = [first.before, first.after];
        format!(
            "order: {name}:{}: ID {} is not above {} of {name}:{}; {breaks} in this file",
            after.at,
            after.id.text(self.format),
            before.id.text(self.format),
            before.at
        )
    }

    fn summary(&self, data: &mut Data) -> Result<(), Failure> {
        let verdict = self.verdict;
        let mut line =
            |name: &str, value: &dyn Display| data.text(format_args!("{name:<11}{value}"));
        let files = words::count(verdict.sources.len(), "file");
        line("checked", &format_args!("{} in {files}", words::count(verdict.checked, "ID")))?;
        line("distinct", &verdict.distinct)?;
        line("duplicates", &verdict.duplicates)?;
        line("outside", &verdict.outside)?;
        line(
            "order",
            &match verdict.order_breaks() {
                _ if verdict.checked == 0 => "nothing was checked".to_owned(),
                0 => "each file ascends".to_owned(),
                breaks => words::count(breaks, "break"),
            },
        )?;
        if self.malformed > 0 {
            line("malformed", &words::count(self.malformed, "line"))?;
        }
        if let Some((first, last)) = verdict.ends {
            line("first", &self.time(first))?;
            line("last", &self.time(last))?;
            line("workers", &self.workers())?;
        }
        if let Some(busiest) = verdict.census.busiest {
            let time = instant(verdict.layout.unix_ms(busiest.tick));
            let ids = words::count(busiest.ids, "ID");
            line("fullest", &format_args!("{ids} of worker {} at {time}", busiest.worker))?;
        }
        line("memory", &words::count(verdict.memory_bytes, "byte"))?;
        line("verdict", &self.outcome())
    }

    fn workers(&self) -> String {
        let census = &self.verdict.census;
        let mut by_count: Vec<_> = census.by_worker.iter().collect();
        by_count.sort_by_key(|worker| (std::cmp::Reverse(worker.ids), worker.worker));
        let shown = by_count.iter().take(WORKERS_SHOWN);
        let mut shown: Vec<String> =
            shown.map(|worker| format!("{} ({})", worker.worker, worker.ids)).collect();
        if census.workers > WORKERS_SHOWN as u64 {
            shown.push("...".to_owned());
        }
        format!("{}: {}", census.workers, shown.join(", "))
    }

    pub(super) fn time(&self, id: Id) -> String {
        let layout = &self.verdict.layout;
        id.parts(layout)
            .map_or_else(|why| why.to_string(), |parts| instant(layout.unix_ms(parts.tick)))
    }

    fn place(&self, place: Place) -> String {
        let name = self.inputs.get(place.source).map_or_else(String::new, shown);
        format!("{name}:{}", place.at)
    }
}

/// The findings that are not told one by one.
fn tell_more(data: &mut Data, all: u64, told: usize, kind: &str) -> Result<(), Failure> {
    match all.saturating_sub(told as u64) {
        0 => Ok(()),
        more => data.text(format_args!("{kind}: {more} more")),
    }
}
