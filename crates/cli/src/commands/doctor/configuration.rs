//! The configuration as a server would take it: its problems, and whether its durations and its layout
//! suit.

use frazil::coord::rules::REQUEST_MAX;
use frazil::coord::time::unix_ms;
use frazil::coord::{Namespace, StoreUrl, Timing, TimingError, UnixMs};
use frazil::{Node, StartError, fixed_timing, fixed_worker};
use frazil_id::Layout;

use super::report::Row;
use crate::args::ServeArgs;
use crate::config::{Problem, Wrong, named_file, store_url, timing};
use crate::words::{instant, printable, span};

const CONFIGURATION: &str = "configuration";

/// What was found in it. The library knows best how to repair durations that clash.
pub(super) fn rows(
    flags: &ServeArgs,
    problems: &[Problem],
    clash: Option<&StartError>,
) -> Vec<Row> {
    if problems.is_empty() {
        return vec![Row::ok(CONFIGURATION, source(flags))];
    }
    let row =
        |problem: &Problem| Row::fail(CONFIGURATION, problem.to_string(), fix_of(problem, clash));
    problems.iter().map(row).collect()
}

/// What kept it from being read at all.
pub(super) fn unreadable(wrong: &Wrong) -> Vec<Row> {
    let fix = "name a file that this user can read: --config FILE";
    wrong.lines().into_iter().map(|line| Row::fail(CONFIGURATION, line, fix)).collect()
}

fn source(flags: &ServeArgs) -> String {
    match named_file(flags) {
        Some(file) => {
            let file = printable(&file.display().to_string());
            format!("{file} was read; with the environment and the flags it makes sense")
        }
        None => "no file is named; the environment and the flags make sense".to_owned(),
    }
}

fn fix_of(problem: &Problem, clash: Option<&StartError>) -> String {
    let culprit = problem.culprit();
    match clash.filter(|clash| problem.says(&clash.to_string())).map(flag_for) {
        Some(fix) if culprit.starts_with("--") => fix,
        Some(fix) => format!("{fix}; or the same in {culprit}"),
        None => format!("correct {culprit}; frazil config example explains every key"),
    }
}

/// A node as it would be started.
pub(super) struct Case {
    pub(super) url: StoreUrl,
    pub(super) namespace: Namespace,
    pub(super) layout: Layout,
    /// As asked for.
    pub(super) timing: Timing,
    pub(super) workers: Option<(u32, u32)>,
    /// The flags that lead another command to the same namespace.
    pub(super) flags: String,
}

impl Case {
    /// What the settings say, or what is wrong with the store's URL.
    pub(super) fn of(args: &ServeArgs) -> Result<Self, String> {
        let url = store_url(args)?;
        Ok(Self {
            flags: flags(args, &url),
            url,
            namespace: args.place.namespace.clone(),
            layout: args.layout.layout,
            timing: timing(args),
            workers: args.workers.workers,
        })
    }

    /// The durations that leases will have.
    pub(super) fn effective_timing(&self) -> Timing {
        match fixed_worker(&self.url) {
            Some(_) => fixed_timing(&self.layout),
            None => self.timing,
        }
    }

    /// A command on the same namespace.
    pub(super) fn command(&self, command: &str) -> String {
        format!("frazil {command}{}", self.flags)
    }
}

fn flags(args: &ServeArgs, url: &StoreUrl) -> String {
    let mut flags = String::new();
    let is_named = args.place.store.is_some() || args.worker.is_some();
    // A URL with a login is not printed as it is, so a copy of it would not work.
    if is_named && url.user.is_none() && url.password.is_none() {
        let text = url.to_string();
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "+:/.,-_[]%=".contains(c));
        flags += &if is_plain { format!(" --store {text}") } else { format!(" --store '{text}'") };
    }
    if args.place.namespace != Namespace::default() {
        flags += &format!(" --namespace {}", args.place.namespace);
    }
    flags
}

const TIMING: &str = "timing";

/// The first relation that does not hold.
pub(super) fn clash(case: &Case) -> Option<StartError> {
    let mut node = Node::builder()
        .store_url(case.url.clone())
        .namespace(case.namespace.clone())
        .layout(case.layout)
        .timing(case.timing);
    if let Some((first, last)) = case.workers {
        node = node.workers(first..=last);
    }
    node.check().err()
}

/// What there is to say about it, unless the configuration's problems say it.
pub(super) fn timing_row(case: &Case, clash: Option<&StartError>, problems: &[Problem]) -> Row {
    let Some(clash) = clash else { return Row::ok(TIMING, described(case)) };
    let what = clash.to_string();
    match problems.iter().any(|problem| problem.says(&what)) {
        true => Row::skipped(TIMING, "see configuration"),
        false => Row::fail(TIMING, what, flag_for(clash)),
    }
}

fn described(case: &Case) -> String {
    let Timing { ttl, heartbeat, outage_budget } = case.effective_timing();
    let of = if fixed_worker(&case.url).is_some() { "of a fixed worker: " } else { "" };
    let request = match case.url.hosts.is_empty() {
        true => String::new(),
        false => {
            format!(", {} for a request", span(case.url.timeout().min(ttl / 4).min(REQUEST_MAX)))
        }
    };
    format!(
        "{of}TTL {}, heartbeat {}, outage budget {}{request}",
        span(ttl),
        span(heartbeat),
        span(outage_budget)
    )
}

/// The flag that makes it right.
pub(super) fn flag_for(error: &StartError) -> String {
    match error {
        StartError::Timing(TimingError::HeartbeatTooLong(timing)) => {
            format!("--heartbeat {}, or --ttl {}", span(timing.ttl / 3), span(timing.heartbeat * 3))
        }
        StartError::Timing(TimingError::TooShort(_)) => "--ttl 30s --heartbeat 10s".into(),
        StartError::Timing(TimingError::BudgetTooShort(timing)) => {
            format!("--outage-budget {}", span(timing.ttl * 3))
        }
        StartError::Timing(TimingError::BudgetTooLong(_)) => "--outage-budget 1h --ttl 30s".into(),
        // With no TTL may it be longer.
        StartError::Timeout { timeout, most } if *timeout > REQUEST_MAX => {
            format!("?timeout={} in the URL", span(*most))
        }
        StartError::Timeout { timeout, most } => {
            format!("?timeout={} in the URL, or --ttl {}", span(*most), span(*timeout * 4))
        }
        StartError::Workers { last, .. } => format!("--workers 0-{last}"),
        _ => "correct that flag: frazil serve --help".into(),
    }
}

const LIFETIME: &str = "lifetime";
const DAYS_PER_YEAR: u64 = 365;
/// Moving to another layout takes planning: this much of it should be left.
const DAYS_MIN: u64 = 2 * DAYS_PER_YEAR;

pub(super) fn lifetime_row(layout: &Layout) -> Row {
    judge_lifetime(layout, unix_ms())
}

fn judge_lifetime(layout: &Layout, now: UnixMs) -> Row {
    const ANOTHER: &str = "plan a move to a layout with more bits for the time and all else as it is: \
                           with a later epoch or fewer bits after the time, IDs come again";
    let (first, last) = (layout.epoch_ms(), layout.last_instant_ms());
    if now < first {
        let detail = format!(
            "the layout begins at {}, and the clock shows {}",
            instant(first),
            instant(now)
        );
        return Row::fail(
            LIFETIME,
            detail,
            "set the clock right, or use a layout that began before",
        );
    }
    if now > last {
        return Row::fail(LIFETIME, format!("the layout ended at {}", instant(last)), ANOTHER);
    }
    let days = layout.days_left(now);
    let detail =
        format!("IDs last until {}, {} years from now", instant(last), days / DAYS_PER_YEAR);
    match days {
        ..DAYS_MIN => {
            let detail = format!("IDs last until {} only, {days} days from now", instant(last));
            Row::warn(LIFETIME, detail, ANOTHER)
        }
        _ => Row::ok(LIFETIME, detail),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    #[test]
    fn a_layout_is_well_between_its_epoch_and_two_years_before_its_end() {
        let layout = Layout::FRAZIL;
        let (first, last) = (layout.epoch_ms(), layout.last_instant_ms());
        let year = DAYS_PER_YEAR * 86_400_000;
        for (now, status) in [
            (first - 1, Status::Fail),
            (first, Status::Ok),
            (last - 3 * year, Status::Ok),
            (last - year, Status::Warn),
            (last, Status::Warn),
            (last + 1, Status::Fail),
        ] {
            assert_eq!(judge_lifetime(&layout, now).status(), status, "{now}");
        }
    }
}
