//! Crowds that mean harm, against the real program: nobody else notices, and what they cost is
//! bounded and given back.

#[path = "it/desk.rs"]
mod desk;
#[path = "it/serving.rs"]
mod serving;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use desk::Desk;
use frazil_rig::wait_until;
use serving::Served;

/// Clients that never finish a request.
const SLOW: usize = 2000;
/// Clients that ask for 4 megabytes and read nothing: one in five.
const DEAF: usize = 500;
/// What the crowd may cost: some 100 kilobytes each of those who read nothing, and not 2 megabytes.
const MEMORY_MAX_KB: u64 = 400 * 1024;
/// What may be left of it, after the first crowd and after the second: buffers that the threads
/// keep at hand. Where memory stays with the allocator it is much more.
const LEFT_MAX_KB: u64 = 12 * 1024;
/// How long memory may take to go back. Nobody asks for anything meanwhile.
const GIVEN_BACK: Duration = Duration::from_secs(20);
/// How long the last of them may stay: the limits below, and a slow machine.
const GONE: Duration = Duration::from_secs(60);

/// Opens a connection, says something and leaves it at that.
fn say(address: &str, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// A request of somebody who means well; must succeed.
fn ask(address: &str, request: &str) -> String {
    let mut stream =
        say(address, &format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"));
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{request}: {answer}");
    answer
}

fn connections(served: &Served) -> usize {
    let page = ask(&served.http, "GET /metrics");
    let line =
        page.lines().find_map(|line| line.strip_prefix("frazil_connections{listener=\"http\"} "));
    line.unwrap().parse().unwrap()
}

fn memory_kb(served: &Served) -> u64 {
    memory_line_kb(served, "VmRSS:")
}

fn memory_line_kb(served: &Served, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn crowds_of_slow_and_deaf_clients_hold_up_nobody_and_leave_no_memory_behind() {
    // A lane of this layout has more IDs in a second than all of them ask for.
    let layout = "time:41 worker:6 sequence:16 @2024-01-01T00:00:00Z tick:1ms";
    let limits = ["--head-timeout", "5s", "--write-timeout", "5s", "--layout", layout];
    let mut served = Served::dev(&limits);
    ask(&served.http, "POST /ids");
    let before = memory_kb(&served);
    for crowd in ["first", "second"] {
        let peak = endure(&served);
        let mut after = 0;
        let is_back = wait_until("memory to go back", GIVEN_BACK, || {
            after = memory_kb(&served);
            after <= before + LEFT_MAX_KB
        });
        eprintln!("{crowd} crowd: {before} kB before, {peak} kB at the most, {after} kB after");
        assert!(peak - before < MEMORY_MAX_KB, "the {crowd} crowd took {peak} kB");
        // Else there is nothing to give back, and the next line proves nothing.
        assert!(peak > before + LEFT_MAX_KB, "the {crowd} crowd took no more than {peak} kB");
        assert!(is_back.is_ok(), "the {crowd} crowd left {after} kB of {before} kB");
    }
    ask(&served.http, "POST /ids?count=100000");
    assert!(served.stop().success());
}

/// Lets a crowd come and waits until the server is rid of it; the most memory seen meanwhile.
fn endure(served: &Served) -> u64 {
    // More than the system's buffers hold.
    let much = "POST /ids?count=100000 HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2);
    let mut crowd = Vec::with_capacity(SLOW + DEAF);
    let mut peak = 0;
    for number in 0..SLOW + DEAF {
        if number % 5 == 0 {
            crowd.push(say(&served.http, &much));
        } else {
            crowd.push(say(&served.http, "POST /ids HTTP/1.1\r\nhos"));
        }
        if number % 25 == 0 {
            assert!(ask(&served.http, "POST /ids?count=10").contains("\"count\":10"));
            peak = peak.max(memory_kb(served));
        }
    }
    assert!(connections(served) > 100, "the crowd was never inside");
    for _ in 0..50 {
        ask(&served.http, "POST /ids");
        ask(&served.http, "GET /readyz");
    }
    peak = peak.max(memory_kb(served));
    // Their own connections are kept open here: it is the server who ends them.
    wait_until("the crowd to be gone", GONE, || connections(served) <= 1).unwrap();
    peak
}

/// Clients of whom each sends half a request, and what all of them may cost.
const HALVES: usize = 2000;
const HALVES_MAX_KB: u64 = 30 * 1024;
/// Bytes of those halves that have a body: as many as the window of an HTTP/2 stream.
const HALF_BODY: usize = 48_000;

#[test]
fn crowds_of_half_requests_without_a_key_hold_little() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    desk.data(&["key", "new", "--name", "app", "--role", "ids", "--file", file]);
    let long_head = format!("POST /ids HTTP/1.1\r\nhost: x\r\na: {}", "b".repeat(7000));
    let decode = "/frazil.v1.IdService/Decode";
    let http: [(&str, Vec<u8>); 5] = [
        ("half a head", b"POST /ids HTTP/1.1\r\nhos".to_vec()),
        ("half a head after a probe", half_after("GET /livez")),
        ("half a head after a refusal", half_after("POST /ids")),
        ("half a long head", long_head.into_bytes()),
        ("half a body", half_body()),
    ];
    let grpc: [(&str, Vec<u8>); 6] = [
        ("half a preface", PREFACE[..20].to_vec()),
        ("a greeting", PREFACE.to_vec()),
        ("half a head of a call", [PREFACE, &frame(1, 0, &head_of(decode))].concat()),
        ("a ping", [PREFACE, &frame(6, 0, &[0; 8])].concat()),
        ("half a message", half_message(decode)),
        ("half a probe", half_message("/grpc.health.v1.Health/Check")),
    ];
    for (name, bytes) in &http {
        check_halves(file, name, bytes, |served| &served.http);
    }
    for (name, bytes) in &grpc {
        check_halves(file, name, bytes, |served| &served.grpc);
    }
}

fn check_halves(keys: &str, name: &str, bytes: &[u8], address: impl Fn(&Served) -> &String) {
    let mut served = Served::dev(&["--keys", keys]);
    // What the first ones need once is not theirs.
    drop((0..10).map(|_| part(address(&served), bytes)).collect::<Vec<_>>());
    ask(&served.http, "GET /livez");
    let before = memory_kb(&served);
    let crowd: Vec<_> = (0..HALVES).map(|_| part(address(&served), bytes)).collect();
    // They came before these, so they are inside.
    for _ in 0..20 {
        ask(&served.http, "GET /livez");
    }
    let peak = memory_line_kb(&served, "VmHWM:");
    assert!(peak - before < HALVES_MAX_KB, "{name}: {before} kB before, {peak} kB at the most");
    drop(crowd);
    assert!(served.stop().success());
}

/// Opens a connection and says as much as is taken.
fn part(address: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    // A server that has closed already does well.
    let _ = stream.write(bytes);
    stream
}

/// A request that is answered without a key, and half of another.
fn half_after(request: &str) -> Vec<u8> {
    format!("{request} HTTP/1.1\r\nhost: x\r\n\r\nPOST /ids HTTP/1.1\r\nhos").into_bytes()
}

fn half_body() -> Vec<u8> {
    let head = "POST /v1/ids:decode HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
        content-length: 1000000\r\n\r\n";
    [head.as_bytes(), &[b' '; HALF_BODY]].concat()
}

/// How an HTTP/2 connection begins, with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A frame on stream 1, or on none if it is a ping.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = u8::from(kind != 6);
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// The head of a call: names by their place in the table of HPACK, values as they are.
fn head_of(call: &str) -> Vec<u8> {
    let mut head = vec![0x83, 0x86];
    for (name, value) in [(&[0x04][..], call), (&[0x01], "x"), (&[0x0f, 0x10], "application/grpc")]
    {
        head.extend(name);
        head.extend(u8::try_from(value.len()));
        head.extend(value.as_bytes());
    }
    head
}

/// A call, and the beginning of its message, which is as long as it may be or longer.
fn half_message(call: &str) -> Vec<u8> {
    let (says, has) = match call.contains("Health") {
        true => (1_000_u32, 900),
        false => (1_000_000, HALF_BODY),
    };
    let mut message = vec![0];
    message.extend(says.to_be_bytes());
    message.resize(has, 0);
    let mut bytes = [PREFACE, &frame(1, 4, &head_of(call))].concat();
    for part in message.chunks(16_000) {
        bytes.extend(frame(0, 0, part));
    }
    bytes
}
