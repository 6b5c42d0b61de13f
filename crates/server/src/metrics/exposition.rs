//! The two text formats of metrics.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposition {
    /// Prometheus text 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Exposition {
    /// What a scraper prefers.
    pub(crate) fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Text }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    pub(super) fn write(self, registry: &Registry) -> String {
        let mut page = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut page, registry);
        match self {
            Self::OpenMetrics => page,
            Self::Text => page.lines().filter_map(to_text).fold(String::new(), |mut text, line| {
                text.push_str(&line);
                text.push('\n');
                text
            }),
        }
    }
}

/// A line of OpenMetrics as 0.0.4 wants it. There a counter's family has the name of its samples,
/// and an info is a gauge.
fn to_text(line: &str) -> Option<String> {
    let mut words = line.splitn(4, ' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some("#"), Some("EOF" | "UNIT"), ..) => None,
        (Some("#"), Some("TYPE"), Some(name), Some("counter")) => {
            Some(format!("# TYPE {name}_total counter"))
        }
        (Some("#"), Some("TYPE"), Some(name), Some("info")) => {
            Some(format!("# TYPE {name}_info gauge"))
        }
        _ => Some(line.to_owned()),
    }
}
