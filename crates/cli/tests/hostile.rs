//! A crowd that means harm, against the real program: nobody else notices, and what it costs is
//! bounded. The allocator keeps some of it afterwards.

mod serving;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use frazil_rig::wait_until;
use serving::Served;

/// Clients that never finish a request.
const SLOW: usize = 2000;
/// Clients that ask for 4 megabytes and read nothing: one in five.
const DEAF: usize = 500;
/// What the crowd may cost: some 100 kilobytes each of those who read nothing, and not 2 megabytes.
const MEMORY_MAX_KB: u64 = 400 * 1024;
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
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn thousands_of_slow_and_deaf_clients_hold_up_nobody() {
    // A lane of this layout has more Ids in a second than all of them ask for.
    let layout = "time:41 worker:6 sequence:16 @2024-01-01T00:00:00Z tick:1ms";
    let limits = ["--head-timeout", "5s", "--write-timeout", "5s", "--layout", layout];
    let mut served = Served::dev(&limits);
    // More than the system's buffers hold.
    let much = "POST /ids?count=100000 HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2);
    ask(&served.http, "POST /ids");
    let before = memory_kb(&served);
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
            peak = peak.max(memory_kb(&served));
        }
    }
    assert!(connections(&served) > 100, "the crowd was never inside");
    for _ in 0..50 {
        ask(&served.http, "POST /ids");
        ask(&served.http, "GET /readyz");
    }
    peak = peak.max(memory_kb(&served));
    // Their own connections are kept open here: it is the server who ends them.
    wait_until("the crowd to be gone", GONE, || connections(&served) <= 1).unwrap();
    drop(crowd);
    let after = memory_kb(&served);
    eprintln!("memory: {before} kB before, {peak} kB at the most, {after} kB after");
    assert!(peak - before < MEMORY_MAX_KB, "{peak} kB");
    assert!(after <= peak, "{after} kB stay");
    ask(&served.http, "POST /ids?count=100000");
    assert!(served.stop().success());
}
