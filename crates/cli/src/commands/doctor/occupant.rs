//! Who listens on a port: asked over HTTP, with and without TLS, and looked up among the processes.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frazil_wire::{Info, Problem};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use ureq::Agent;
use ureq::tls::TlsConfig;

use crate::words::printable;

/// Something that listens on this machine answers soon, or is no frazil server.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of an answer: what a server says of itself has a few thousand.
const ANSWER_BYTES_MAX: u64 = 1 << 16;
/// What the kernel calls a socket that listens.
const LISTENING: &str = "0A";

/// Who listens.
pub(super) enum Occupant {
    /// A frazil server, and which.
    Frazil(String),
    /// Another program, or nobody knows.
    Other(String),
}

pub(super) fn of(address: SocketAddr) -> Occupant {
    let agent = agent();
    let (plain, secured) = (format!("http://{address}"), format!("https://{address}"));
    if let Some(who) = ask(&agent, &plain).ok().and_then(|body| introduced(&body)) {
        return Occupant::Frazil(who);
    }
    if let Some(who) = ask(&agent, &secured).ok().and_then(|body| introduced(&body)) {
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

/// Asks who somebody is. Nothing secret is sent and nothing depends on the answer, so that no
/// certificate is checked.
fn agent() -> Agent {
    let tls = TlsConfig::builder()
        .disable_verification(true)
        .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
        .build();
    let config = Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .tls_config(tls);
    config.build().into()
}

fn ask(agent: &Agent, base: &str) -> Result<String, ureq::Error> {
    let mut answer = agent.get(format!("{base}/v1/info")).call()?;
    answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()
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

/// Whether somebody shows a certificate, or refuses us in the words of TLS. We trust nobody, so
/// that a certificate ends it.
fn speaks_tls(address: SocketAddr) -> bool {
    let Err(error) = shake_hands(address) else { return true };
    let why = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(why, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_)))
}

fn shake_hands(address: SocketAddr) -> io::Result<()> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::from(address.ip());
    let mut tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    tls.complete_io(&mut stream).map(drop)
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
