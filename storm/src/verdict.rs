//! What a run has shown.

use std::time::Duration;

use serde::Serialize;

/// Findings that are told in full; all are counted.
const TOLD_MAX: usize = 20;
/// A bar that is missed by this factor is no noise of a busy machine: the row fails.
const FAR: f64 = 3.0;

/// A promise that was broken, with the smallest case that shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) oracle: &'static str,
    pub(crate) text: String,
}

/// Something without which a run would have shown nothing.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Guard {
    pub(crate) name: String,
    pub(crate) seen: u64,
    pub(crate) needed: u64,
}

impl Guard {
    pub(crate) fn holds(&self) -> bool {
        self.seen >= self.needed
    }
}

/// A time that was measured beside the one that the experiment allows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) measured_ms: f64,
    pub(crate) allowed_ms: f64,
}

impl Bar {
    pub(crate) fn holds(&self) -> bool {
        self.measured_ms <= self.allowed_ms
    }

    fn is_far_off(&self) -> bool {
        self.measured_ms > self.allowed_ms * FAR
    }
}

/// Everything that was found, seen and measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Verdict {
    /// How many findings there are, of which the first are listed.
    pub(crate) finding_count: u64,
    pub(crate) findings: Vec<Finding>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) bars: Vec<Bar>,
    /// Numbers without a bar.
    pub(crate) notes: Vec<(String, String)>,
}

impl Verdict {
    pub(crate) fn find(&mut self, oracle: &'static str, text: impl Into<String>) {
        self.finding_count += 1;
        if self.findings.len() < TOLD_MAX {
            self.findings.push(Finding { oracle, text: text.into() });
        }
    }

    /// A finding if something does not hold.
    pub(crate) fn hold(
        &mut self,
        oracle: &'static str,
        holds: bool,
        text: impl FnOnce() -> String,
    ) {
        if !holds {
            self.find(oracle, text());
        }
    }

    /// The run counts only if this was seen so often.
    pub(crate) fn guard(&mut self, name: impl Into<String>, seen: u64, needed: u64) {
        self.guards.push(Guard { name: name.into(), seen, needed });
    }

    /// A time beside the one that is allowed.
    pub(crate) fn bar(&mut self, name: impl Into<String>, measured: Duration, allowed: Duration) {
        let bar = Bar {
            name: name.into(),
            measured_ms: measured.as_secs_f64() * 1e3,
            allowed_ms: allowed.as_secs_f64() * 1e3,
        };
        if bar.is_far_off() {
            let Bar { name, measured_ms, allowed_ms } = &bar;
            self.find(
                "time",
                format!("{name}: {measured_ms:.0} ms, {allowed_ms:.0} ms are allowed"),
            );
        }
        self.bars.push(bar);
    }

    pub(crate) fn note(&mut self, name: impl Into<String>, value: impl ToString) {
        self.notes.push((name.into(), value.to_string()));
    }

    /// Takes over what another one has.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.finding_count += other.finding_count;
        self.findings.extend(other.findings);
        self.findings.truncate(TOLD_MAX);
        self.guards.extend(other.guards);
        self.bars.extend(other.bars);
        self.notes.extend(other.notes);
    }

    /// Nothing was found, and the run was worth something.
    pub(crate) fn passes(&self) -> bool {
        self.finding_count == 0 && self.guards.iter().all(Guard::holds)
    }
}
