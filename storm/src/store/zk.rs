//! ZooKeeper by its own tool.

use std::io;
use std::process::Command;

/// Deletes everything but ZooKeeper's own nodes, with ZooKeeper's own tool.
pub(super) fn delete_all(address: &str) -> io::Result<()> {
    let listed = cli(address, &["ls", "/"])?;
    let names = listed.lines().rev().find_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let names = names.ok_or_else(|| io::Error::other(format!("zkCli.sh said {listed}")))?;
    for name in names.split(", ").filter(|name| !name.is_empty() && *name != "zookeeper") {
        cli(address, &["deleteall", &format!("/{name}")])?;
    }
    Ok(())
}

pub(super) fn cli(address: &str, arguments: &[&str]) -> io::Result<String> {
    let tool = "/usr/share/zookeeper/bin/zkCli.sh";
    let output = Command::new(tool).args(["-server", address]).args(arguments).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
