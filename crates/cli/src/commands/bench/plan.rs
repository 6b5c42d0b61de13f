//! The plan of a measurement, after everything that was typed has been checked.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use frazil_coord::Secret;

use super::address::Address;
use super::flags;
use crate::args::{AcceptArg, BenchArgs, ProtocolArg};
use crate::output::{Failure, say};
use crate::remote;

/// How long a server is measured unless somebody says.
const DURATION: Duration = Duration::from_secs(10);

/// A measurement of a server.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) address: Address,
    pub(super) call: Call,
    /// IDs in one request.
    pub(super) batch: u64,
    pub(super) scope: Option<String>,
    pub(super) connections: usize,
    pub(super) threads: usize,
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
    /// Requests in a second over all connections; none where each waits for the answer before it.
    pub(super) rate: Option<u64>,
    pub(super) timeout: Duration,
    pub(super) verify: bool,
    /// Whether gRPC is to send runs instead of single IDs.
    pub(super) runs: bool,
    pub(super) key: Option<Secret>,
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
}

/// Which request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Http(AcceptArg),
    Next,
    /// Grants of a stream, so many open at a time.
    Stream(usize),
    /// So many commands at a time.
    Resp(usize),
}

impl Plan {
    pub(super) fn new(args: &BenchArgs) -> Result<Self, Failure> {
        let (demand, address) = (&args.demand, Address::new(args.url.as_deref(), args.protocol)?);
        flags::check_for_server(args, &address)?;
        let key = remote::read_key(args.trust.key_file.as_deref())?;
        key.as_ref().map_or(Ok(()), remote::check_key)?;
        if key.is_some() && !address.is_secure && !address.is_loopback() {
            say("warning: the key is sent without encryption: use a URL with TLS");
        }
        let tls = match address.is_secure {
            true => Some(Arc::new(remote::client_config(&args.trust)?)),
            false => None,
        };
        let connections = usize::try_from(demand.connections).expect("limited by the arguments");
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Ok(Self {
            call: call(args, address.protocol)?,
            address,
            batch: demand.batch,
            scope: demand.scope.clone(),
            connections,
            threads: connections.min(cores),
            warm_up: demand.warmup,
            duration: demand.duration.unwrap_or(DURATION),
            rate: demand.rate,
            timeout: demand.timeout,
            verify: args.verify,
            runs: demand.runs,
            key,
            tls,
        })
    }

    /// What is asked, in a few words.
    pub(super) fn request(&self) -> String {
        let runs = if self.runs { " of runs" } else { "" };
        match self.call {
            Call::Http(AcceptArg::Binary) => "HTTP binary".to_owned(),
            Call::Http(AcceptArg::Json) => "HTTP JSON".to_owned(),
            Call::Http(AcceptArg::Text) => "HTTP text".to_owned(),
            Call::Next => format!("gRPC Next{runs}"),
            Call::Stream(depth) => format!("gRPC Stream{runs}, {depth} open"),
            Call::Resp(depth) => format!("RESP ID.NEXT, pipeline {depth}"),
        }
    }
}

/// The request that the arguments mean; options of another protocol are refused.
fn call(args: &BenchArgs, protocol: ProtocolArg) -> Result<Call, Failure> {
    let demand = &args.demand;
    let is_stream = protocol == ProtocolArg::Grpc && demand.stream;
    let odd = [
        ("--threads", args.threads.is_some(), "--library"),
        ("--clock", args.clock.is_some(), "--library"),
        ("--accept", demand.accept.is_some() && protocol != ProtocolArg::Http, "HTTP"),
        ("--runs", demand.runs && protocol != ProtocolArg::Grpc, "gRPC"),
        ("--stream", demand.stream && protocol != ProtocolArg::Grpc, "gRPC"),
        (
            "--pipeline",
            demand.pipeline.is_some() && protocol != ProtocolArg::Resp && !is_stream,
            "RESP, or for gRPC with --stream",
        ),
    ];
    if let Some((option, _, whose)) = odd.iter().find(|(_, is_odd, _)| *is_odd) {
        let why = format_args!("{option} is for {whose}, and this asks over {}", protocol.word());
        return Err(Failure::usage(why));
    }
    let depth = usize::try_from(demand.pipeline.unwrap_or(1)).expect("limited by the arguments");
    Ok(match protocol {
        ProtocolArg::Http => Call::Http(demand.accept.unwrap_or(AcceptArg::Binary)),
        ProtocolArg::Grpc if is_stream => Call::Stream(depth),
        ProtocolArg::Grpc => Call::Next,
        ProtocolArg::Resp => Call::Resp(depth),
    })
}
