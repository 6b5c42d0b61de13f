//! A server that speaks just enough HTTP to be measured, and has a bad habit.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Bits below the time in the default layout, and below the worker.
const TIME_SHIFT: u32 = 22;
const WORKER_SHIFT: u32 = 12;
/// A tick to begin with.
const FIRST_TICK: u64 = 1_000_000;
/// Requests that a server answers well before its habit shows.
pub(crate) const HONEST: u64 = 5;

/// What it does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    Honest,
    /// The same IDs again, on another connection's turn too.
    Repeats,
    /// IDs that are new, and smaller than those before.
    GoesBack,
    /// One ID too many.
    Miscounts,
    /// IDs of two workers in one answer.
    MixesWorkers,
    /// Numbers that are no IDs.
    LeavesLayout,
    /// Says that it is overloaded, after its first answer.
    Refuses,
    /// The same after some more.
    RefusesLater,
    /// Closes the connection instead of every eleventh answer.
    HangsUp,
    /// Answers in chunks, as some proxies do.
    Chunks,
    /// Waits that long before one answer.
    StallsOnce(Duration),
}

/// A server on a free port, with a thread for each connection.
pub(crate) struct FalseServer {
    address: String,
    is_over: Arc<AtomicBool>,
    requests: Arc<AtomicU64>,
}

impl FalseServer {
    pub(crate) fn start(habit: Habit) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let requests = Arc::new(AtomicU64::new(0));
        let (over, counted) = (Arc::clone(&is_over), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let requests = Arc::clone(&counted);
                // A client that has gone is the end of it.
                std::thread::spawn(move || drop(serve(&stream, habit, &requests)));
            }
        });
        Self { address, is_over, requests }
    }

    /// How often it was asked for IDs.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for FalseServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(&self.address);
    }
}

fn serve(stream: &TcpStream, habit: Habit, requests: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next().transpose()? {
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        if request.starts_with("GET /v1/info") {
            answer(stream, "200 OK", info().as_bytes())?;
            continue;
        }
        if !request.starts_with("POST /v1/ids") {
            answer(stream, "404 Not Found", b"")?;
            continue;
        }
        let count = request.split("count=").nth(1).unwrap().split(['&', ' ']).next().unwrap();
        let number = requests.fetch_add(1, Ordering::SeqCst);
        match habit {
            Habit::Refuses if number > 0 => {
                answer(stream, "503 Unavailable", problem().as_bytes())?;
                continue;
            }
            Habit::RefusesLater if number > HONEST => {
                answer(stream, "503 Unavailable", problem().as_bytes())?;
                continue;
            }
            Habit::HangsUp if number % 11 == 10 => return Ok(()),
            Habit::StallsOnce(span) if number == HONEST => pass(span),
            _ => {}
        }
        let bytes: Vec<u8> = ids(habit, number, count.parse().unwrap())
            .into_iter()
            .flat_map(u64::to_be_bytes)
            .collect();
        match habit {
            Habit::Chunks => answer_in_chunks(stream, &bytes)?,
            _ => answer(stream, "200 OK", &bytes)?,
        }
    }
    Ok(())
}

/// Waits that long: nobody ever wakes it.
fn pass(span: Duration) {
    let lock = Mutex::new(());
    let asleep = |_: &mut ()| true;
    drop(Condvar::new().wait_timeout_while(lock.lock().unwrap(), span, asleep));
}

/// The IDs of a request. Each has a tick of its own, and the connections' threads take turns, so
/// that they increase on each connection.
fn ids(habit: Habit, number: u64, count: u64) -> Vec<u64> {
    let tick = match habit {
        Habit::Repeats if number > HONEST => FIRST_TICK + number - HONEST,
        Habit::GoesBack => FIRST_TICK - number,
        _ => FIRST_TICK + number,
    };
    let count = if habit == Habit::Miscounts { count + 1 } else { count };
    let mut ids: Vec<u64> =
        (0..count).map(|sequence| tick << TIME_SHIFT | 3 << WORKER_SHIFT | sequence).collect();
    match (habit, ids.last_mut()) {
        (Habit::MixesWorkers, Some(last)) => *last += 1 << WORKER_SHIFT,
        (Habit::LeavesLayout, Some(last)) => *last |= 1 << 63,
        _ => {}
    }
    ids
}

fn answer(mut stream: &TcpStream, status: &str, body: &[u8]) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// In chunks of which none has whole IDs alone, and some come late.
fn answer_in_chunks(mut stream: &TcpStream, body: &[u8]) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
    for chunk in body.chunks(3001) {
        let (begin, end) = chunk.split_at(chunk.len() / 2);
        stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
        stream.write_all(begin)?;
        stream.write_all(&[end, b"\r\n"].concat())?;
    }
    stream.write_all(b"0\r\n\r\n")
}

fn info() -> String {
    let layout = "time:41 worker:10 sequence:12 @2024-01-01T00:00:00Z tick:1ms";
    format!(
        r#"{{"version":"0","layout":{{"text":"{layout}"}},"limits":{{"max_count":1000}},"node":{{"name":"false"}}}}"#
    )
}

fn problem() -> &'static str {
    r#"{"type":"x","title":"x","status":503,"detail":"busy","reason":"OVERLOADED","help":"wait"}"#
}
