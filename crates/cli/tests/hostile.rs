//! Crowds that mean harm, against the real program: nobody else notices, and what they cost is
//! bounded and given back.

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
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn crowds_of_slow_and_deaf_clients_hold_up_nobody_and_leave_no_memory_behind() {
    // A lane of this layout has more Ids in a second than all of them ask for.
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
