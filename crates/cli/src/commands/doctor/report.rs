//! The findings, printed as they are found.

use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::output::{Data, Exit, Failure, say};
use crate::progress;
use crate::words::count;

/// No check takes longer: what has not answered by then hangs. More than the time-out of a store by
/// default.
const CHECK_MAX: Duration = Duration::from_secs(15);
/// A check that takes longer than this makes a user wonder whether anything happens.
const QUIET: Duration = Duration::from_secs(1);

/// How a check ended. The words are a contract of `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    Warn,
    Fail,
    Skipped,
}

/// One thing that a check found.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    check: &'static str,
    status: Status,
    detail: String,
    /// What repairs it, where something is to be repaired.
    fix: Option<String>,
}

impl Row {
    pub(super) fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, detail: detail.into(), fix: None }
    }

    pub(super) fn warn(
        check: &'static str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { check, status: Status::Warn, detail: detail.into(), fix: named(fix.into()) }
    }

    pub(super) fn fail(
        check: &'static str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { check, status: Status::Fail, detail: detail.into(), fix: named(fix.into()) }
    }

    /// For what was not looked at, and why.
    pub(super) fn skipped(check: &'static str, why: impl Into<String>) -> Self {
        Self { check, status: Status::Skipped, detail: why.into(), fix: None }
    }
}

/// A fix, unless it is empty: then the detail says it.
fn named(fix: String) -> Option<String> {
    (!fix.is_empty()).then_some(fix)
}

#[cfg(test)]
impl Row {
    pub(super) fn status(&self) -> Status {
        self.status
    }
}

/// Everything found so far.
pub(super) struct Report {
    is_json: bool,
    data: Data,
    statuses: Vec<(&'static str, Status)>,
}

impl Report {
    pub(super) fn new(is_json: bool) -> Self {
        Self { is_json, data: Data::new(), statuses: Vec::new() }
    }

    /// Makes a check, within the time that it may take, and prints what it found.
    pub(super) async fn check(
        &mut self,
        name: &'static str,
        check: impl Future<Output = Vec<Row>>,
    ) -> Result<(), Failure> {
        let rows = match timeout(CHECK_MAX, with_sign(name, check)).await {
            Ok(rows) => rows,
            Err(_) => vec![Row::fail(
                name,
                format!("no result within {} s", CHECK_MAX.as_secs()),
                "something hangs: look at the network and the disk that are involved",
            )],
        };
        self.add(rows)
    }

    /// Prints what was found.
    pub(super) fn add(&mut self, rows: Vec<Row>) -> Result<(), Failure> {
        for row in rows {
            if self.is_json {
                self.data.json(&row)?;
            } else {
                self.data.text(text(&row))?;
            }
            self.statuses.push((row.check, row.status));
        }
        self.data.flush()
    }

    /// Whether a check has found something already.
    pub(super) fn has(&self, check: &str) -> bool {
        self.statuses.iter().any(|(known, _)| *known == check)
    }

    /// Sums up, on stderr, and answers "no" if a check failed.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.data.flush()?;
        let of = |wanted| self.statuses.iter().filter(|(_, status)| *status == wanted).count();
        let (failures, warnings) = (of(Status::Fail), of(Status::Warn));
        say(format_args!("{}, {}", count(failures, "failure"), count(warnings, "warning")));
        match failures {
            0 => Ok(()),
            _ => Err(Failure::Reported(Exit::No)),
        }
    }
}

fn text(row: &Row) -> String {
    let (word, gap) = match row.status {
        Status::Ok => ("ok", ""),
        Status::Warn => ("warn", ""),
        Status::Fail => ("fail", ""),
        Status::Skipped => ("", "skipped: "),
    };
    let line = format!("{word:<4}  {:<13}  {gap}{}", row.check, row.detail);
    match &row.fix {
        Some(fix) => format!("{line}\n{:<21}fix: {fix}", ""),
        None => line,
    }
}

/// Shows on a terminal what is waited for, if that takes a while.
async fn with_sign<T>(name: &str, check: impl Future<Output = T>) -> T {
    tokio::pin!(check);
    if let Ok(done) = timeout(QUIET, &mut check).await {
        return done;
    }
    // Cleared when it is dropped too.
    let sign = progress::waiting(name);
    let done = check.await;
    sign.finish_and_clear();
    done
}

/// Looks at something that may block, apart from what waits for it.
pub(super) async fn aside(
    check: &'static str,
    look: impl FnOnce() -> Vec<Row> + Send + 'static,
) -> Vec<Row> {
    let looked = tokio::task::spawn_blocking(look).await;
    looked.unwrap_or_else(|error| {
        vec![Row::fail(check, format!("the check itself failed: {error}"), "report this")]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_has_a_line_of_its_own_and_a_skipped_check_no_word() {
        let warned = text(&Row::warn("clock", "not synchronised", "start chrony"));
        assert_eq!(
            warned,
            "warn  clock          not synchronised\n                     fix: start chrony"
        );
        assert_eq!(text(&Row::ok("pool", "8 free")), "ok    pool           8 free");
        assert_eq!(text(&Row::skipped("pool", "no")), "      pool           skipped: no");
    }
}
