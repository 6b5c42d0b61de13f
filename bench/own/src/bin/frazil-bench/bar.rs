//! What the design promises.

use frazil_bench::{Table, verdict};

/// A promise and what was measured.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) measured: f64,
    pub(crate) bound: Bound,
    pub(crate) unit: &'static str,
}

/// The side on which a value must stay.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn holds(self, measured: f64) -> bool {
        match self {
            Self::AtMost(most) => measured <= most,
            Self::AtLeast(least) => measured >= least,
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            Self::AtMost(most) => format!("at most {most} {unit}"),
            Self::AtLeast(least) => format!("at least {least} {unit}"),
        }
    }
}

pub(crate) fn table(bars: impl IntoIterator<Item = Bar>) -> Table {
    let mut table = Table::new(&["bar", "measured", "bar is", ""]);
    for Bar { name, measured, bound, unit } in bars {
        let holds = verdict(bound.holds(measured)).into();
        table.row([name, format!("{measured:.3} {unit}"), bound.text(unit), holds]);
    }
    table
}
