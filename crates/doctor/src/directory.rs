//! The directory of a store of files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use frazil_coord::Scheme;
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::check::apart;
use crate::finding::Finding;
use crate::node_settings::NodeSettings;

const DIRECTORY: &str = "directory";

/// Whether the directory of a store of files is ours to write, and ours alone: the check `directory`.
pub async fn directory(node: &NodeSettings) -> Vec<Finding> {
    let directory = match node.url.scheme {
        Scheme::File => Some(node.url.path.as_str()),
        Scheme::Static => node.url.option("state"),
        _ => None,
    };
    let Some(directory) = directory.map(PathBuf::from) else {
        return vec![Finding::skipped(DIRECTORY, "the store is not in files of this machine")];
    };
    let namespace = node.namespace.to_string();
    apart(DIRECTORY, move || judge_directory(&directory, &namespace)).await
}

fn judge_directory(directory: &Path, namespace: &str) -> Vec<Finding> {
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
        return vec![Finding::fail(DIRECTORY, detail, fix)];
    }
    let is_new = !directory.exists();
    if is_new {
        let detail = format!("{} is not there yet, and can be created", directory.display());
        return vec![Finding::ok(DIRECTORY, detail)];
    }
    let mut rows: Vec<Finding> =
        [directory, &whole].into_iter().filter_map(exposed_directory).collect();
    if rows.is_empty() {
        rows.push(Finding::ok(
            DIRECTORY,
            format!("{} is ours alone to write", directory.display()),
        ));
    }
    rows
}

/// What is wrong with whom a directory belongs to.
fn exposed_directory(path: &Path) -> Option<Finding> {
    let data = fs::metadata(path).ok()?;
    let (owner, us) = (data.uid(), geteuid().as_raw());
    let shown = path.display();
    if data.mode() & 0o022 != 0 {
        let detail = format!("others than its owner can write into {shown}");
        return Some(Finding::warn(DIRECTORY, detail, format!("chmod 700 {shown}")));
    }
    if owner != us {
        let detail = format!(
            "{shown} belongs to user {owner} and this is user {us}: what one writes the other may \
             not be able to read"
        );
        return Some(Finding::warn(
            DIRECTORY,
            detail,
            format!("run as user {owner}, or chown -R {us} {shown}"),
        ));
    }
    None
}
