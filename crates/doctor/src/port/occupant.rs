//! The process that listens on a port: asked over HTTP, with and without TLS, and looked up among the processes.

mod unverified;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use frazil_client::Ask;
use frazil_client::blocking::Client;
use frazil_wire::{Info, Problem, printable};

/// Something that listens on this machine answers soon, or is no frazil server.
const PATIENCE: Duration = Duration::from_secs(1);
/// What the kernel calls a socket that listens.
const LISTENING: &str = "0A";

/// Who listens.
pub(crate) enum Occupant {
    /// A frazil server, and which.
    Frazil(String),
    /// Another program, or nobody knows.
    Other(String),
}

pub(crate) fn of(address: SocketAddr) -> Occupant {
    if let Some(who) = ask(address).and_then(|body| introduced(&body)) {
        return Occupant::Frazil(who);
    }
    if let Some(who) = unverified::ask(address).ok().and_then(|body| introduced(&body)) {
        return Occupant::Frazil(format!("{who}, by TLS"));
    }
    let by_tls = match speaks_tls(address) {
        true => ", which speaks TLS and may be a frazil server that wants a certificate",
        false => "",
    };
    match process(address.port()) {
        Some((id, name)) if name == "frazil" => {
            Occupant::Frazil(format!("a frazil server, process {id}"))
        }
        Some((id, name)) => Occupant::Other(format!("{}, process {id}{by_tls}", printable(&name))),
        None => Occupant::Other(format!(
            "a program that this user cannot see (as root: ss -ltnp 'sport = :{}'){by_tls}",
            address.port()
        )),
    }
}

/// Asks who somebody is, in the clear: nothing secret is sent.
fn ask(address: SocketAddr) -> Option<String> {
    let settings = frazil_client::Client::builder()
        .endpoint(format!("http://{address}"))
        .discover(false)
        .deadline(PATIENCE);
    let client = Client::build(settings).ok()?;
    let answer = client.ask(Ask::get("/v1/info").any_status()).ok()?;
    String::from_utf8(answer.body).ok()
}

/// What a frazil server says of itself.
fn introduced(body: &str) -> Option<String> {
    if let Ok(info) = serde_json::from_str::<Info>(body) {
        let Info { version, namespace, node, .. } = info;
        let (name, state) = (printable(&node.name), printable(&node.state));
        let (version, namespace) = (printable(&version), printable(&namespace));
        return Some(format!("frazil {version}, node {name}, namespace {namespace}, {state}"));
    }
    // One that wants a key says so in the words of its catalogue.
    serde_json::from_str::<Problem>(body).ok().map(|_| "a frazil server that wants a key".into())
}

/// Whether somebody shows a certificate, or refuses us in the words of TLS.
fn speaks_tls(address: SocketAddr) -> bool {
    let Err(error) = unverified::shake_hands(address) else { return true };
    let why = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(why, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_)))
}

/// The process that listens on a port, and its name, as far as this user may know.
fn process(port: u16) -> Option<(u32, String)> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, port))
        .collect();
    let mut processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse::<u32>().ok()?;
        Some((id, entry.path()))
    });
    let (id, path) = processes.find(|(_, path)| has_one_of(path, &sockets))?;
    let name = fs::read_to_string(path.join("comm")).ok()?;
    Some((id, name.trim_end().to_owned()))
}

fn has_one_of(process: &Path, sockets: &[String]) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    let mut targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
}

/// The names, as `/proc/PID/fd` shows them, of the sockets of a table that listen on a port.
fn listening(table: &str, port: u16) -> Vec<String> {
    let local_end = format!(":{port:04X}");
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.len() > 9 && row[1].ends_with(&local_end) && row[3] == LISTENING)
        .map(|row| format!("socket:[{}]", row[9]))
        .collect()
}
