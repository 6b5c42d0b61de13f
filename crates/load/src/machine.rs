//! The machine that measures, and the build of this command.

use rustix::system::uname;

use crate::plan::cores;

/// The version, and whether it was built to be fast.
pub(crate) fn build() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{} ({profile})", env!("CARGO_PKG_VERSION"))
}

/// The machine's name, what it runs, and how many cores this process may use.
pub(crate) fn host() -> String {
    let system = uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let (name, kernel) = (part(system.nodename()), part(system.release()));
    let (kind, machine) = (part(system.sysname()), part(system.machine()));
    format!("{name}, {kind} {kernel} {machine}, {} cores", cores())
}
