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
            Self::Text => to_text(&page),
        }
    }
}

/// OpenMetrics as 0.0.4 wants it. There a counter's family has the name of its samples, an info is
/// a gauge, and neither units nor the end are told.
fn to_text(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let mut words = line.splitn(4, ' ');
        let words = (words.next(), words.next(), words.next(), words.next());
        let (Some("#"), Some(what), Some(name), Some(rest)) = words else {
            if line != "# EOF" {
                text.extend([line, "\n"]);
            }
            continue;
        };
        // The type follows the help.
        let kind = match what {
            "HELP" => lines.peek().and_then(|next| next.rsplit(' ').next()).unwrap_or_default(),
            "TYPE" => rest,
            _ => continue,
        };
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let rest = if rest == "info" { "gauge" } else { rest };
        text.extend(["# ", what, " ", name, suffix, " ", rest, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_the_names_of_their_samples() {
        let page = "# HELP a_b Things.\n# TYPE a_b counter\na_b_total 7\n\
                    # HELP v The version.\n# TYPE v info\nv_info{v=\"1\"} 1\n\
                    # HELP s_seconds Time.\n# TYPE s_seconds gauge\n# UNIT s_seconds seconds\n\
                    s_seconds 1.5\n# EOF\n";
        let text = "# HELP a_b_total Things.\n# TYPE a_b_total counter\na_b_total 7\n\
                    # HELP v_info The version.\n# TYPE v_info gauge\nv_info{v=\"1\"} 1\n\
                    # HELP s_seconds Time.\n# TYPE s_seconds gauge\ns_seconds 1.5\n";
        assert_eq!(to_text(page), text);
    }
}
