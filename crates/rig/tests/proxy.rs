//! The proxy's controls act on real connections at once.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use frazil_rig::{Proxy, Redis};

/// Long enough for an answer to come through, short enough to wait in vain for.
const SILENCE: Duration = Duration::from_millis(150);
const LIMIT: Duration = Duration::from_secs(5);

/// A connection that speaks Redis's line protocol.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(proxy: &Proxy) -> Self {
        Self(BufReader::new(TcpStream::connect(proxy.address()).unwrap()))
    }

    fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    fn receive(&mut self, limit: Duration) -> io::Result<String> {
        self.0.get_ref().set_read_timeout(Some(limit)).unwrap();
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line)
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.receive(LIMIT).unwrap()
    }

    fn is_silent(&mut self) -> bool {
        self.receive(SILENCE).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    fn is_closed(&mut self) -> bool {
        self.0.get_ref().set_read_timeout(Some(LIMIT)).unwrap();
        match self.0.read(&mut [0]) {
            Ok(length) => length == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

fn rig() -> (Redis, Proxy) {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    (redis, proxy)
}

#[test]
fn a_healthy_proxy_forwards_and_counts() {
    let (_redis, proxy) = rig();
    let mut client = Client::connect(&proxy);
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    assert_eq!(proxy.connections(), 1);
    assert_eq!(proxy.open_connections(), 1);
    proxy.wait_for_bytes_up(5, LIMIT).unwrap();
    assert_eq!(proxy.bytes_up(), 6);
    proxy.wait_for_bytes_down(6, LIMIT).unwrap();
    assert_eq!(proxy.bytes_down(), 7);
    let error = proxy.wait_for_bytes_up(6, Duration::from_millis(10)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[test]
fn a_held_reply_comes_after_heal_while_the_request_is_done() {
    let (redis, proxy) = rig();
    let mut client = Client::connect(&proxy);
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    proxy.hold_replies();
    let answered = proxy.bytes_answered();
    client.send("INCR n");
    proxy.wait_for_bytes_answered(answered, LIMIT).unwrap();
    assert_eq!(redis.cli(&["GET", "n"]).unwrap(), "1\n");
    assert!(client.is_silent());
    proxy.heal();
    assert_eq!(client.receive(LIMIT).unwrap(), ":1\r\n");
}

#[test]
fn a_dropped_reply_never_comes_and_heal_closes_the_connection() {
    let (redis, proxy) = rig();
    let mut client = Client::connect(&proxy);
    let mut idle = Client::connect(&proxy);
    assert_eq!(client.ask("PING") + &idle.ask("PING"), "+PONG\r\n+PONG\r\n");
    proxy.drop_replies();
    client.send("INCR n");
    proxy.wait_for_bytes_dropped(0, LIMIT).unwrap();
    assert_eq!(proxy.bytes_dropped(), 4);
    assert_eq!(redis.cli(&["GET", "n"]).unwrap(), "1\n");
    assert!(client.is_silent());
    proxy.heal();
    assert!(client.is_closed());
    assert_eq!(idle.ask("PING"), "+PONG\r\n");
}

#[test]
fn a_black_hole_swallows_requests_until_heal() {
    let (redis, proxy) = rig();
    let mut old = Client::connect(&proxy);
    assert_eq!(old.ask("PING"), "+PONG\r\n");
    proxy.black_hole();
    old.send("INCR n");
    let mut new = Client::connect(&proxy);
    new.send("INCR n");
    assert!(old.is_silent() && new.is_silent());
    assert_eq!(redis.cli(&["EXISTS", "n"]).unwrap(), "0\n");
    proxy.heal();
    let mut answers = [old.receive(LIMIT).unwrap(), new.receive(LIMIT).unwrap()];
    answers.sort();
    assert_eq!(answers, [":1\r\n", ":2\r\n"]);
}

#[test]
fn cut_closes_open_and_new_connections_until_heal() {
    let (_redis, proxy) = rig();
    let mut client = Client::connect(&proxy);
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    proxy.cut();
    assert!(client.is_closed());
    assert!(Client::connect(&proxy).is_closed());
    proxy.heal();
    assert_eq!(Client::connect(&proxy).ask("PING"), "+PONG\r\n");
    assert_eq!(proxy.connections(), 3);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the delay is what is measured")]
fn each_direction_has_its_delay() {
    let (_redis, proxy) = rig();
    let mut client = Client::connect(&proxy);
    proxy.delay_requests(Duration::from_millis(60));
    proxy.delay_replies(Duration::from_millis(40));
    let start = Instant::now();
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[test]
fn cut_ends_a_long_delay_at_once() {
    let (_redis, proxy) = rig();
    let mut client = Client::connect(&proxy);
    proxy.delay(Duration::from_secs(3600));
    client.send("PING");
    proxy.cut();
    assert!(client.is_closed());
}

#[test]
fn a_new_target_gets_the_new_connections() {
    let (one, proxy) = rig();
    let other = Redis::start().unwrap();
    one.cli(&["SET", "name", "one"]).unwrap();
    other.cli(&["SET", "name", "other"]).unwrap();
    let mut old = Client::connect(&proxy);
    assert_eq!(old.ask("GET name"), "$3\r\n");
    proxy.retarget(other.address()).unwrap();
    assert_eq!(Client::connect(&proxy).ask("GET name"), "$5\r\n");
    proxy.disconnect();
    assert_eq!(old.receive(LIMIT).unwrap(), "one\r\n");
    assert!(old.is_closed());
}

#[test]
fn a_dead_target_is_seen_as_a_closed_connection() {
    let (redis, proxy) = rig();
    let mut client = Client::connect(&proxy);
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    redis.kill();
    assert!(client.is_closed());
    assert!(Client::connect(&proxy).is_closed());
    redis.restart().unwrap();
    assert_eq!(Client::connect(&proxy).ask("PING"), "+PONG\r\n");
}

#[test]
fn a_dropped_proxy_closes_its_connections() {
    let (_redis, proxy) = rig();
    let mut client = Client::connect(&proxy);
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    let address = proxy.address();
    proxy.black_hole();
    drop(proxy);
    assert!(client.is_closed());
    assert!(TcpStream::connect(address).is_err());
}
