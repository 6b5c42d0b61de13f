//! A crowd that sends half a request each and has no key: what the node holds for it.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_bench::{Table, verdict};

use crate::at_rate::pause;
use crate::fairness::Keys;
use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// Connections, each with half a request.
const CROWD: usize = 2000;
/// What the node may hold with all of them, the node itself included.
const RESIDENT_MAX: u64 = 30_000_000;
/// Bytes of each half, where it is not the head: as much as a window of HTTP/2 lets through.
const HALF: usize = 48_000;
/// How long the node is watched once all are there, and how often it is looked at.
const WATCHED: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn report(_: MeasurementPlan) -> Outcome {
    println!("{CROWD} half requests without a key, on a node with keys");
    let keys = Keys::new()?;
    let mut table = Table::new(&["half of", "MB before", "MB at most", "bar", ""]);
    for (name, place, bytes) in [
        ("a head, HTTP", 0, b"POST /ids HTTP/1.1\r\nhos".to_vec()),
        ("a body, HTTP", 0, half_body()),
        ("a message, gRPC", 1, half_message()),
        ("a command, RESP", 2, half_command()),
    ] {
        let node = Process::start(&["node", &keys.word()])?;
        let before = node.usage()?.resident_bytes;
        let crowd = come(&node.addresses[place], &bytes)?;
        let most = most_resident(&node)?;
        drop(crowd);
        #[expect(clippy::cast_precision_loss, reason = "megabytes")]
        let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        table.row([
            name.into(),
            mb(before),
            mb(most),
            mb(RESIDENT_MAX),
            verdict(most <= RESIDENT_MAX).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn come(address: &str, bytes: &[u8]) -> std::io::Result<Vec<TcpStream>> {
    let mut crowd = Vec::with_capacity(CROWD);
    for _ in 0..CROWD {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        // A node that does not read, or has closed already, is a node that does well.
        let _ = stream.write(bytes);
        crowd.push(stream);
    }
    Ok(crowd)
}

fn most_resident(node: &Process) -> std::io::Result<u64> {
    let (end, mut most) = (boot_time() + WATCHED, 0);
    while boot_time() < end {
        most = most.max(node.usage()?.resident_bytes);
        pause(LOOK_EVERY);
    }
    Ok(most)
}

fn half_body() -> Vec<u8> {
    let head = "POST /v1/ids:decode HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
        content-length: 1000000\r\n\r\n";
    [head.as_bytes(), &[b' '; HALF]].concat()
}

fn half_command() -> Vec<u8> {
    [b"*2\r\n$4\r\nECHO\r\n$200000\r\n".as_slice(), &[b'x'; HALF]].concat()
}

/// HTTP/2 by hand, since no client sends half of anything: a preface, settings, the head of a call,
/// and the beginning of a message that says it is long.
fn half_message() -> Vec<u8> {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const DATA: u8 = 0;
    const END_HEADERS: u8 = 4;
    /// A frame has no more by default.
    const FRAME_MAX: usize = 16_000;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame(&mut bytes, SETTINGS, 0, 0, &[]);
    // Names by their place in the table of HPACK (RFC 7541, appendix A), values as they are.
    let mut head = vec![0x83, 0x86];
    for (name, value) in [
        (&[0x04][..], "/frazil.v1.IdService/Decode"),
        (&[0x01], "x"),
        (&[0x0f, 0x10], "application/grpc"),
        (&[0x00, 2, b't', b'e'], "trailers"),
    ] {
        head.extend(name);
        head.extend(u8::try_from(value.len()));
        head.extend(value.as_bytes());
    }
    frame(&mut bytes, HEADERS, END_HEADERS, 1, &head);
    let mut message = vec![0];
    message.extend(1_000_000_u32.to_be_bytes());
    message.resize(HALF, 0);
    for part in message.chunks(FRAME_MAX) {
        frame(&mut bytes, DATA, 0, 1, part);
    }
    bytes
}

fn frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    bytes.extend(&length[1..]);
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
}
