//! The table of keys has everything, and means what the server means.

use std::collections::BTreeSet;
use std::path::Path;

use clap::FromArgMatches;
use frazil_server::{Config, Limits};

use super::*;

/// The names of all fields; a field that is not listed does not compile.
macro_rules! fields {
    ($value:expr, $type:ident { $($field:ident),* $(,)? }) => {{
        let $type { $($field: _),* } = $value;
        [$(stringify!($field)),*]
    }};
}

fn defaults() -> ServeArgs {
    let matches = layers::bare_command().get_matches_from(["frazil"]);
    ServeArgs::from_arg_matches(&matches).unwrap()
}

#[test]
fn every_limit_of_the_server_is_a_key_of_its_name() {
    let limits = fields!(
        Limits::default(),
        Limits {
            max_count,
            max_wait,
            max_body_bytes,
            max_head_bytes,
            max_uri_bytes,
            max_headers,
            max_waiting,
            max_in_flight,
            max_connections,
            max_connections_per_peer,
            max_failed_keys,
            max_streams,
            max_resets,
            max_command_bytes,
            max_pipeline,
            handshake_timeout,
            auth_timeout,
            head_timeout,
            body_timeout,
            write_timeout,
            idle_timeout,
            resp_idle_timeout,
            request_timeout,
        }
    );
    let keys: BTreeSet<_> =
        KEYS.iter().filter(|key| key.section == "limits").map(|key| key.name).collect();
    assert_eq!(keys, BTreeSet::from(limits));
}

#[test]
fn every_field_of_the_server_is_some_key() {
    let fields = fields!(
        Config::default(),
        Config {
            node,
            name,
            region,
            zone,
            advertise,
            http,
            grpc,
            resp,
            admin,
            trusted_proxies,
            tls,
            keys,
            open_metrics,
            insecure,
            threads,
            lanes,
            scopes,
            election_ttl,
            peer_key_file,
            peer_ca,
            limits,
            drain_delay,
            drain_timeout,
            refusal_limit,
        }
    );
    for field in fields {
        let is_key = KEYS.iter().any(|key| {
            let joined = format!("{}_{}", key.section, key.name);
            key.name == field || key.section == field || joined == field
        });
        assert!(is_key, "{field}");
    }
}

#[test]
fn every_argument_but_two_is_a_key_with_a_flag_and_a_variable() {
    let command = settings_command();
    let arguments: BTreeSet<_> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
    let keys: BTreeSet<_> = KEYS.iter().map(|key| key.argument).collect();
    assert_eq!(keys.len(), KEYS.len(), "no argument has two keys");
    let rest: Vec<_> = arguments.difference(&keys).copied().collect();
    assert_eq!((rest, keys.is_subset(&arguments)), (vec!["config", "dev"], true));
    for arg in command.get_arguments().filter(|arg| arg.get_id() != "dev") {
        let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
        assert!(arg.get_long().is_some(), "{arg}");
        assert!(variable.is_some_and(|name| name.starts_with("FRAZIL_")), "{arg}");
    }
}

#[test]
fn the_defaults_are_those_of_the_server() {
    let (ours, theirs) =
        (server_config(&defaults(), Some(Path::new("/x"))).unwrap(), Config::default());
    assert_eq!(ours.limits, theirs.limits);
    let shown = |config: Config| {
        let store = frazil::coord::StoreUrl::file("/x");
        format!("{:#?}", Config { node: config.node.store_url(store), ..config })
    };
    assert_eq!(shown(ours), shown(theirs));
}

#[test]
fn keys_of_a_section_stand_together() {
    let sections: Vec<_> = key::sections().collect();
    let distinct: BTreeSet<_> = sections.iter().collect();
    assert_eq!(sections.len(), distinct.len(), "{sections:?}");
}
