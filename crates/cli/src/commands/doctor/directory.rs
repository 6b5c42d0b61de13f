//! Is the directory of a file store ours to write, and nobody else's?

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use frazil::coord::Scheme;
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::case::Case;
use super::report::{Row, aside};

const CHECK: &str = "directory";

pub(super) async fn look(case: &Case) -> Vec<Row> {
    let directory = match case.url.scheme {
        Scheme::File => Some(case.url.path.as_str()),
        Scheme::Static => case.url.option("state"),
        _ => None,
    };
    let Some(directory) = directory.map(PathBuf::from) else {
        return vec![Row::skipped(CHECK, "the store is not in files of this machine")];
    };
    let namespace = case.namespace.to_string();
    aside(CHECK, move || judge(&directory, &namespace)).await
}

fn judge(directory: &Path, namespace: &str) -> Vec<Row> {
    // What is there of the way to the namespace's own directory.
    let whole = directory.join(namespace);
    let there = whole.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    if let Err(error) = access(there, rights) {
        let fix = format!(
            "run as its owner, chown it, or name another directory with --store file:DIRECTORY; \
             ls -ld {} shows whose it is",
            there.display()
        );
        let detail = format!("{} cannot be written by this user: {error}", there.display());
        return vec![Row::fail(CHECK, detail, fix)];
    }
    let is_new = !directory.exists();
    if is_new {
        let detail = format!("{} is not there yet, and can be created", directory.display());
        return vec![Row::ok(CHECK, detail)];
    }
    let mut rows: Vec<Row> = [directory, &whole].into_iter().filter_map(exposed).collect();
    if rows.is_empty() {
        rows.push(Row::ok(CHECK, format!("{} is ours alone to write", directory.display())));
    }
    rows
}

/// What is wrong with whom a directory belongs to.
fn exposed(path: &Path) -> Option<Row> {
    let data = fs::metadata(path).ok()?;
    let (owner, us) = (data.uid(), geteuid().as_raw());
    let shown = path.display();
    if data.mode() & 0o022 != 0 {
        let detail = format!("others than its owner can write into {shown}");
        return Some(Row::warn(CHECK, detail, format!("chmod 700 {shown}")));
    }
    if owner != us {
        let detail = format!(
            "{shown} belongs to user {owner} and this is user {us}: what one writes the other may \
             not be able to read"
        );
        return Some(Row::warn(
            CHECK,
            detail,
            format!("run as user {owner}, or chown -R {us} {shown}"),
        ));
    }
    None
}
