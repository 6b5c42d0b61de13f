//! The server's configuration, made from the arguments.

use std::path::Path;

use frazil::Node;
use frazil::coord::{StoreUrl, Timing};
use frazil_id::{Options, Rollback};
use frazil_server::{Config, DeclaredScope, TlsFiles};

use crate::args::{RollbackArg, ServeArgs};

/// What a server is told. A store in a directory of its own replaces the one that is named.
pub(crate) fn server_config(args: &ServeArgs, scratch: Option<&Path>) -> Result<Config, String> {
    let store = match scratch {
        Some(directory) => StoreUrl::file(directory.display().to_string()),
        None => store_url(args)?,
    };
    Ok(config_of(args, Some(store), scopes(args)?))
}

/// The same with a store and scopes that were made of the arguments before.
pub(super) fn config_of(
    args: &ServeArgs,
    store: Option<StoreUrl>,
    scopes: Vec<DeclaredScope>,
) -> Config {
    let mut config = Config::default();
    config.node = match store {
        Some(store) => node(args).store_url(store),
        None => node(args),
    };
    if let Some(name) = &args.node {
        config.name.clone_from(name);
    }
    config.region = args.region.clone();
    config.zone = args.zone.clone();
    config.advertise = args.advertise.clone();
    config.http = args.listen.http.0;
    config.grpc = args.listen.grpc.0;
    config.resp = args.listen.resp.0;
    config.admin = args.listen.admin.0;
    config.trusted_proxies = args.listen.trusted_proxies.clone();
    config.tls = tls_files(args);
    config.keys = args.keys.clone();
    config.open_metrics = args.open_metrics;
    config.insecure = args.listen.insecure;
    config.threads = args.threads.map_or(config.threads, usize::from);
    config.lanes = args.lanes;
    config.scopes = scopes;
    config.election_ttl = args.election_ttl;
    config.peer_key_file = args.peer.peer_key_file.clone();
    config.peer_ca = args.peer.peer_ca.clone();
    config.limits = args.limits.limits();
    config.drain_delay = args.drain.drain_delay;
    config.drain_timeout = args.drain.drain_timeout;
    config.refusal_limit = args.drain.refusal_limit;
    config
}

/// The configuration without its store, and without scopes that cannot be parsed: enough to check the
/// files that it names.
pub(crate) fn readable_config(args: &ServeArgs) -> Config {
    let scopes = args.scopes.iter().filter_map(|text| DeclaredScope::parse(text).ok());
    config_of(args, None, scopes.collect())
}

/// The scopes that requests may name.
fn scopes(args: &ServeArgs) -> Result<Vec<DeclaredScope>, String> {
    let parsed = args.scopes.iter().map(|text| DeclaredScope::parse(text));
    parsed.collect::<Result<_, _>>().map_err(|error| format!("{error:#}"))
}

/// The store: the one that is named, the fixed worker's, or the default one.
pub(crate) fn store_url(args: &ServeArgs) -> Result<StoreUrl, String> {
    let named = match args.worker {
        Some(worker) => Some(format!("static:{worker}")),
        None => args.place.store.clone(),
    };
    let named: Option<StoreUrl> = named
        .map(|text| text.parse())
        .transpose()
        .map_err(|why: frazil::coord::UrlError| format!("{why:#}"))?;
    let mut url = frazil::store_or_default(named)
        .ok_or_else(|| "there is no state directory: set FRAZIL_STATE_DIR or HOME".to_owned())?;
    if let Some(file) = args.store_password_file.as_deref()
        && !url.hosts.is_empty()
    {
        let file = file.to_str().ok_or("the path of the password's file is not UTF-8")?;
        url.options.entry("password_file".to_owned()).or_insert_with(|| file.to_owned());
    }
    Ok(url)
}

/// The durations of the lease.
pub(crate) const fn timing(args: &ServeArgs) -> Timing {
    let lease = &args.lease;
    Timing::DEFAULT
        .with_ttl(lease.ttl)
        .with_heartbeat(lease.heartbeat)
        .with_outage_budget(lease.outage_budget)
}

/// How generators behave.
pub(super) fn options(args: &ServeArgs) -> Options {
    let rollback = match args.lease.rollback {
        RollbackArg::Refuse => Rollback::Refuse,
        RollbackArg::Ride => Rollback::Ride,
    };
    Options::default().with_max_ahead(args.lease.max_ahead).with_rollback(rollback)
}

fn node(args: &ServeArgs) -> frazil::Builder {
    let node = Node::builder()
        .namespace(args.place.namespace.clone())
        .layout(args.layout.layout)
        .timing(timing(args))
        .options(options(args));
    match args.workers.workers {
        Some((first, last)) => node.workers(first..=last),
        None => node,
    }
}

/// Those that go together; what is missing was refused before.
pub(crate) fn tls_files(args: &ServeArgs) -> Option<TlsFiles> {
    let cert = args.tls.tls_cert.clone()?;
    let key = args.tls.tls_key.clone()?;
    Some(TlsFiles::new(cert, key).with_client_ca(args.tls.tls_client_ca.clone()))
}
