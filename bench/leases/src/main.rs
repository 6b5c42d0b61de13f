//! How fast a crowd of nodes gets its workers: 1,024 claims within a moment on a pool of 1,024, on
//! real servers, beside as many bare writes on the same store in the same run.
#![expect(clippy::print_stdout, reason = "the report")]

mod crowd;
mod server;

use std::time::Duration;

use frazil_bench::{Table, machine, verdict};

use crate::crowd::Crowd;
use crate::server::Server;

/// What the design asks for: a time, and operations a claim on average, where they are counted.
const BARS: [(&str, Duration, Option<f64>); 4] = [
    ("file", Duration::from_secs(1), None),
    ("redis", Duration::from_secs(1), Some(2.0)),
    ("etcd", Duration::from_secs(5), Some(4.0)),
    ("zk", Duration::from_secs(5), Some(4.0)),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", machine());
    println!(
        "1,024 claims at once on 1,024 workers; beside it 1,024 bare writes on the same store\n"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut table = Table::new(&[
        "store",
        "claims ms",
        "writes ms",
        "ratio",
        "ops/claim",
        "first Id ms",
        "bar",
        "",
    ]);
    for (name, limit, most) in BARS {
        let server = Server::start(name)?;
        let crowd = runtime.block_on(Crowd::measure(&server))?;
        let within = crowd.claims <= limit
            && most.zip(crowd.operations).is_none_or(|(most, done)| done <= most);
        let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1000.0);
        table.row([
            name.into(),
            ms(crowd.claims),
            ms(crowd.writes),
            format!("{:.2}", crowd.claims.as_secs_f64() / crowd.writes.as_secs_f64()),
            crowd.operations.map_or("-".into(), |operations| format!("{operations:.2}")),
            ms(crowd.first_id),
            format!(
                "{} s{}",
                limit.as_secs(),
                most.map_or(String::new(), |most| format!(", {most} ops"))
            ),
            verdict(within).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}
