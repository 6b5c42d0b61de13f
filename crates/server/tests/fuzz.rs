//! Bytes that no client would send, to a real listener: a connection may be closed, but nothing
//! panics, nobody is kept waiting, and the next client is served.
//! `FUZZ_CASES=100000 cargo test -p frazil-server --test fuzz` tries more of them.

mod site;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use frazil_rig::Corpus;
use site::Site;
use tokio::runtime::Runtime;

/// A few seconds.
const USUAL: u32 = 800;
/// A server that says nothing for so long keeps its client waiting.
const LIMIT: Duration = Duration::from_secs(20);

/// Panics of any thread, so one test runs at a time.
static PANICS: AtomicUsize = AtomicUsize::new(0);
static ALONE: Mutex<()> = Mutex::new(());
static HOOKED: Once = Once::new();

fn alone() -> MutexGuard<'static, ()> {
    HOOKED.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            hook(panic);
        }));
    });
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file of keys that is read has nothing that could be refused later.
#[test]
fn a_file_of_keys_is_read_or_refused() {
    let checked = corpus("keys").check(USUAL, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        match frazil_server::keys::parse(&text) {
            Ok(entries) => entries.iter().for_each(|entry| assert_eq!(entry.check(), Ok(()))),
            Err(error) => assert!(error.problems.iter().all(|problem| {
                problem.split(':').next().is_some_and(|line| line.parse::<usize>().is_ok())
            })),
        }
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

fn corpus(name: &str) -> Corpus {
    let corpora = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    Corpus::read(format!("{corpora}/{name}")).unwrap()
}

fn start() -> (Runtime, Site) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let site = runtime.block_on(Site::start_with(|config| config.scopes = vec!["orders".into()]));
    (runtime, site)
}

/// Who closes a connection first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closes {
    /// The client, when it has said all.
    Client,
    /// The server, because it is asked to.
    Server,
}

/// What a server says to these bytes until it closes.
fn exchange(address: SocketAddr, bytes: &[u8], closes: Closes) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    // It may be closed before all is written: what came too early is not read.
    let _ = stream.write_all(bytes);
    if closes == Closes::Client {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut said = Vec::new();
    if let Err(error) = stream.read_to_end(&mut said) {
        let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!is_late, "it neither answers nor closes, after {}", said.escape_ascii());
    }
    said
}

/// A client that is in order, and how its answer begins.
struct Healthy {
    ask: &'static [u8],
    answer: &'static [u8],
    closes: Closes,
}

const PING: Healthy = Healthy { ask: b"PING\r\n", answer: b"+PONG\r\n", closes: Closes::Client };
const LIVEZ: Healthy = Healthy {
    ask: b"GET /livez HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
    answer: b"HTTP/1.1 200",
    closes: Closes::Server,
};

/// Sends the bytes, and looks whether the server is what it was.
fn survives(address: SocketAddr, healthy: &Healthy, bytes: &[u8]) {
    let before = PANICS.load(Ordering::SeqCst);
    exchange(address, bytes, Closes::Client);
    let said = exchange(address, healthy.ask, healthy.closes);
    assert!(
        said.starts_with(healthy.answer),
        "a healthy client hears {:?}",
        said.escape_ascii().to_string()
    );
    assert_eq!(PANICS.load(Ordering::SeqCst), before, "a thread panicked");
}

#[test]
fn the_resp_listener_survives_any_bytes() {
    let _alone = alone();
    let (runtime, site) = start();
    let address = site.addrs.resp.unwrap();
    let checked = corpus("resp").check(USUAL, |bytes| survives(address, &PING, bytes));
    checked.unwrap_or_else(|broken| panic!("{broken}"));
    runtime.block_on(site.stop()).unwrap();
}

#[test]
fn the_http_listener_survives_any_bytes() {
    let _alone = alone();
    let (runtime, site) = start();
    let checked = corpus("http").check(USUAL, |bytes| survives(site.http(), &LIVEZ, bytes));
    checked.unwrap_or_else(|broken| panic!("{broken}"));
    runtime.block_on(site.stop()).unwrap();
}

/// What proxies send before their clients' own bytes, to a server that trusts them.
#[test]
fn listeners_survive_any_bytes_of_a_trusted_proxy() {
    let _alone = alone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let trusting = |config: &mut frazil_server::Config| {
        config.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    };
    let site = runtime.block_on(Site::start_with(trusting));
    let resp = site.addrs.resp.unwrap();
    let checked = corpus("proxy").check(USUAL / 2, |bytes| {
        survives(resp, &PING, bytes);
        survives(site.http(), &LIVEZ, bytes);
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
    runtime.block_on(site.stop()).unwrap();
}

/// The first line of a seed is a method and a path, the rest is a body: these always arrive, and
/// what they ask is granted or refused.
#[test]
fn http_parameters_and_bodies_are_granted_or_refused() {
    let _alone = alone();
    let (runtime, site) = start();
    let checked = corpus("http_request").check(USUAL, |bytes| {
        let before = PANICS.load(Ordering::SeqCst);
        let said = exchange(site.http(), &well_formed(bytes), Closes::Server);
        let text = String::from_utf8_lossy(&said);
        let status: u16 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        assert!((200..=504).contains(&status) && status != 500, "{text}");
        let is_problem = text.contains("content-type: application/problem+json");
        assert_eq!(is_problem, status >= 400, "{text}");
        assert_eq!(PANICS.load(Ordering::SeqCst), before, "a thread panicked");
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
    runtime.block_on(site.stop()).unwrap();
}

fn well_formed(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (line, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let space = line.iter().position(|byte| *byte == b' ').unwrap_or(0);
    let method = if line.starts_with(b"GET") { "GET" } else { "POST" };
    let path = line[space..].trim_ascii_start();
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let mut request = format!("{method} /").into_bytes();
    for byte in path {
        match byte {
            b'!'..=b'~' if !b"\"#<>\\^`{|}".contains(byte) => request.push(*byte),
            _ => request.extend(format!("%{byte:02X}").into_bytes()),
        }
    }
    let length = body.len();
    request.extend_from_slice(b" HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n");
    request.extend(format!("content-length: {length}\r\nconnection: close\r\n\r\n").into_bytes());
    request.extend_from_slice(body);
    request
}

/// A server as it must not be: its connections panic on a command that they do not know.
#[test]
fn a_server_that_panics_is_caught_although_it_answers_the_next_client() {
    let _alone = alone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let connection = std::thread::spawn(move || {
                let mut asked = Vec::new();
                stream.read_to_end(&mut asked).unwrap();
                assert!(!asked.starts_with(b"*"), "no arrays");
                stream.write_all(b"+PONG\r\n").unwrap();
            });
            // As a runtime does: the panic of a connection is its own.
            let _ = connection.join();
        }
    });
    let broken = corpus("resp").check(USUAL, |bytes| survives(address, &PING, bytes)).unwrap_err();
    assert!(broken.why.contains("a thread panicked"), "{broken}");
}

/// And one that hangs up on everybody from then on.
#[test]
fn a_server_that_dies_is_caught() {
    let _alone = alone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut is_dead = false;
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut asked = Vec::new();
            stream.read_to_end(&mut asked).unwrap();
            is_dead |= asked.starts_with(b"*");
            if !is_dead {
                stream.write_all(b"+PONG\r\n").unwrap();
            }
        }
    });
    let broken = corpus("resp").check(USUAL, |bytes| survives(address, &PING, bytes)).unwrap_err();
    assert!(broken.why.contains("a healthy client hears"), "{broken}");
}
