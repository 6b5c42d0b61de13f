//! The machine that measures, and the build of this command.

use std::num::NonZero;
use std::thread;

use rustix::system::uname;

/// The version, and whether it was built to be fast.
pub(super) fn build() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{} ({profile})", env!("CARGO_PKG_VERSION"))
}

/// The machine's name, what it runs, and how many cores this process may use.
pub(super) fn host() -> String {
    let system = uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let (name, kernel) = (part(system.nodename()), part(system.release()));
    let (kind, machine) = (part(system.sysname()), part(system.machine()));
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    format!("{name}, {kind} {kernel} {machine}, {cores} cores")
}
