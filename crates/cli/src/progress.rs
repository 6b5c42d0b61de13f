//! The progress of long work: on stderr, and on a terminal only.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar is drawn this often; more would be seen by nobody.
const REDRAW_HZ: u8 = 10;

/// A bar for `total` IDs that are printed meanwhile.
pub(crate) fn ids(total: u64) -> ProgressBar {
    beside_data(bar(Some(total), "{bar:40} {human_pos}/{human_len} IDs, {per_sec}, {eta} left"))
}

/// A counter of IDs that are printed meanwhile and whose number nobody knows.
pub(crate) fn counter() -> ProgressBar {
    beside_data(bar(None, "{spinner} {human_pos} IDs, {per_sec}"))
}

/// A bar for a file that is read before anything is printed; `None` if nobody knows its length.
pub(crate) fn reading(total_bytes: Option<u64>) -> ProgressBar {
    match total_bytes {
        Some(_) => bar(total_bytes, "{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left"),
        None => bar(None, "{spinner} {bytes}, {bytes_per_sec}"),
    }
}

/// A sign that something is waited for, with what it is. It is on a terminal even if data is there
/// too: whoever writes data clears it first.
pub(crate) fn waiting(what: &str) -> ProgressBar {
    let bar = bar(None, "{spinner} {msg}, {elapsed}").with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Hides a bar where data goes to a terminal: the data shows how far the work is, and would mix
/// with the bar.
fn beside_data(bar: ProgressBar) -> ProgressBar {
    if io::stdout().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// A bar for a stretch of time, in milliseconds.
pub(crate) fn time(total: Duration) -> ProgressBar {
    let total_ms = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
    bar(Some(total_ms), "{bar:40} {elapsed}/{duration}  {msg}")
}

fn bar(total: Option<u64>, template: &str) -> ProgressBar {
    // Hidden by itself where stderr is no terminal.
    let target = ProgressDrawTarget::stderr_with_hz(REDRAW_HZ);
    let style = ProgressStyle::with_template(template).expect("the templates above are valid");
    ProgressBar::with_draw_target(total, target).with_style(style)
}
