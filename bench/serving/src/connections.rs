//! What connections hold that have asked once and say nothing more, beside bare hyper, tonic and tokio.

use std::net::TcpStream;

use frazil_bench::{Table, verdict};
use frazil_wire::proto::NextRequest;
use frazil_wire::proto::id_service_client::IdServiceClient;
use tokio::task::JoinSet;
use tonic::transport::Channel;

use crate::at_rate::pause;
use crate::client::{Client, Request, Workload};
use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// Connections of each protocol.
const IDLE: usize = 5000;
/// What a connection may hold beside that of the bare handler.
const RATIO_MAX: f64 = 1.2;
/// gRPC connections that are made at a time.
const AT_A_TIME: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http,
    Grpc,
    Resp,
}

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    println!("{IDLE} connections after one request each, KB held for each");
    let mut table = Table::new(&["protocol", "bare", "KB", "frazil KB", "ratio", "bar", ""]);
    for (protocol, name, bare) in [
        (Protocol::Http, "HTTP", "hyper"),
        (Protocol::Grpc, "gRPC", "tonic"),
        (Protocol::Resp, "RESP", "tokio"),
    ] {
        let theirs = held(&["bare"], protocol, effort)?;
        let ours = held(&["node", "many"], protocol, effort)?;
        table.row([
            name.into(),
            bare.into(),
            format!("{theirs:.1}"),
            format!("{ours:.1}"),
            format!("{:.2}", ours / theirs),
            format!("{RATIO_MAX:.1}"),
            verdict(ours / theirs <= RATIO_MAX).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// Kilobytes that a process holds for each of them.
fn held(
    role: &[&str],
    protocol: Protocol,
    effort: MeasurementPlan,
) -> Result<f64, Box<dyn std::error::Error>> {
    let node = Process::start(role)?;
    // What the first connection finds cold is not the others' doing.
    drop(Idle::come(&node, protocol, 1)?);
    let before = node.usage()?.resident_bytes;
    let idle = Idle::come(&node, protocol, IDLE)?;
    pause(effort.span / 3);
    let after = node.usage()?.resident_bytes;
    drop(idle);
    #[expect(clippy::cast_precision_loss, reason = "kilobytes")]
    Ok(after.saturating_sub(before) as f64 / IDLE as f64 / 1000.0)
}

/// Connections that are kept and say nothing.
enum Idle {
    Plain { _connections: Vec<TcpStream> },
    // The channels live on the runtime.
    Channels { _runtime: tokio::runtime::Runtime, _channels: Vec<Channel> },
}

impl Idle {
    fn come(
        node: &Process,
        protocol: Protocol,
        count: usize,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let request = match protocol {
            Protocol::Grpc => return channels(&node.addresses[1], count),
            Protocol::Http => Request::JSON,
            Protocol::Resp => Request::Resp,
        };
        let way = Workload { name: "one ID", batch: 1, request };
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            let mut client = Client::open(node, way)?;
            client.ask()?;
            connections.extend(client.into_connection());
        }
        Ok(Self::Plain { _connections: connections })
    }
}

fn channels(address: &str, count: usize) -> Result<Idle, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut channels = Vec::with_capacity(count);
    runtime.block_on(async {
        let mut coming = JoinSet::new();
        for _ in 0..count {
            if coming.len() == AT_A_TIME {
                channels.extend(coming.join_next().await.transpose()?.transpose()?);
            }
            let endpoint = Channel::from_shared(format!("http://{address}"))?;
            coming.spawn(async move {
                let channel = endpoint.connect().await.map_err(|e| e.to_string())?;
                let mut client = IdServiceClient::new(channel.clone());
                client.next(NextRequest::default()).await.map_err(|e| e.to_string())?;
                Ok::<_, String>(channel)
            });
        }
        while let Some(channel) = coming.join_next().await {
            channels.push(channel??);
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    Ok(Idle::Channels { _runtime: runtime, _channels: channels })
}
