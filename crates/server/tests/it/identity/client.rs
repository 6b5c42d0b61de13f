//! A client that asks for one ID, by any protocol, and says in one word what it was told.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use frazil_rig::Certificates;
use frazil_wire::Reason;
use frazil_wire::proto::NextRequest;
use frazil_wire::proto::id_service_client::IdServiceClient;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::metadata::MetadataKey;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt;

use crate::site::secured::{Line, client};
use crate::site::{Site, reply};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
    Resp,
}

pub(crate) const ALL: [Protocol; 3] = [Protocol::Http, Protocol::Grpc, Protocol::Resp];

impl Protocol {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Resp => "resp",
        }
    }

    const fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http => b"http/1.1",
            Self::Grpc => b"h2",
            Self::Resp => b"",
        }
    }
}

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// What a proxy sends that speaks for somebody: as the specification has it, byte by byte.
pub(crate) fn spoken_for(address: &str) -> Vec<u8> {
    let (kind, octets) = match address.parse().unwrap() {
        std::net::IpAddr::V4(address) => (0x11, address.octets().to_vec()),
        std::net::IpAddr::V6(address) => (0x21, address.octets().to_vec()),
    };
    let length = u8::try_from(2 * octets.len() + 4).unwrap();
    let ports = [4, 0xd2, 0x1e, 0x64];
    [SIGNATURE, &[0x21, kind, 0, length], &octets, &octets, &ports].concat()
}

/// What a proxy sends that looks whether the server is there.
pub(crate) fn local() -> Vec<u8> {
    [SIGNATURE, &[0x20, 0, 0, 0]].concat()
}

/// What a client has to show.
#[derive(Clone)]
pub(crate) struct Client<'a> {
    site: &'a Site,
    begin: Vec<u8>,
    tls: Option<[Arc<ClientConfig>; 3]>,
    headers: Vec<(&'static str, String)>,
    key: Option<String>,
    user: &'static str,
    scope: &'static str,
}

impl<'a> Client<'a> {
    pub(crate) fn new(site: &'a Site) -> Self {
        let (begin, headers) = (Vec::new(), Vec::new());
        Self { site, begin, tls: None, headers, key: None, user: "", scope: "" }
    }

    /// These bytes come before everything else.
    pub(crate) fn beginning(self, begin: &[u8]) -> Self {
        Self { begin: begin.to_vec(), ..self }
    }

    /// Through TLS, with the client's certificate.
    pub(crate) fn tls(self, certificates: &Certificates) -> Self {
        let own = (certificates.client_cert(), certificates.client_key());
        Self { tls: Some(ALL.map(|p| client(certificates.ca(), Some(own), p.alpn()))), ..self }
    }

    /// The same with the server's, which has alternative names.
    pub(crate) fn tls_as_server(self, certificates: &Certificates) -> Self {
        let own = (certificates.server_cert(), certificates.server_key());
        Self { tls: Some(ALL.map(|p| client(certificates.ca(), Some(own), p.alpn()))), ..self }
    }

    pub(crate) fn key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    pub(crate) fn user(self, user: &'static str) -> Self {
        Self { user, ..self }
    }

    pub(crate) fn scope(self, scope: &'static str) -> Self {
        Self { scope, ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Asks on a connection of its own.
    pub(crate) async fn ask(self, protocol: Protocol) -> String {
        match self.open(protocol).await {
            Ok(mut connection) => connection.ask().await,
            Err(_) => "closed".to_owned(),
        }
    }

    /// A connection on which it may ask several times.
    pub(crate) async fn open(self, protocol: Protocol) -> io::Result<Connection> {
        let addrs = self.site.addrs;
        let address = match protocol {
            Protocol::Http => addrs.http,
            Protocol::Grpc => addrs.grpc,
            Protocol::Resp => addrs.resp,
        };
        let line = self.line(address.unwrap(), protocol).await?;
        let way = match protocol {
            Protocol::Grpc => Transport::Grpc(channel(line).await?),
            Protocol::Http => Transport::Http(BufReader::new(line)),
            Protocol::Resp => Transport::Resp(BufReader::new(line), false),
        };
        let Self { headers, key, user, scope, .. } = self;
        Ok(Connection { way, headers, key, user, scope, retry_after: None })
    }

    async fn line(&self, address: SocketAddr, protocol: Protocol) -> io::Result<Box<dyn Line>> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&self.begin).await?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(tls[protocol as usize].clone());
        Ok(Box::new(connector.connect(name, stream).await?))
    }
}

async fn channel(line: Box<dyn Line>) -> io::Result<Channel> {
    let mut line = Some(TokioIo::new(line));
    let connector = tower::service_fn(move |_| {
        let line = line.take().ok_or_else(|| io::Error::other("one connection is enough"));
        std::future::ready(line)
    });
    Endpoint::from_static("http://test")
        .connect_with_connector(connector)
        .await
        .map_err(io::Error::other)
}

/// A connection of a client.
pub(crate) struct Connection {
    way: Transport,
    headers: Vec<(&'static str, String)>,
    key: Option<String>,
    user: &'static str,
    scope: &'static str,
    /// What the last refusal said about when to come again.
    pub(crate) retry_after: Option<Duration>,
}

enum Transport {
    Http(BufReader<Box<dyn Line>>),
    Grpc(Channel),
    /// And whether the key was shown.
    Resp(BufReader<Box<dyn Line>>, bool),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.way {
            Transport::Http(_) => "http",
            Transport::Grpc(_) => "grpc",
            Transport::Resp(..) => "resp",
        })
    }
}

impl Connection {
    /// `OK`, the reason why not, or `closed`.
    pub(crate) async fn ask(&mut self) -> String {
        let asked = match &self.way {
            Transport::Http(_) => self.ask_http().await,
            Transport::Grpc(_) => Ok(self.ask_grpc().await),
            Transport::Resp(..) => self.ask_resp().await,
        };
        asked.unwrap_or_else(|_| "closed".to_owned())
    }

    async fn ask_http(&mut self) -> io::Result<String> {
        let Transport::Http(line) = &mut self.way else { unreachable!() };
        let query = if self.scope.is_empty() { "" } else { "?scope=" };
        let mut head = format!("POST /ids{query}{} HTTP/1.1\r\nhost: test\r\n", self.scope);
        if let Some(key) = &self.key {
            head += &format!("authorization: Bearer {key}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        line.write_all(format!("{head}\r\n").as_bytes()).await?;
        line.flush().await?;
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            if line.read_until(b'\n', &mut bytes).await? == 0 {
                return Ok("closed".to_owned());
            }
        }
        let length = reply(&bytes).headers.get("content-length").map_or(0, |l| l.parse().unwrap());
        let mut body = vec![0; length];
        line.read_exact(&mut body).await?;
        bytes.extend(body);
        let reply = reply(&bytes);
        if reply.status == 200 {
            return Ok("OK".to_owned());
        }
        if !reply.headers.contains_key("content-type") {
            // Bytes that are no HTTP; the connection ends with that.
            return Ok("closed".to_owned());
        }
        let ms = reply.json()["retry_after_ms"].as_u64();
        self.retry_after = ms.map(Duration::from_millis);
        Ok(reply.reason())
    }

    async fn ask_grpc(&mut self) -> String {
        let Transport::Grpc(channel) = &self.way else { unreachable!() };
        let next = NextRequest { scope: self.scope.to_owned(), ..NextRequest::default() };
        let mut request = tonic::Request::new(next);
        let mut headers = self.headers.clone();
        headers.extend(self.key.iter().map(|key| ("authorization", format!("Bearer {key}"))));
        for (name, value) in headers {
            request.metadata_mut().insert(MetadataKey::from_static(name), value.parse().unwrap());
        }
        match IdServiceClient::new(channel.clone()).next(request).await {
            Ok(_) => "OK".to_owned(),
            Err(status) => {
                let details = status.get_error_details();
                self.retry_after = details.retry_info().and_then(|retry| retry.retry_delay);
                details.error_info().map_or("closed".to_owned(), |info| info.reason.clone())
            }
        }
    }

    async fn ask_resp(&mut self) -> io::Result<String> {
        let Transport::Resp(line, is_in) = &mut self.way else { unreachable!() };
        let mut commands = Vec::new();
        if let Some(key) = self.key.as_ref().filter(|_| !*is_in) {
            commands.push(format!("AUTH {} {key}\r\n", self.user).replace("  ", " "));
        }
        let scope = if self.scope.is_empty() { "" } else { " SCOPE " };
        commands.push(format!("ID.NEXT{scope}{} AS INT\r\n", self.scope));
        for command in commands {
            line.write_all(command.as_bytes()).await?;
            line.flush().await?;
            let mut answer = String::new();
            if line.read_line(&mut answer).await? == 0 || answer.starts_with("-ERR") {
                return Ok("closed".to_owned());
            }
            if answer.starts_with('-') {
                let mut words = answer.split([' ', ':', '-', '\r']);
                let after =
                    answer.split("retry_after_ms=").nth(1).and_then(|t| t.split(' ').next());
                self.retry_after = after.map(|ms| Duration::from_millis(ms.parse().unwrap()));
                let reason = words.find_map(|word| word.parse::<Reason>().ok());
                return Ok(reason.map_or(answer.clone(), |reason| reason.name().to_owned()));
            }
            *is_in = true;
        }
        Ok("OK".to_owned())
    }
}
