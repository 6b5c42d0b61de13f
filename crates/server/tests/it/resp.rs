//! RESP as Redis clients see it.

use std::collections::BTreeSet;
use std::time::Duration;

use frazil_id::Layout;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::site::Site;

struct Client(BufReader<TcpStream>);

impl Client {
    async fn new(site: &Site) -> Self {
        Self(BufReader::new(TcpStream::connect(site.addrs.resp.unwrap()).await.unwrap()))
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    /// One line of an answer, without its end.
    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    /// Sends a line and gives the first line of the answer.
    async fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes()).await;
        self.line().await
    }

    /// The bulk string that follows its length.
    async fn bulk(&mut self) -> String {
        let length: usize = self.line().await.strip_prefix('$').unwrap().parse().unwrap();
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes).await.unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Whether the server has closed the connection, after what it may have said.
    async fn ends(mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).await.is_ok()
    }
}

fn worker(id: u64) -> u64 {
    frazil_id::Id::from_u64(id).parts(&Layout::FRAZIL).unwrap().worker
}

#[tokio::test]
async fn ids_come_as_integers_strings_and_arrays() {
    let scopes = vec!["orders".into()];
    let site = Site::start_with(|config| config.scopes = scopes).await;
    let mut client = Client::new(&site).await;
    let one: u64 = client.ask("INCR orders").await.strip_prefix(':').unwrap().parse().unwrap();
    assert!(client.ask("INCRBY orders 1").await.starts_with(':'));
    client.send(b"*1\r\n$7\r\nid.next\r\n").await;
    let two: u64 = client.bulk().await.parse().unwrap();
    let three = client.ask("ID.NEXT AS INT").await;
    let three: u64 = three.strip_prefix(':').unwrap().parse().unwrap();
    assert!(one < two && two < three && worker(one) == worker(three));
    assert_eq!(client.ask("ID.NEXT 3 SCOPE orders").await, "*3");
    let mut last = three;
    for _ in 0..3 {
        let next = client.bulk().await.parse().unwrap();
        assert!(last < next);
        last = next;
    }
    assert_eq!(client.ask("ID.NEXT 2 AS INT").await, "*2");
    assert!(client.line().await.starts_with(':') && client.line().await.starts_with(':'));
    let issued = site.metric("frazil_ids_issued_total{protocol=\"resp\",scope=\"orders\"}").await;
    assert!((issued - 3.0).abs() < f64::EPSILON);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_long_pipeline_is_answered_in_order() {
    let site = Site::start().await;
    let mut client = Client::new(&site).await;
    let commands = "*2\r\n$4\r\nINCR\r\n$1\r\nx\r\n".repeat(20_000);
    let (reader, mut writer) = client.0.into_inner().into_split();
    let sending = tokio::spawn(async move {
        writer.write_all(commands.as_bytes()).await.unwrap();
        writer
    });
    let mut reader = BufReader::new(reader);
    let mut ids = BTreeSet::new();
    let mut last = 0;
    for _ in 0..20_000 {
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        let id: u64 = line.trim_end().strip_prefix(':').unwrap().parse().unwrap();
        assert!(id > last);
        last = id;
        ids.insert(id);
    }
    assert_eq!(ids.len(), 20_000);
    drop(sending.await.unwrap());
    client = Client::new(&site).await;
    assert_eq!(client.ask("PING").await, "+PONG");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn what_tools_ask_first_is_answered() {
    let site = Site::start().await;
    let mut client = Client::new(&site).await;
    for (command, answer) in [
        ("PING", "+PONG"),
        ("ping hello", "$5"),
        ("SELECT 0", "+OK"),
        ("SELECT 1", "-ERR DB index is out of range"),
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK"),
        ("CLIENT SETNAME me", "+OK"),
        ("COMMAND DOCS", "*0"),
        ("COMMAND", "*0"),
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("HELLO 2", "*14"),
    ] {
        let mut client = Client::new(&site).await;
        assert_eq!(client.ask(command).await, answer, "{command}");
    }
    client.ask("CLIENT SETNAME me").await;
    assert_eq!(client.ask("CLIENT GETNAME").await, "$2");
    assert_eq!(client.line().await, "me");
    assert_eq!(client.ask("CONFIG GET save").await, "*2");
    assert_eq!((client.bulk().await.as_str(), client.bulk().await.as_str()), ("save", ""));
    client.send(b"INFO server\r\n").await;
    assert!(client.bulk().await.contains("redis_version:7"));
    assert!(client.ask("AUTH secret").await.starts_with("-ERR AUTH called without any password"));
    assert_eq!(client.ask("RESET").await, "+RESET");
    assert_eq!(client.ask("HELLO 3").await, "%7");
    let mut client = Client::new(&site).await;
    assert_eq!(client.ask("QUIT").await, "+OK");
    assert!(client.ends().await);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn ids_are_taken_apart_and_the_node_describes_itself() {
    let site = Site::start().await;
    let mut client = Client::new(&site).await;
    client.ask("HELLO 3").await;
    for _ in 0..13 {
        client.line().await;
    }
    let mut client = Client::new(&site).await;
    assert_eq!(client.ask("ID.DECODE 175928847299117063 LAYOUT discord").await, "*14");
    assert_eq!(
        (client.bulk().await, client.bulk().await),
        ("id".into(), "175928847299117063".into())
    );
    client.bulk().await;
    client.bulk().await;
    let time = (client.bulk().await, client.bulk().await);
    assert_eq!(time, ("time".into(), "2016-04-30T11:18:25.796Z".into()));
    let mut client = Client::new(&site).await;
    assert_eq!(client.ask("ID.INFO").await, "*16");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn nonsense_gets_a_reason_and_takes_no_id() {
    let site = Site::start().await;
    let mut client = Client::new(&site).await;
    for (command, answer) in [
        ("ID.NEXT 0", "-COUNT_OUT_OF_RANGE"),
        ("ID.NEXT -1", "-COUNT_OUT_OF_RANGE"),
        ("ID.NEXT 9223372036854775808", "-COUNT_OUT_OF_RANGE"),
        ("ID.NEXT 1e3", "-INVALID_ARGUMENT"),
        ("ID.NEXT 0x10", "-INVALID_ARGUMENT"),
        ("ID.NEXT 7,8", "-INVALID_ARGUMENT"),
        ("ID.NEXT 7 8", "-INVALID_ARGUMENT"),
        ("ID.NEXT SCOPE nobody", "-NOT_FOUND"),
        ("ID.NEXT AS FLOAT", "-INVALID_ARGUMENT"),
        ("ID.DECODE x", "-MALFORMED_ID"),
        ("ID.DECODE 1 LAYOUT x", "-UNKNOWN_LAYOUT"),
        ("ID.DECODE", "-INVALID_ARGUMENT"),
        ("INCRBY x 2", "-INVALID_ARGUMENT"),
        ("INCRBY x", "-ERR wrong number of arguments"),
        ("INCR", "-ERR wrong number of arguments"),
        ("INCR a b", "-ERR wrong number of arguments"),
        ("FLUSHALL", "-ERR unknown command"),
    ] {
        let said = client.ask(command).await;
        assert!(said.starts_with(answer), "{command}: {said}");
    }
    assert!(client.ask("MULTI").await.contains("transaction=False"));
    // A greeting that fails changes nothing.
    assert!(client.ask("HELLO 3 AUTH a b").await.starts_with("-ERR AUTH"));
    assert_eq!(client.ask("CLIENT GETNAME").await, "$-1");
    let ok = site.metric("frazil_requests_total{protocol=\"resp\",method=\"other\",code=\"OK\"}");
    assert!((ok.await - 1.0).abs() < f64::EPSILON, "only the last one was in order");
    assert!(site.issued("resp").await < 1.0, "a bad command took an ID");
    site.stop().await.unwrap();
}

/// A broken stream is closed after a word; everybody else goes on.
#[tokio::test]
async fn broken_frames_close_their_own_connection_only() {
    let site = Site::start().await;
    let mut healthy = Client::new(&site).await;
    let endless = [b'x'; 10_000];
    let nested = b"*1\r\n*1\r\n$1\r\na\r\n";
    let frames: [&[u8]; 6] = [
        b"*x\r\n",
        b"*1\r\n$-7\r\n",
        b"*1\r\n$99999999\r\n",
        b"*1\r\n$4\r\nPINGPONG\r\n",
        nested,
        &endless,
    ];
    for frame in frames {
        let mut client = Client::new(&site).await;
        client.send(frame).await;
        let said = client.line().await;
        assert!(said.starts_with("-ERR Protocol error"), "{said}");
        assert!(client.ends().await);
        assert!(healthy.ask("INCR x").await.starts_with(':'));
    }
    // Half a command is waited for, and harms nobody.
    let mut slow = Client::new(&site).await;
    slow.send(b"*2\r\n$4\r\nINC").await;
    assert!(healthy.ask("INCR x").await.starts_with(':'));
    slow.send(b"R\r\n$1\r\nx\r\n").await;
    assert!(slow.line().await.starts_with(':'));
    let closed = tokio::time::timeout(Duration::from_secs(20), site.stop()).await;
    closed.expect("idle connections do not hold a server up").unwrap();
}
