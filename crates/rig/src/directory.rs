//! Throw-away directories that go with the process, however it ends.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::program;

/// Waits for the end of whoever has the other end of its standard input, then removes its argument.
/// Servers that are dying at the same time may still write, so it tries more than once.
const JANITOR: &str = "cat > /dev/null
for attempt in 1 2 3 4 5; do rm -rf -- \"$1\" 2> /dev/null && exit; sleep 1; done";

/// A new directory under that of this process. It is removed on drop, and otherwise, as for a server
/// in a `static` or after a process was killed, when the process ends.
pub(crate) fn make(prefix: &str) -> io::Result<TempDir> {
    TempDir::with_prefix_in(prefix, home()?)
}

/// All directories of this process are in this one.
fn home() -> io::Result<&'static Path> {
    static HOME: OnceLock<Result<Home, (io::ErrorKind, String)>> = OnceLock::new();
    let home = HOME.get_or_init(|| open().map_err(|error| (error.kind(), error.to_string())));
    match home {
        Ok(home) => Ok(&home.path),
        Err((kind, why)) => Err(io::Error::new(*kind, why.clone())),
    }
}

struct Home {
    path: PathBuf,
    /// Closed by the kernel with the process; no child inherits it.
    _janitor: ChildStdin,
}

fn open() -> io::Result<Home> {
    let path = TempDir::with_prefix("frazil-rig-")?.keep();
    let mut janitor = Command::new(program::find("sh")?);
    janitor.args(["-c", JANITOR, "janitor"]).arg(&path);
    janitor.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // In a group of its own: what interrupts the tests must not interrupt it.
    let mut janitor = janitor.process_group(0).spawn()?;
    let stdin = janitor.stdin.take().ok_or_else(|| io::Error::other("no pipe to the janitor"))?;
    Ok(Home { path, _janitor: stdin })
}
