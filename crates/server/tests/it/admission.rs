//! Every rule about who gets IDs, through every protocol: a protocol more is a column more.

use std::net::SocketAddr;

use frazil_server::DeclaredScope;
use frazil_server::keys::{KeyEntry, Role};
use frazil_wire::Reason;
use frazil_wire::proto::id_service_client::IdServiceClient;
use frazil_wire::proto::{NextRequest, StreamRequest};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_types::StatusExt;

use crate::site::Site;
use crate::site::secured::Keys;

/// The ways to IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Http,
    Grpc,
    GrpcStream,
    Resp,
    /// Three commands for one ID each, sent at once.
    RespPipeline,
}

const WAYS: [Transport; 5] = [
    Transport::Http,
    Transport::Grpc,
    Transport::GrpcStream,
    Transport::Resp,
    Transport::RespPipeline,
];

/// What a client hears: nothing but the IDs, or the reason.
type Heard = Result<(), Reason>;

/// A connection that asks again and again.
enum Client {
    Http { stream: BufReader<TcpStream>, key: Option<String> },
    Grpc { client: IdServiceClient<Channel>, key: Option<String> },
    GrpcStream(Box<Open>),
    Resp { stream: BufReader<TcpStream>, is_pipeline: bool },
}

/// A stream, opened by the first request.
struct Open {
    client: IdServiceClient<Channel>,
    key: Option<String>,
    stream: Option<(mpsc::Sender<StreamRequest>, Streaming<frazil_wire::proto::IdBatch>)>,
}

impl Client {
    async fn connect(site: &Site, transport: Transport, key: Option<&str>) -> Self {
        let key = key.map(str::to_owned);
        match transport {
            Transport::Http => Self::Http { stream: tcp(site.http()).await, key },
            Transport::Grpc => Self::Grpc { client: grpc(site).await, key },
            Transport::GrpcStream => {
                Self::GrpcStream(Box::new(Open { client: grpc(site).await, key, stream: None }))
            }
            Transport::Resp | Transport::RespPipeline => {
                let mut stream = tcp(site.addrs.resp.unwrap()).await;
                if let Some(key) = key {
                    // What is wrong with it is heard again from the command that needs it.
                    let _ = command(&mut stream, &format!("AUTH {key}")).await;
                }
                Self::Resp { stream, is_pipeline: transport == Transport::RespPipeline }
            }
        }
    }

    async fn ask(&mut self, scope: &str, count: u32) -> Heard {
        match self {
            Self::Http { stream, key } => ask_http(stream, key.as_deref(), scope, count).await,
            Self::Grpc { client, key } => {
                let (scope, count) = (scope.to_owned(), Some(count.into()));
                let mut request = Request::new(NextRequest { count, scope, ..Default::default() });
                show(&mut request, key.as_deref());
                heard(client.next(request).await.map(drop))
            }
            Self::GrpcStream(open) => open.ask(scope, count).await,
            Self::Resp { stream, is_pipeline } => {
                ask_resp(stream, *is_pipeline, scope, count).await
            }
        }
    }
}

impl Open {
    async fn ask(&mut self, scope: &str, count: u32) -> Heard {
        let credit = i64::from(count);
        let scope = scope.to_owned();
        let request = StreamRequest { credit, scope, ..StreamRequest::default() };
        if let Some((requests, answers)) = &mut self.stream {
            // A stream that has ended says why when it is read.
            let _ = requests.send(request).await;
            return heard(answers.message().await.map(drop));
        }
        let (requests, receiver) = mpsc::channel(4);
        requests.send(request).await.unwrap();
        let mut opening = Request::new(ReceiverStream::new(receiver));
        show(&mut opening, self.key.as_deref());
        let mut answers = match self.client.stream(opening).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return heard(Err(status)),
        };
        let outcome = heard(answers.message().await.map(drop));
        self.stream = Some((requests, answers));
        outcome
    }
}

async fn tcp(address: SocketAddr) -> BufReader<TcpStream> {
    BufReader::new(TcpStream::connect(address).await.unwrap())
}

async fn grpc(site: &Site) -> IdServiceClient<Channel> {
    let address = format!("http://{}", site.addrs.grpc.unwrap());
    IdServiceClient::new(Channel::from_shared(address).unwrap().connect().await.unwrap())
}

fn show<T>(request: &mut Request<T>, key: Option<&str>) {
    if let Some(key) = key {
        let shown = format!("Bearer {key}").parse().unwrap();
        request.metadata_mut().insert("authorization", shown);
    }
}

fn heard(outcome: Result<(), Status>) -> Heard {
    outcome.map_err(|status| {
        let details = status.get_error_details();
        let info = details.error_info().unwrap_or_else(|| panic!("no reason in {status:?}"));
        named(&info.reason)
    })
}

fn named(text: &str) -> Reason {
    let reason = Reason::ALL.iter().find(|reason| reason.name() == text);
    *reason.unwrap_or_else(|| panic!("{text:?} is no reason"))
}

async fn ask_http(
    stream: &mut BufReader<TcpStream>,
    key: Option<&str>,
    scope: &str,
    count: u32,
) -> Heard {
    let shown = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let scope = if scope.is_empty() { String::new() } else { format!("&scope={scope}") };
    let head = format!("POST /ids?count={count}{scope} HTTP/1.1\r\nhost: test\r\n{shown}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        match line.trim_end().split_once([' ', ':']) {
            None => break,
            Some(("HTTP/1.1", rest)) => status = rest[..3].parse().unwrap(),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap();
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    if status == 200 {
        return Ok(());
    }
    let problem: frazil_wire::Problem = serde_json::from_slice(&body).unwrap();
    Err(named(&problem.reason))
}

async fn ask_resp(
    stream: &mut BufReader<TcpStream>,
    is_pipeline: bool,
    scope: &str,
    count: u32,
) -> Heard {
    let scope = if scope.is_empty() { String::new() } else { format!(" SCOPE {scope}") };
    if !is_pipeline {
        return command(stream, &format!("ID.NEXT {count}{scope}")).await;
    }
    // Of no scope, these are a run of commands.
    let one = if scope.is_empty() { "INCR x".to_owned() } else { format!("ID.NEXT{scope}") };
    let commands = [one.as_str(); 3].join("\r\n");
    let heard = command(stream, &commands).await;
    for _ in 1..3 {
        assert_eq!(answer(stream).await, heard, "commands of one run hear the same");
    }
    heard
}

async fn command(stream: &mut BufReader<TcpStream>, text: &str) -> Heard {
    stream.write_all(format!("{text}\r\n").as_bytes()).await.unwrap();
    answer(stream).await
}

async fn answer(stream: &mut BufReader<TcpStream>) -> Heard {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let (kind, rest) = line.trim_end().split_at(1);
    match kind {
        "-" => {
            let mut words = rest.split([' ', ':']);
            let is_reason = |word: &&str| Reason::ALL.iter().any(|reason| reason.name() == *word);
            Err(named(words.find(is_reason).unwrap_or(rest)))
        }
        "*" => {
            for _ in 0..2 * rest.parse::<usize>().unwrap() {
                stream.read_line(&mut line).await.unwrap();
            }
            Ok(())
        }
        "$" => {
            stream.read_line(&mut line).await.unwrap();
            Ok(())
        }
        _ => Ok(()),
    }
}

fn scopes(names: &[&str]) -> Vec<DeclaredScope> {
    names.iter().map(|name| DeclaredScope::plain(*name)).collect()
}

/// Whose request, of which scope, for how many: and what every protocol says.
struct Row {
    who: &'static str,
    scope: &'static str,
    count: u32,
    heard: Heard,
}

const fn row(who: &'static str, scope: &'static str, count: u32, heard: Heard) -> Row {
    Row { who, scope, count, heard }
}

const ROWS: [Row; 12] = [
    row("ids", "", 1, Ok(())),
    row("ids", "orders", 1, Ok(())),
    row("nobody", "", 1, Err(Reason::Unauthenticated)),
    row("wrong", "", 1, Err(Reason::Unauthenticated)),
    row("expired", "", 1, Err(Reason::Unauthenticated)),
    row("reader", "", 1, Err(Reason::Forbidden)),
    row("shop", "orders", 1, Ok(())),
    row("shop", "", 1, Err(Reason::Forbidden)),
    row("shop", "users", 1, Err(Reason::Forbidden)),
    // What a key may not have is not told from what is not there.
    row("shop", "unheard", 1, Err(Reason::Forbidden)),
    row("ids", "unheard", 1, Err(Reason::NotFound)),
    row("poor", "", 1, Ok(())),
];

#[tokio::test]
async fn every_rule_holds_for_every_protocol() {
    let mut keys = Keys::new();
    let shop = |entry: &mut KeyEntry| entry.scopes = Some(vec!["orders".to_owned()]);
    let past = |entry: &mut KeyEntry| entry.expires = Some("2020-01-01T00:00:00Z".to_owned());
    let poor = |entry: &mut KeyEntry| entry.ids_per_second = 100.try_into().ok();
    let known = [
        ("ids", keys.add("ids", Role::Ids)),
        ("wrong", Keys::new().add("wrong", Role::Admin)),
        ("expired", keys.add_with("expired", Role::Ids, past)),
        ("reader", keys.add("reader", Role::Read)),
        ("shop", keys.add_with("shop", Role::Ids, shop)),
        ("poor", keys.add_with("poor", Role::Ids, poor)),
    ];
    let site = Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.scopes = scopes(&["orders", "users"]);
        // Every way is shown a wrong key, from one address.
        config.limits.max_failed_keys = 1000;
    })
    .await;
    for Row { who, scope, count, heard } in ROWS {
        let key = known.iter().find(|(name, _)| *name == who).map(|(_, key)| key.as_str());
        for transport in WAYS {
            let told = Client::connect(&site, transport, key).await.ask(scope, count).await;
            assert_eq!(told, heard, "{who} asks for {count} of {scope:?} over {transport:?}");
        }
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_count_that_is_none_and_a_quota_that_is_used_up_are_refused_everywhere() {
    let mut keys = Keys::new();
    let poor = |entry: &mut KeyEntry| entry.ids_per_second = 2.try_into().ok();
    let (rich, key) = (keys.add("rich", Role::Ids), keys.add_with("poor", Role::Ids, poor));
    let site = Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.open_metrics = true;
    })
    .await;
    // A stream has credit instead of a count, and a run is of single ones.
    for transport in [Transport::Http, Transport::Grpc, Transport::Resp] {
        for count in [0, 100_001] {
            let told = Client::connect(&site, transport, Some(&rich)).await.ask("", count).await;
            assert_eq!(told, Err(Reason::CountOutOfRange), "{count} over {transport:?}");
        }
    }
    let refused = "frazil_key_refused_total{key=\"poor\",reason=\"QUOTA_EXCEEDED\"}";
    let mut refusals = 0.0;
    for transport in [Transport::Http, Transport::Grpc, Transport::Resp] {
        let mut client = Client::connect(&site, transport, Some(&key)).await;
        let first = client.ask("", 2).await;
        assert!(
            matches!(first, Ok(()) | Err(Reason::QuotaExceeded)),
            "{first:?} over {transport:?}"
        );
        assert_eq!(client.ask("", 2).await, Err(Reason::QuotaExceeded), "{transport:?}");
        refusals += if first.is_ok() { 1.0 } else { 2.0 };
        assert!((site.metric(refused).await - refusals).abs() < f64::EPSILON, "{transport:?}");
    }
    // A stream is slowed down, which is no refusal.
    let mut client = Client::connect(&site, Transport::GrpcStream, Some(&key)).await;
    assert_eq!((client.ask("", 1).await, client.ask("", 1).await), (Ok(()), Ok(())));
    assert!((site.metric(refused).await - refusals).abs() < f64::EPSILON);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn every_command_of_a_refused_pipeline_counts_as_refused() {
    const COMMANDS: usize = 10;
    let mut keys = Keys::new();
    let poor = |entry: &mut KeyEntry| entry.ids_per_second = 2.try_into().ok();
    let scoped = |entry: &mut KeyEntry| entry.scopes = Some(vec!["orders".to_owned()]);
    let known = [
        ("poor", Some(keys.add_with("poor", Role::Ids, poor)), Reason::QuotaExceeded),
        ("reader", Some(keys.add("reader", Role::Read)), Reason::Forbidden),
        ("shop", Some(keys.add_with("shop", Role::Ids, scoped)), Reason::Forbidden),
        ("none", None, Reason::Unauthenticated),
    ];
    let site = Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.scopes = scopes(&["orders"]);
        config.open_metrics = true;
    })
    .await;
    for (name, key, reason) in known {
        let mut stream = tcp(site.addrs.resp.unwrap()).await;
        if let Some(key) = key {
            assert_eq!(command(&mut stream, &format!("AUTH {key}")).await, Ok(()), "{name}");
        }
        let mut heard = vec![command(&mut stream, &["INCR x"; COMMANDS].join("\r\n")).await];
        while heard.len() < COMMANDS {
            heard.push(answer(&mut stream).await);
        }
        let refused = heard.iter().filter(|heard| **heard == Err(reason)).count();
        assert!(refused >= COMMANDS - 4, "{name}: {heard:?}");
        let row =
            format!("frazil_key_refused_total{{key=\"{name}\",reason=\"{}\"}}", reason.name());
        let counted = site.metric(&row).await;
        assert!(
            (counted - f64::from(u32::try_from(refused).unwrap())).abs() < 0.5,
            "{row} {counted}"
        );
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_taken_from_a_key_ends_for_connections_that_are_open() {
    let mut keys = Keys::new();
    let both = |entry: &mut KeyEntry| {
        entry.scopes = Some(vec!["orders".to_owned(), "users".to_owned()]);
    };
    let withdrawn = keys.add_with("withdrawn", Role::Ids, both);
    let revoked = keys.add("revoked", Role::Ids);
    let site = Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.scopes = scopes(&["orders", "users"]);
    })
    .await;
    let mut clients = Vec::new();
    for transport in WAYS {
        let mut one = Client::connect(&site, transport, Some(&withdrawn)).await;
        let mut other = Client::connect(&site, transport, Some(&revoked)).await;
        assert_eq!((one.ask("users", 1).await, other.ask("", 1).await), (Ok(()), Ok(())));
        clients.push((transport, one, other));
    }
    keys.change("withdrawn", |entry| entry.scopes = Some(vec!["orders".to_owned()]));
    keys.revoke("revoked");
    site.reloader.reload().unwrap();
    for (transport, mut one, mut other) in clients {
        assert_eq!(one.ask("users", 1).await, Err(Reason::Forbidden), "{transport:?}");
        assert_eq!(other.ask("", 1).await, Err(Reason::Unauthenticated), "{transport:?}");
    }
    site.stop().await.unwrap();
}
