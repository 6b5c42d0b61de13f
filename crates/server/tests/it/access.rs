//! Who may do what, over every protocol and transport.

use std::collections::BTreeSet;
use std::io;

use frazil_rig::Certificates;
use frazil_server::keys::Role;
use frazil_server::{Endpoint, endpoints};
use hyper_util::rt::TokioIo;
use prost::Message;
use prost_types::FileDescriptorSet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint as Target};
use tonic_prost::ProstCodec;

use crate::site::secured::{Keys, Line, Transport};
use crate::site::{Reply, Site};

/// Whom a request is of, in the order of the columns below.
const CALLERS: [&str; 6] = ["no key", "wrong", "read", "ids", "admin", "peer"];

/// What each of them is told: `?` to show a key, `-` that it may not, `+` anything else.
///
/// Written by hand, and not made from the server's own table: that is what is tested.
const MATRIX: [(&str, &str, &str); 41] = [
    ("http", "POST /v1/ids", "??-+--"),
    ("http", "POST /ids", "??-+--"),
    ("http", "POST /v1/ids:decode", "??++++"),
    ("http", "POST /v1/ids:encode", "??++++"),
    ("http", "GET /v1/ids/{id}", "??++++"),
    ("http", "GET /v1/info", "??++++"),
    ("http", "GET /v1/cluster", "??++++"),
    ("http", "GET /v1/elections", "??+-+-"),
    ("http", "GET /v1/elections/{name}", "??+-+-"),
    ("http", "GET /metrics", "??+-+-"),
    ("http", "POST /v1/node:drain", "??--+-"),
    ("http", "POST /v1/node:rotate", "??--+-"),
    ("http", "POST /v1/workers/{worker}:release", "??--+-"),
    ("http", "GET /", "++++++"),
    ("http", "GET /livez", "++++++"),
    ("http", "GET /readyz", "++++++"),
    ("http", "GET /openapi.json", "++++++"),
    ("grpc", "frazil.v1.IdService/Next", "??-+--"),
    ("grpc", "frazil.v1.IdService/Stream", "??-+--"),
    ("grpc", "frazil.v1.IdService/Decode", "??++++"),
    ("grpc", "frazil.v1.IdService/Info", "??++++"),
    ("grpc", "grpc.health.v1.Health/Check", "++++++"),
    ("grpc", "grpc.health.v1.Health/Watch", "++++++"),
    ("grpc", "grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "++++++"),
    ("grpc", "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "++++++"),
    ("resp", "ID.NEXT", "??-+--"),
    ("resp", "INCR", "??-+--"),
    ("resp", "INCRBY", "??-+--"),
    ("resp", "ID.DECODE", "??++++"),
    ("resp", "ID.INFO", "??++++"),
    ("resp", "PING", "??++++"),
    ("resp", "ECHO", "??++++"),
    ("resp", "SELECT", "??++++"),
    ("resp", "CLIENT", "??++++"),
    ("resp", "COMMAND", "??++++"),
    ("resp", "CONFIG", "??++++"),
    ("resp", "INFO", "??++++"),
    // These three come before a key or with one; HELLO tells nobody else anything.
    ("resp", "HELLO", "??++++"),
    ("resp", "AUTH", "++++++"),
    ("resp", "RESET", "++++++"),
    ("resp", "QUIT", "++++++"),
];

#[tokio::test]
async fn every_route_asks_for_its_role_over_every_transport() {
    let certificates = Certificates::generate().unwrap();
    let mut keys = Keys::new();
    let wrong = Keys::new().add("wrong", Role::Admin);
    let shown = [
        None,
        Some(wrong),
        Some(keys.add("reader", Role::Read)),
        Some(keys.add("issuer", Role::Ids)),
        Some(keys.add("operator", Role::Admin)),
        Some(keys.add("nodes", Role::Peer)),
    ];
    for transport in Transport::ALL {
        let site = Site::start_with(|config| {
            config.keys = Some(keys.path().into());
            config.tls = transport.files(&certificates);
            // Every route is shown a wrong key, from one address.
            config.limits.max_failed_keys = 1000;
        })
        .await;
        let ways = Ways { site: &site, certificates: &certificates, transport };
        // Last what takes the node out of service.
        let mut all = endpoints();
        all.sort_by_key(|endpoint| endpoint.name.ends_with(":drain"));
        for endpoint in all {
            let row =
                MATRIX.iter().find(|row| (row.0, row.1) == (endpoint.protocol, &endpoint.name));
            let row = row.unwrap_or_else(|| panic!("{endpoint:?} is missing from the matrix"));
            let mut told = String::new();
            for key in &shown {
                told.push(ways.ask(&endpoint, key.as_deref()).await);
            }
            assert_eq!(told, row.2, "{transport:?}, {endpoint:?}, for {CALLERS:?}");
        }
        site.stop().await.unwrap();
    }
}

#[test]
fn nothing_is_in_the_matrix_that_does_not_exist() {
    let table: BTreeSet<_> = endpoints().into_iter().map(|e| (e.protocol, e.name)).collect();
    let matrix: BTreeSet<_> = MATRIX.iter().map(|row| (row.0, row.1.to_owned())).collect();
    assert_eq!(matrix.len(), MATRIX.len());
    assert_eq!(table, matrix);
}

/// The table says what is served; the descriptors say what there is.
#[test]
fn every_call_of_the_descriptors_is_in_the_table() {
    let descriptors = [
        frazil_wire::proto::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let files =
        descriptors.into_iter().flat_map(|set| FileDescriptorSet::decode(set).unwrap().file);
    let mut calls = BTreeSet::new();
    for file in files {
        for service in &file.service {
            let name = format!("{}.{}", file.package(), service.name());
            calls.extend(service.method.iter().map(|call| format!("{name}/{}", call.name())));
        }
    }
    // What a later version of the health service has, and the one here does not.
    calls.remove("grpc.health.v1.Health/List");
    let table = endpoints().into_iter().filter(|endpoint| endpoint.protocol == "grpc");
    assert_eq!(calls, table.map(|endpoint| endpoint.name).collect());
}

/// How a site is asked.
struct Ways<'a> {
    site: &'a Site,
    certificates: &'a Certificates,
    transport: Transport,
}

impl Ways<'_> {
    /// What somebody with that key is told.
    async fn ask(&self, endpoint: &Endpoint, key: Option<&str>) -> char {
        match endpoint.protocol {
            "http" => self.ask_http(&endpoint.name, key).await,
            "grpc" => self.ask_grpc(&endpoint.name, key).await,
            _ => self.ask_resp(&endpoint.name, key).await,
        }
    }

    async fn line(&self, address: Option<std::net::SocketAddr>, alpn: &[u8]) -> Box<dyn Line> {
        self.transport.connect(address.unwrap(), self.certificates, alpn).await
    }

    async fn ask_http(&self, name: &str, key: Option<&str>) -> char {
        let name = name.replace("{id}", "1").replace("{worker}", "65535").replace("{name}", "x");
        let shown = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
        let head = format!("{name} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{shown}\r\n");
        let mut line = self.line(self.site.addrs.http, b"http/1.1").await;
        line.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        line.read_to_end(&mut bytes).await.unwrap();
        let reply: Reply = crate::site::reply(&bytes);
        match reply.status {
            401 => {
                assert_eq!(
                    (reply.reason().as_str(), &*reply.headers["www-authenticate"]),
                    ("UNAUTHENTICATED", "Bearer")
                );
                '?'
            }
            403 => {
                assert_eq!(reply.reason(), "FORBIDDEN");
                '-'
            }
            _ => '+',
        }
    }

    async fn ask_grpc(&self, name: &str, key: Option<&str>) -> char {
        let mut grpc = Grpc::new(self.channel().await);
        grpc.ready().await.unwrap();
        let mut request = tonic::Request::new(tokio_stream::once(()));
        if let Some(key) = key {
            let shown = format!("Bearer {key}").parse().unwrap();
            request.metadata_mut().insert("authorization", shown);
        }
        let path = format!("/{name}").parse().unwrap();
        // To the wire every call is a stream of messages, and those of no fields fit all.
        let codec = ProstCodec::<(), ()>::default();
        let outcome = match grpc.streaming(request, path, codec).await {
            Ok(answer) => answer.into_inner().message().await.map(drop),
            Err(status) => Err(status),
        };
        match outcome.map_err(|status| status.code()) {
            Err(Code::Unauthenticated) => '?',
            Err(Code::PermissionDenied) => '-',
            Err(Code::Unimplemented) => panic!("{name} is not there"),
            _ => '+',
        }
    }

    async fn channel(&self) -> Channel {
        let mut line = Some(TokioIo::new(self.line(self.site.addrs.grpc, b"h2").await));
        let connector = tower::service_fn(move |_| {
            let line = line.take().ok_or_else(|| io::Error::other("one connection is enough"));
            std::future::ready(line)
        });
        Target::from_static("http://test").connect_with_connector(connector).await.unwrap()
    }

    async fn ask_resp(&self, name: &str, key: Option<&str>) -> char {
        let mut line = self.line(self.site.addrs.resp, b"").await;
        let auth = key.map(|key| format!("AUTH {key}\r\n")).unwrap_or_default();
        let words = match name {
            "INCR" | "ECHO" => format!("{name} x"),
            "INCRBY" => format!("{name} x 1"),
            _ => name.to_owned(),
        };
        let commands = format!("{auth}{words}\r\nQUIT\r\n");
        line.write_all(commands.as_bytes()).await.unwrap();
        let mut answers = String::new();
        line.read_to_string(&mut answers).await.unwrap();
        let answer = match key {
            // The answer to AUTH is one line.
            Some(_) => answers.split_once("\r\n").unwrap().1,
            None => &answers,
        };
        match answer {
            refused if refused.starts_with("-NOAUTH ") => '?',
            refused if refused.starts_with("-NOPERM ") => '-',
            // Who may have IDs gets them; other commands may miss their arguments.
            other if ["INCR", "INCRBY", "ID.NEXT"].contains(&name) && other.starts_with('-') => '!',
            _ => '+',
        }
    }
}
