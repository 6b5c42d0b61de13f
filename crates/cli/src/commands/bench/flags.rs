//! The flags of a measurement: the plan that they make, and those that do not go with it. A flag that
//! changes nothing is a mistake. What comes from the environment is for other commands too, and is no
//! mistake.

use std::env;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frazil_id::Layout;
use frazil_load::{Accept, Address, Call, Error, Pages, Plan, Protocol};

use crate::args::{AcceptArg, BenchArgs, LAYOUT_VARIABLE, ProtocolArg, ServerArg};
use crate::output::{Exit, Failure, say};
use crate::remote::{self, Server};

/// The measurement of a server that the arguments mean.
pub(super) fn plan(args: &BenchArgs) -> Result<Plan, Failure> {
    let (demand, address) = (&args.demand, address(args)?);
    check_for_server(args, &address)?;
    let key = remote::read_key(args.trust.key_file.as_deref())?;
    key.as_ref().map_or(Ok(()), remote::check_key)?;
    if key.is_some() && !address.is_secure() && !address.is_loopback() {
        say("warning: the key is sent without encryption: use a URL with TLS");
    }
    let call = call(args, address.protocol())?;
    let tls = address.is_secure().then(|| remote::client_config(&args.trust)).transpose()?;
    let mut plan = Plan::new(address, call);
    plan.tls = tls.map(Arc::new);
    plan.batch = demand.batch;
    plan.scope = demand.scope.clone();
    plan.connections = usize::try_from(demand.connections).expect("limited by the arguments");
    plan.warm_up = demand.warmup;
    plan.duration = demand.duration.unwrap_or(plan.duration);
    plan.rate = demand.rate;
    plan.timeout = demand.timeout;
    plan.verify = args.verify;
    plan.runs = demand.runs;
    plan.layout = args.layout.unwrap_or(plan.layout);
    plan.expected_layout = typed_layout(args);
    plan.pid = args.pid.map(NonZero::get);
    plan.are_pages_named = args.metrics.is_some();
    plan.pages = pages(args, &plan.address)?;
    key.map_or(Ok(()), |key| plan.set_key(key.reveal()))?;
    Ok(plan)
}

/// What was typed, or the local node.
fn address(args: &BenchArgs) -> Result<Address, Failure> {
    let protocol = args.protocol.map(Protocol::from);
    let Some(url) = &args.url else {
        return Ok(Address::local(protocol.unwrap_or(Protocol::Http)));
    };
    let address: Address = url.parse()?;
    match protocol {
        Some(protocol) if protocol != address.protocol() => Err(Failure::usage(format_args!(
            "the URL means {} and --protocol says {}: leave one of them out",
            address.protocol().word(),
            protocol.word()
        ))),
        _ => Ok(address),
    }
}

/// The request that the arguments mean; options of another protocol are refused.
fn call(args: &BenchArgs, protocol: Protocol) -> Result<Call, Failure> {
    let demand = &args.demand;
    let is_stream = protocol == Protocol::Grpc && demand.stream;
    let odd = [
        ("--threads", args.threads.is_some(), "--library"),
        ("--clock", args.clock.is_some(), "--library"),
        ("--accept", demand.accept.is_some() && protocol != Protocol::Http, "HTTP"),
        ("--runs", demand.runs && protocol != Protocol::Grpc, "gRPC"),
        ("--stream", demand.stream && protocol != Protocol::Grpc, "gRPC"),
        (
            "--pipeline",
            demand.pipeline.is_some() && protocol != Protocol::Resp && !is_stream,
            "RESP, or for gRPC with --stream",
        ),
    ];
    if let Some((option, _, whose)) = odd.iter().find(|(_, is_odd, _)| *is_odd) {
        let why = format_args!("{option} is for {whose}, and this asks over {}", protocol.word());
        return Err(Failure::usage(why));
    }
    let depth = usize::try_from(demand.pipeline.unwrap_or(1)).expect("limited by the arguments");
    Ok(match protocol {
        Protocol::Http => Call::Http(demand.accept.map_or(Accept::Binary, Accept::from)),
        Protocol::Grpc if is_stream => Call::Stream(depth),
        Protocol::Grpc => Call::Next,
        Protocol::Resp => Call::Resp(depth),
    })
}

impl From<ProtocolArg> for Protocol {
    fn from(arg: ProtocolArg) -> Self {
        match arg {
            ProtocolArg::Http => Self::Http,
            ProtocolArg::Grpc => Self::Grpc,
            ProtocolArg::Resp => Self::Resp,
        }
    }
}

impl From<AcceptArg> for Accept {
    fn from(arg: AcceptArg) -> Self {
        match arg {
            AcceptArg::Json => Self::Json,
            AcceptArg::Text => Self::Text,
            AcceptArg::Binary => Self::Binary,
        }
    }
}

/// The node's own pages: those that were named, or those beside the address, if they are known.
fn pages(args: &BenchArgs, address: &Address) -> Result<Option<Arc<dyn Pages>>, Failure> {
    let arg = ServerArg { server: None, trust: args.trust.clone() };
    let server = match (&args.metrics, address.http_base()) {
        (Some(url), _) => {
            let base = url.trim_end_matches('/');
            Some(Server::new(base.strip_suffix("/metrics").unwrap_or(base), &arg)?)
        }
        (None, Some(base)) => Server::new(&base, &arg).ok(),
        (None, None) => None,
    };
    Ok(server.map(|server| Arc::new(server) as Arc<dyn Pages>))
}

impl Pages for Server {
    fn base(&self) -> &str {
        Self::base(self)
    }

    fn get(&self, path: &str, within: Duration) -> Result<(u16, String), Error> {
        self.look(path, within).map_err(|failure| match failure {
            Failure::Message(Exit::Usage, why) => Error::Usage(why),
            Failure::Message(_, why) => Error::Unavailable(why),
            other => Error::Unavailable(format!("{other:?}")),
        })
    }
}

/// Refuses what only a server could make use of.
pub(super) fn check_for_library(args: &BenchArgs) -> Result<(), Failure> {
    let trust = &args.trust;
    let key_file = is_typed(trust.key_file.as_deref(), "FRAZIL_KEY_FILE").then_some("--key-file");
    match key_file.or_else(|| typed_for_tls(args)) {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format_args!(
            "{flag} is for a server, and --library asks none: leave one of them out"
        ))),
    }
}

/// Refuses what only a server with TLS could make use of, where there is none.
fn check_for_server(args: &BenchArgs, address: &Address) -> Result<(), Failure> {
    let has_secure_metrics = args.metrics.as_ref().is_some_and(|url| url.starts_with("https:"));
    if address.is_secure() || has_secure_metrics {
        return Ok(());
    }
    let Some(flag) = typed_for_tls(args) else { return Ok(()) };
    let secure = address.secure();
    Err(Failure::usage(format_args!(
        "{flag} is for TLS, and {address} has none: write {secure}, or leave {flag} out"
    )))
}

/// A layout that was typed, and not taken from the environment, where it is for other commands.
fn typed_layout(args: &BenchArgs) -> Option<Layout> {
    let from_environment = || env::var(LAYOUT_VARIABLE).ok()?.parse::<Layout>().ok();
    args.layout.filter(|typed| from_environment() != Some(*typed))
}

/// The first flag about TLS that was typed.
fn typed_for_tls(args: &BenchArgs) -> Option<&'static str> {
    let trust = &args.trust;
    [
        ("--ca", &trust.ca, "FRAZIL_CA"),
        ("--cert", &trust.cert, "FRAZIL_CERT"),
        ("--cert-key", &trust.cert_key, "FRAZIL_CERT_KEY"),
    ]
    .into_iter()
    .find_map(|(flag, path, variable)| is_typed(path.as_deref(), variable).then_some(flag))
}

/// Whether a path was typed, and does not come from a variable.
fn is_typed(path: Option<&Path>, variable: &str) -> bool {
    path.is_some_and(|path| env::var_os(variable).is_none_or(|value| value != *path.as_os_str()))
}
