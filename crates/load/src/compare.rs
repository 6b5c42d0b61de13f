//! The comparison of two measurements.

use serde::Serialize;

use crate::report::{Report, duration_text, rate_text};
use crate::unlike::Unlike;

/// Seconds that each needs before a difference can be told from chance.
const SAMPLES_MIN: usize = 4;

/// Two measurements side by side.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// What else was not the same.
    unlike: Vec<Unlike>,
    metrics: Vec<Metric>,
    /// The middle half of the rates of the single seconds.
    before_ids_per_second: Option<Quartiles>,
    after_ids_per_second: Option<Quartiles>,
    verdict: Verdict,
}

#[derive(Debug, Serialize)]
struct Metric {
    name: &'static str,
    unit: &'static str,
    before: Option<f64>,
    after: Option<f64>,
    /// The second by the first.
    ratio: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Quartiles {
    lower: f64,
    upper: f64,
}

/// What can be said of the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    TooFewSeconds,
    NoSignificantDifference,
    Faster,
    Slower,
}

/// How a number is found in a report.
type Value = fn(&Report) -> Option<f64>;

impl Comparison {
    /// Compares the second with the first.
    pub fn of(before: &Report, after: &Report) -> Self {
        let both = |value: Value| (value(before), value(after));
        let rows: [(&str, &str, Value); 11] = [
            ("IDs/s", "", |report| Some(report.results.ids_per_second)),
            ("requests/s", "", |report| Some(report.results.requests_per_second)),
            ("latency mean", "us", |report| Some(report.latency_us.as_ref()?.mean)),
            ("latency p50", "us", |report| Some(report.latency_us.as_ref()?.p50)),
            ("latency p99", "us", |report| Some(report.latency_us.as_ref()?.p99)),
            ("latency p99.9", "us", |report| Some(report.latency_us.as_ref()?.p99_9)),
            ("latency max", "us", |report| Some(report.latency_us.as_ref()?.max)),
            ("errors", "", |report| {
                #[expect(clippy::cast_precision_loss, reason = "only compared")]
                Some(report.errors.values().sum::<u64>() as f64)
            }),
            ("server cores", "cores", |report| Some(report.target.as_ref()?.cores)),
            ("server CPU a request", "us", |report| report.target.as_ref()?.cpu_us_per_request),
            ("server memory at most", "MiB", |report| {
                #[expect(clippy::cast_precision_loss, reason = "only compared")]
                Some(report.target.as_ref()?.rss_peak_bytes as f64 / f64::from(1 << 20))
            }),
        ];
        let metrics = rows.map(|(name, unit, value)| Metric::new(name, unit, both(value)));
        let (one, other) = (quartiles(before), quartiles(after));
        Self {
            unlike: Unlike::all(before, after),
            metrics: metrics.into(),
            before_ids_per_second: one,
            after_ids_per_second: other,
            verdict: Verdict::of(one, other),
        }
    }

    /// What else was not the same, in words for a terminal.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.unlike.iter().map(Unlike::line)
    }

    /// What is known of either: a name, the two numbers, and the second by the first.
    pub fn rows(&self) -> impl Iterator<Item = [String; 4]> {
        self.metrics.iter().filter(|metric| metric.is_known()).map(|metric| {
            let show =
                |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| metric.show(v));
            let ratio = metric.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            [metric.name.to_owned(), show(metric.before), show(metric.after), ratio]
        })
    }

    /// What can be said of the rates, in a sentence.
    pub const fn verdict(&self) -> &'static str {
        self.verdict.words()
    }
}

impl Metric {
    fn new(
        name: &'static str,
        unit: &'static str,
        (before, after): (Option<f64>, Option<f64>),
    ) -> Self {
        let ratio = match (before, after) {
            (Some(before), Some(after)) if before > 0.0 => Some(after / before),
            _ => None,
        };
        Self { name, unit, before, after, ratio }
    }

    const fn is_known(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }

    fn show(&self, value: f64) -> String {
        match self.unit {
            "us" => duration_text(value),
            "MiB" => format!("{value:.1} MiB"),
            "cores" => format!("{value:.2}"),
            _ => rate_text(value),
        }
    }
}

impl Verdict {
    fn of(before: Option<Quartiles>, after: Option<Quartiles>) -> Self {
        match (before, after) {
            (Some(before), Some(after)) if after.lower > before.upper => Self::Faster,
            (Some(before), Some(after)) if after.upper < before.lower => Self::Slower,
            (Some(_), Some(_)) => Self::NoSignificantDifference,
            _ => Self::TooFewSeconds,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::TooFewSeconds => {
                "too few seconds to tell a difference from chance: measure both for 4s at least"
            }
            Self::NoSignificantDifference => {
                "no significant difference: the middle halves of the rates of single seconds overlap"
            }
            Self::Faster => {
                "B is faster: the middle halves of the rates of single seconds lie apart"
            }
            Self::Slower => {
                "B is slower: the middle halves of the rates of single seconds lie apart"
            }
        }
    }
}

/// The middle half of the rates of the single seconds.
fn quartiles(report: &Report) -> Option<Quartiles> {
    let mut rates: Vec<f64> = report.samples.iter().map(|sample| sample.ids_per_second).collect();
    if rates.len() < SAMPLES_MIN {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let last = rates.len() - 1;
    // Rounded outwards: a doubt speaks against a difference.
    Some(Quartiles { lower: rates[last / 4], upper: rates[(last * 3).div_ceil(4)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quartiles(lower: f64, upper: f64) -> Option<Quartiles> {
        Some(Quartiles { lower, upper })
    }

    #[test]
    fn only_middle_halves_that_lie_apart_are_a_difference() {
        let base = quartiles(10.0, 20.0);
        assert_eq!(Verdict::of(base, quartiles(21.0, 30.0)), Verdict::Faster);
        assert_eq!(Verdict::of(base, quartiles(1.0, 9.0)), Verdict::Slower);
        for same in [quartiles(20.0, 30.0), quartiles(1.0, 10.0), quartiles(12.0, 13.0)] {
            assert_eq!(Verdict::of(base, same), Verdict::NoSignificantDifference);
        }
        assert_eq!(Verdict::of(base, None), Verdict::TooFewSeconds);
    }
}
