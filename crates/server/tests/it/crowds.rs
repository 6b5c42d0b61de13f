//! Crowds of clients that have a key and connect at the same moment: each gets an ID, and none is sent away.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use frazil_rig::Certificates;
use frazil_server::keys::Role;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::site::Site;
use crate::site::secured::{Keys, Line, Transport, client};

/// Many times the gRPC connections that are kept without a key.
const CROWD: usize = 2000;
/// More than the connections behind TLS that are kept without a key, of either protocol.
const CROWD_TLS: usize = 600;
/// Nobody is sent away because this machine is slow.
const LONG: Duration = Duration::from_secs(120);

/// A protocol as a client with a key speaks it.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Http,
    Grpc,
    Resp,
}

impl Protocol {
    fn address(self, site: &Site) -> SocketAddr {
        match self {
            Self::Http => site.addrs.http,
            Self::Grpc => site.addrs.grpc,
            Self::Resp => site.addrs.resp,
        }
        .unwrap()
    }

    /// What is sent first.
    fn greeting(self, key: &str) -> Vec<u8> {
        match self {
            Self::Http => Vec::new(),
            Self::Grpc => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
            Self::Resp => format!("AUTH {key}\r\n").into(),
        }
    }

    /// A request for one ID, the first or the second of the connection.
    fn request(self, key: &str, is_second: bool) -> Vec<u8> {
        match self {
            Self::Http => {
                format!("POST /ids HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n")
                    .into()
            }
            Self::Grpc => call(key, if is_second { 3 } else { 1 }),
            Self::Resp => b"INCR ids\r\n".to_vec(),
        }
    }

    /// Whether an answer with an ID is in these bytes.
    fn is_answered(self, bytes: &[u8]) -> bool {
        match self {
            Self::Http => {
                let text = String::from_utf8_lossy(bytes);
                text.starts_with("HTTP/1.1 200")
                    && text.contains("\r\n\r\n{")
                    && text.ends_with('}')
            }
            Self::Grpc => has_message(bytes),
            Self::Resp => {
                let text = String::from_utf8_lossy(bytes);
                text.lines().any(|line| line.starts_with(':')) && text.ends_with("\r\n")
            }
        }
    }
}

/// A call of Next for one ID, with a key: the head, and an empty message.
fn call(key: &str, stream: u8) -> Vec<u8> {
    let mut head = vec![0x83, 0x86];
    for (name, value) in [
        (&[0x04][..], "/frazil.v1.IdService/Next"),
        (&[0x01], "x"),
        (&[0x0f, 0x10], "application/grpc"),
        (&[0x0f, 0x08], &format!("Bearer {key}")),
    ] {
        head.extend(name);
        head.push(u8::try_from(value.len()).unwrap());
        head.extend(value.as_bytes());
    }
    let frame = |kind: u8, flags: u8, payload: &[u8]| {
        let [high, low] = u16::try_from(payload.len()).unwrap().to_be_bytes();
        [&[0, high, low, kind, flags, 0, 0, 0, stream][..], payload].concat()
    };
    // HEADERS with END_HEADERS, DATA with END_STREAM.
    [frame(1, 4, &head), frame(0, 1, &[0; 5])].concat()
}

/// Whether one of the frames is DATA with more than an empty message.
fn has_message(mut bytes: &[u8]) -> bool {
    while bytes.len() >= 9 {
        let length = usize::from(u16::from_be_bytes([bytes[1], bytes[2]]));
        if bytes[3] == 0 && length > 5 {
            return bytes.len() >= 9 + length;
        }
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    false
}

/// One client: it connects, and asks at once.
#[derive(Clone)]
struct Client {
    protocol: Protocol,
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    key: Arc<str>,
}

impl Client {
    async fn first(self) -> Result<Box<dyn Line>, String> {
        let stream = TcpStream::connect(self.address).await.map_err(|error| error.to_string())?;
        let mut line: Box<dyn Line> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => {
                let name = ServerName::try_from("localhost").unwrap();
                let secured = TlsConnector::from(tls.clone()).connect(name, stream).await;
                Box::new(secured.map_err(|error| format!("TLS: {error}"))?)
            }
        };
        let greeting = self.protocol.greeting(&self.key);
        let bytes = [greeting, self.protocol.request(&self.key, false)].concat();
        self.ask(&mut line, &bytes).await?;
        Ok(line)
    }

    /// Sends a request and waits for an ID.
    async fn ask(&self, line: &mut Box<dyn Line>, bytes: &[u8]) -> Result<(), String> {
        line.write_all(bytes).await.map_err(|error| error.to_string())?;
        let (mut answer, mut piece) = (Vec::new(), [0; 1024]);
        while !self.protocol.is_answered(&answer) {
            let read = line.read(&mut piece).await.map_err(|error| error.to_string())?;
            if read == 0 {
                return Err(format!("ended after {:?}", String::from_utf8_lossy(&answer)));
            }
            answer.extend_from_slice(&piece[..read]);
        }
        Ok(())
    }
}

/// Connects so many at once; then each of them asks once more on its connection.
async fn crowd(client: &Client, count: usize) {
    let mut clients = JoinSet::new();
    for _ in 0..count {
        clients.spawn(client.clone().first());
    }
    let (mut lines, mut failed) = (Vec::new(), Vec::new());
    while let Some(one) = clients.join_next().await {
        match one.unwrap() {
            Ok(line) => lines.push(line),
            Err(why) => failed.push(why),
        }
    }
    let (protocol, tls) = (client.protocol, client.tls.is_some());
    assert!(
        failed.is_empty(),
        "{protocol:?}, TLS {tls}: {} got nothing: {}",
        failed.len(),
        failed[0]
    );
    let again = protocol.request(&client.key, true);
    for line in &mut lines {
        let asked = client.ask(line, &again).await;
        assert!(asked.is_ok(), "{protocol:?}, TLS {tls}, sent away after its first ID: {asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_with_a_key_that_connects_at_once_is_served_whole() {
    let certificates = Certificates::generate().unwrap();
    let mut keys = Keys::new();
    let key: Arc<str> = keys.add("app", Role::Ids).into();
    let site = |transport: Transport| {
        let (tls, keys) = (transport.files(&certificates), keys.path());
        Site::start_with(move |config| {
            config.keys = Some(keys.into());
            config.tls = tls;
            for limit in [
                &mut config.limits.handshake_timeout,
                &mut config.limits.auth_timeout,
                &mut config.limits.head_timeout,
                &mut config.limits.body_timeout,
                &mut config.limits.write_timeout,
                &mut config.limits.idle_timeout,
            ] {
                *limit = LONG;
            }
        })
    };
    let (plain, secured) = (site(Transport::Plain).await, site(Transport::Tls).await);
    for (protocol, alpn) in
        [(Protocol::Grpc, "h2"), (Protocol::Http, "http/1.1"), (Protocol::Resp, "")]
    {
        let address = protocol.address(&plain);
        crowd(&Client { protocol, address, tls: None, key: key.clone() }, CROWD).await;
        let tls = Some(client(certificates.ca(), None, alpn.as_bytes()));
        let address = protocol.address(&secured);
        crowd(&Client { protocol, address, tls, key: key.clone() }, CROWD_TLS).await;
    }
    plain.stop().await.unwrap();
    secured.stop().await.unwrap();
}
