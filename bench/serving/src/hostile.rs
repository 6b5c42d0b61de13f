//! What healthy clients notice of hostile ones, and what those cost.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use frazil_bench::Table;

use crate::at_rate::{HEALTHY, paced};
use crate::half;
use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// Clients that never finish a request.
const SLOW: usize = 2000;
/// Clients that ask for much and read nothing.
const DEAF: usize = 500;
/// IDs that each of them asks for: more bytes than the system's buffers hold.
const DEAF_IDS: u64 = 100_000;
/// What they asked for is issued and written as far as it goes within this: it is work as any
/// other, and not what is measured.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    println!(
        "{} while {SLOW} clients never finish a request and {DEAF} read nothing",
        HEALTHY.name
    );
    let node = Process::start(&["node", "lanes=4"])?;
    let mut table = Table::new(&["", "p50 ms", "p99 ms", "p99 ratio", "MiB"]);
    // The first requests find everything cold.
    paced(&node, HEALTHY, effort.span / 3)?;
    let (quiet, _) = paced(&node, HEALTHY, effort.span)?;
    let rest = node.usage()?.resident_bytes;
    let hostile = Hostile::come(&node.addresses[0])?;
    let (busy, _) = paced(&node, HEALTHY, effort.span)?;
    let during = node.usage()?.resident_bytes;
    drop(hostile);
    let (after, _) = paced(&node, HEALTHY, effort.span)?;
    let left = node.usage()?.resident_bytes;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    let at = |histogram: &hdrhistogram::Histogram<u64>, quantile: f64| {
        histogram.value_at_quantile(quantile) as f64 / 1e6
    };
    let base = at(&quiet, 0.99);
    for (when, histogram, bytes) in
        [("before", &quiet, rest), ("during", &busy, during), ("after", &after, left)]
    {
        table.row([
            when.into(),
            format!("{:.2}", at(histogram, 0.5)),
            format!("{:.2}", at(histogram, 0.99)),
            format!("{:.2}", at(histogram, 0.99) / base),
            (bytes >> 20).to_string(),
        ]);
    }
    println!("{table}");
    half::report(effort)
}

/// Connections of clients that mean harm, for as long as it is kept.
struct Hostile {
    _connections: Vec<TcpStream>,
}

impl Hostile {
    fn come(address: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let mut connections = Vec::with_capacity(SLOW + DEAF);
        for _ in 0..SLOW {
            connections.push(say(address, "POST /ids HTTP/1.1\r\nhos")?);
        }
        for _ in 0..DEAF {
            let request = format!("POST /ids?count={DEAF_IDS} HTTP/1.1\r\nhost: x\r\n\r\n");
            connections.push(say(address, &request)?);
            // So that they do not use up the lane of those who are measured.
            #[expect(clippy::disallowed_methods, reason = "a load generator keeps time")]
            thread::sleep(Duration::from_millis(8));
        }
        #[expect(clippy::disallowed_methods, reason = "a load generator keeps time")]
        thread::sleep(SETTLE);
        Ok(Self { _connections: connections })
    }
}

fn say(address: &str, text: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(text.as_bytes())?;
    Ok(stream)
}
