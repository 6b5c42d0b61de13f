//! How far long work is: on stderr, on a terminal only, and only where it does not mix with data.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar is drawn this often; more would be seen by nobody.
const REDRAW_HZ: u8 = 10;

/// A bar for `total` Ids.
pub(crate) fn ids(total: u64) -> ProgressBar {
    bar(Some(total), "{bar:40} {human_pos}/{human_len} Ids, {per_sec}, {eta} left")
}

/// A counter of Ids whose number nobody knows.
pub(crate) fn counter() -> ProgressBar {
    bar(None, "{spinner} {human_pos} Ids, {per_sec}")
}

/// A bar for a stretch of time, in milliseconds.
pub(crate) fn time(total: Duration) -> ProgressBar {
    let total_ms = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
    bar(Some(total_ms), "{bar:40} {elapsed}/{duration}  {msg}")
}

fn bar(total: Option<u64>, template: &str) -> ProgressBar {
    // Data on a terminal shows by itself how far the work is.
    let visible = io::stderr().is_terminal() && !io::stdout().is_terminal();
    let target = if visible {
        ProgressDrawTarget::stderr_with_hz(REDRAW_HZ)
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(template).expect("the templates above are valid");
    ProgressBar::with_draw_target(total, target).with_style(style)
}
