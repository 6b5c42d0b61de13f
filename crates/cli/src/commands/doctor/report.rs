//! The findings, printed as they are found.

use std::future::Future;
use std::time::Duration;

use frazil_doctor::{Finding, Status, within_limit};
use tokio::time::timeout;

use crate::output::{Data, Exit, Failure, say};
use crate::progress;
use crate::words::count;

/// A check that takes longer than this makes a user wonder whether anything happens.
const QUIET: Duration = Duration::from_secs(1);

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
        check: impl Future<Output = Vec<Finding>>,
    ) -> Result<(), Failure> {
        // Boxed: what stores do is nested more deeply than the compiler follows.
        let findings = within_limit(name, with_sign(name, Box::pin(check))).await;
        self.add(findings)
    }

    /// Prints what was found.
    pub(super) fn add(&mut self, findings: Vec<Finding>) -> Result<(), Failure> {
        for finding in findings {
            if self.is_json {
                self.data.json(&finding)?;
            } else {
                self.data.text(text(&finding))?;
            }
            self.statuses.push((finding.check, finding.status));
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

fn text(finding: &Finding) -> String {
    let (word, gap) = match finding.status {
        Status::Ok => ("ok", ""),
        Status::Warn => ("warn", ""),
        Status::Fail => ("fail", ""),
        Status::Skipped => ("", "skipped: "),
    };
    let line = format!("{word:<4}  {:<13}  {gap}{}", finding.check, finding.detail);
    match &finding.fix {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_has_a_line_of_its_own_and_a_skipped_check_no_word() {
        let warned = text(&Finding::warn("clock", "not synchronised", "start chrony"));
        assert_eq!(
            warned,
            "warn  clock          not synchronised\n                     fix: start chrony"
        );
        assert_eq!(text(&Finding::ok("pool", "8 free")), "ok    pool           8 free");
        assert_eq!(text(&Finding::skipped("pool", "no")), "      pool           skipped: no");
    }
}
