//! No secret is ever shown: a canary is put into every credential and looked for everywhere.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::desk::Desk;
use crate::logged::Logged;
use frazil_rig::{Certificates, Redis};

/// Everything that can be logged, by whoever is inside.
const ALL: &str = "trace,h2=trace,hyper=trace,hyper_util=trace,rustls=trace,tokio_rustls=trace,\
                   tonic=trace,tower=trace,redis=trace,mio=trace,want=trace";
/// What must be seen, or nothing was looked at.
const VISIBLE: &str = "visible-namespace";

/// What was said, and where.
#[derive(Default)]
struct Said(Vec<(String, String)>);

impl Said {
    fn add(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.0.push((place.into(), text.into()));
    }

    /// Runs a command, whatever comes of it.
    fn run(&mut self, desk: &Desk, args: &[&str]) {
        let output = desk.output(args);
        let both = [output.stdout, output.stderr].concat();
        self.add(args[..2].join(" "), String::from_utf8(both).unwrap());
    }

    fn count(&self, text: &str) -> usize {
        self.0.iter().filter(|(_, said)| said.contains(text)).count()
    }

    fn check(&self, canaries: &[&str]) {
        for canary in canaries {
            let seen = self.0.iter().find(|(_, said)| said.contains(canary));
            if let Some((place, said)) = seen {
                let line = said.lines().find(|line| line.contains(canary)).unwrap_or(said);
                panic!("{place} shows a secret: {line}");
            }
        }
    }
}

/// Sends bytes and gives what comes back until the server closes or is silent for long.
fn exchange(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A reset or a silence ends it as well.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn http(address: &str, line: &str, key: &str) -> String {
    let head = "host: x\r\nconnection: close";
    let request = format!("{line} HTTP/1.1\r\n{head}\r\nauthorization: Bearer {key}\r\n\r\n");
    exchange(address, request.as_bytes())
}

/// A call by hand: what a library would not send, and all of it in one piece.
fn grpc(address: &str, key: &str) -> String {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let literal = |name: &str, value: &str| {
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        assert!(value.len() < 127, "one byte for the length");
        [&[0x00, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
    };
    let headers = [
        literal(":method", "POST"),
        literal(":scheme", "http"),
        literal(":path", "/frazil.v1.IdService/Info"),
        literal(":authority", "x"),
        literal("content-type", "application/grpc"),
        literal("te", "trailers"),
        literal("authorization", &format!("Bearer {key}")),
    ]
    .concat();
    let call = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 0x4, 1, &headers),
        frame(0, 0x1, 1, &[0; 5]),
    ];
    exchange(address, &call.concat())
}

/// Talks to a server in every way there is.
fn talk(said: &mut Said, served: &Logged, key: &str, wrong: &str) {
    let address = |name: &str| {
        let line = served.wait_for(&format!("  {name}  "), 1);
        line.rsplit([' ', '/']).next().unwrap().to_owned()
    };
    let (web, resp, rpc) = (address("HTTP"), address("RESP"), address("gRPC"));
    for shown in [key, wrong, &format!("{key}x"), "\u{7f}"] {
        for line in [
            "GET /metrics",
            "GET /v1/info",
            "GET /v1/cluster",
            "GET /readyz?verbose",
            "POST /ids?count=0",
            "POST /v1/node:drain?x=1",
            "GET /nowhere",
        ] {
            said.add(line, http(&web, line, shown));
        }
        let commands = ["PING", "INFO", "ID.INFO", "CONFIG GET *", "CLIENT LIST", "NOSUCH x"];
        let commands = commands.map(|command| format!("{command}\r\n")).concat();
        said.add("RESP", exchange(&resp, format!("AUTH {shown}\r\n{commands}QUIT\r\n").as_bytes()));
        said.add(
            "HELLO",
            exchange(&resp, format!("HELLO 3 AUTH u {shown}\r\nQUIT\r\n").as_bytes()),
        );
        said.add("gRPC", grpc(&rpc, shown));
    }
}

/// Where a password can stand.
#[derive(Clone, Copy, Debug)]
enum Put {
    Url,
    File,
    Variable,
}

fn keyed(desk: &Desk) -> (String, String) {
    let file = desk.home().join("keys.toml").display().to_string();
    let args =
        ["key", "new", "--name", "operator", "--role", "ids,read,admin,peer", "--file", &file];
    let key = desk.data(&args).trim().to_owned();
    (file, key)
}

fn check_store_password(put: Put) {
    let password = format!("canary-of-{put:?}").to_lowercase();
    let redis = Redis::builder().password(&password).start().unwrap();
    let desk = Desk::new();
    let (keys, key) = keyed(&desk);
    let secret = key.rsplit('_').next().unwrap().to_owned();
    let wrong = "frz_00000000_canary-of-a-wrong-key";
    let bare = redis.address();
    let (url, desk) = match put {
        Put::Url => (format!("redis://:{password}@{bare}"), desk),
        Put::File => {
            let file = desk.home().join("password");
            fs::write(&file, &password).unwrap();
            (format!("redis://{bare}?password_file={}", file.display()), desk)
        }
        Put::Variable => (format!("redis://{bare}"), desk.env("FRAZIL_STORE_PASSWORD", &password)),
    };
    let place = ["--store", &url, "--namespace", VISIBLE];
    let mut said = Said::default();
    // A namespace that is known to be new need not be waited for.
    said.run(&desk, &[&["store", "init"][..], &place].concat());
    for format in ["text", "json"] {
        let free = ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0"];
        let more = ["--keys", &keys, "--log", ALL, "--log-format", format];
        let mut served =
            Logged::start(desk.command(&[&["serve"][..], &place, &free, &more].concat()));
        served.wait_for("the node is ready", 1);
        if format == "text" {
            talk(&mut said, &served, &key, wrong);
        }
        served.signal("-HUP");
        served.wait_for("read again: ", 1);
        assert!(served.stop().success());
        said.add("the log", served.lines().join("\n"));
    }
    for command in
        [&["workers", "ls"][..], &["store", "show"], &["next", "-n1"], &["store", "export"]]
    {
        said.run(&desk, &[command, &place].concat());
    }
    said.run(&desk, &["config", "show", "--origin", "--store", &url]);
    said.run(&desk, &["config", "show", "--json", "--store", &url, "--heartbeat", "29s"]);
    said.run(&desk, &["config", "check", "--store", &url, "--heartbeat", "29s"]);
    said.run(&desk, &["doctor", "--json", "--store", &url]);
    said.run(&desk, &["doctor", "--namespace", VISIBLE, "--store", &url]);
    said.run(&desk, &["key", "ls", "--file", &keys]);
    said.run(&desk, &[&["elect", "x"][..], &place, &["--", "true"]].concat());
    said.run(&desk, &[&["elect", "x", "--once"][..], &place].concat());
    said.run(&desk, &[&["jobs", "demo", "--headless", "--jobs", "2"][..], &place].concat());
    said.run(&desk, &[&["jobs", "ls"][..], &place].concat());
    // A server that is gone, another password, and a URL that is wrong.
    redis.kill();
    said.run(&desk, &["next", "--patience", "1s", "--store", &url]);
    said.run(&desk, &["elect", "x", "--once", "--store", &url, "--", "true"]);
    said.run(&desk, &["store", "show", "--store", &url.replace("redis://", "rdis://")]);
    said.run(&desk, &["workers", "ls", "--store", &format!("{url}&nonsense=1")]);
    assert!(said.count(VISIBLE) >= 6, "nothing was looked at");
    assert!(said.count("h2::") >= 1, "the libraries logged nothing");
    said.check(&[&password, &secret, "canary-of-a-wrong-key"]);
}

#[test]
fn a_password_in_the_url_is_not_shown() {
    check_store_password(Put::Url);
}

#[test]
fn a_password_in_a_file_is_not_shown() {
    check_store_password(Put::File);
}

#[test]
fn a_password_in_the_environment_is_not_shown() {
    check_store_password(Put::Variable);
}

#[test]
fn a_private_key_is_not_shown() {
    let certificates = Certificates::generate().unwrap();
    let pem = fs::read_to_string(certificates.server_key()).unwrap();
    let lines: Vec<&str> = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let desk = Desk::new();
    let (keys, _) = keyed(&desk);
    let (cert, key) = (certificates.server_cert().to_str().unwrap(), certificates.server_key());
    let key = key.to_str().unwrap();
    let files = ["--tls-cert", cert, "--tls-key", key, "--keys", &keys];
    let mut said = Said::default();
    let mut served = Logged::start(desk.command(
        &[&["serve", "--dev", "--namespace", VISIBLE, "--log", ALL][..], &files].concat(),
    ));
    served.wait_for("the node is ready", 1);
    let web = served.wait_for("  HTTP  https://", 1);
    said.add("HTTP", exchange(web.rsplit('/').next().unwrap(), b"GET / HTTP/1.1\r\n\r\n"));
    served.signal("-HUP");
    served.wait_for("read again: the certificate", 1);
    assert!(served.stop().success());
    said.add("the log", served.lines().join("\n"));
    said.run(&desk, &[&["config", "show", "--origin"][..], &files].concat());
    // The key where the certificate should be, and the other way round.
    let swapped = ["--tls-cert", key, "--tls-key", cert];
    said.run(&desk, &[&["serve", "--dev"][..], &swapped].concat());
    said.run(&desk, &["serve", "--dev", "--keys", key]);
    said.run(&desk, &["config", "check", "--config", key]);
    assert!(said.count("frazil") >= 3, "nothing was looked at");
    said.check(&lines);
}

/// Neither by the node that shows it nor by the one that it is shown to.
#[test]
fn a_key_for_other_nodes_is_not_shown() {
    let desk = Desk::new();
    let (keys, key) = keyed(&desk);
    let secret = key.rsplit('_').next().unwrap().to_owned();
    let peer = desk.home().join("peer-key");
    fs::write(&peer, &key).unwrap();
    let peer = peer.display().to_string();
    let store = format!("file:{}", desk.home().join("store").display());
    let start = |name: &str| {
        let free = ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--node", name];
        let scoped = ["--scope", "orders=strict", "--keys", &keys, "--peer-key-file", &peer];
        let more = ["--store", &store, "--namespace", VISIBLE, "--log", ALL];
        Logged::start(desk.command(&[&["serve"][..], &free, &scoped, &more].concat()))
    };
    let mut said = Said::default();
    let mut one = start("one");
    one.wait_for("this node leads the scope", 1);
    let mut two = start("two");
    two.wait_for("the node is ready", 1);
    let web = two.wait_for("  HTTP  http://", 1);
    let request = format!(
        "POST /ids?scope=orders HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer \
         {key}\r\n\r\n"
    );
    let answer = exchange(web.rsplit('/').next().unwrap(), request.as_bytes());
    assert!(answer.contains("\"node\":\"one\""), "{answer}");
    said.add("HTTP", answer);
    // The key where an authority should be.
    said.run(&desk, &["serve", "--dev", "--scope", "a=strict", "--peer-ca", &peer]);
    for served in [&mut two, &mut one] {
        served.signal("-HUP");
        served.wait_for("the key for other nodes", 1);
        assert!(served.stop().success());
        said.add("the log", served.lines().join("\n"));
    }
    assert!(said.count("this node leads the scope") >= 1, "nothing was looked at");
    said.check(&[&secret]);
}

/// The search itself: what is there is found.
#[test]
#[should_panic(expected = "the log shows a secret: password canary")]
fn a_secret_that_is_shown_is_found() {
    let mut said = Said::default();
    said.add("the log", "first\npassword canary\nlast");
    said.check(&["canary"]);
}
