//! Installed programs: where they are, and how they are run.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where `name` is installed.
pub(crate) fn find(name: &str) -> io::Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| missing(name))
}

/// The error for a program or a file that a Debian package should have brought.
pub(crate) fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{name} is not installed: run make deps"))
}

/// Runs `command` to its end and returns what it printed.
///
/// # Errors
///
/// If it can not be run or does not succeed; then with all that it printed.
pub(crate) fn run(command: &mut Command) -> io::Result<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let line = arguments.join(" ");
    Err(io::Error::other(format!("{name} {line}: {}: {stdout}{stderr}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_says_how_to_get_it() {
        let error = find("no-such-program").unwrap_err();
        assert_eq!(error.to_string(), "no-such-program is not installed: run make deps");
    }

    #[test]
    fn a_failed_run_tells_what_it_printed() {
        let error = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().contains("why"), "{error}");
    }
}
