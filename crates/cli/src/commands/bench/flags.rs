//! Flags that do not go with what is measured: a flag that changes nothing is a mistake. What comes
//! from the environment is for other commands too, and is no mistake.

use std::env;
use std::path::Path;

use frazil_id::Layout;

use super::address::Address;
use super::client::Facts;
use crate::args::{BenchArgs, LAYOUT_VARIABLE};
use crate::output::Failure;

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
pub(super) fn check_for_server(args: &BenchArgs, address: &Address) -> Result<(), Failure> {
    let has_secure_metrics = args.metrics.as_ref().is_some_and(|url| url.starts_with("https:"));
    if address.is_secure || has_secure_metrics {
        return Ok(());
    }
    let Some(flag) = typed_for_tls(args) else { return Ok(()) };
    let secure = Address { is_secure: true, ..address.clone() };
    Err(Failure::usage(format_args!(
        "{flag} is for TLS, and {address} has none: write {secure}, or leave {flag} out"
    )))
}

/// The layout to check IDs by: the server's own, or what was typed for one that does not say.
pub(super) fn layout(args: &BenchArgs, facts: Option<&Facts>) -> Result<Layout, Failure> {
    let Some(facts) = facts else { return Ok(args.layout.unwrap_or(Layout::FRAZIL)) };
    let from_environment = || env::var(LAYOUT_VARIABLE).ok()?.parse::<Layout>().ok();
    match args.layout {
        Some(typed) if typed != facts.layout && from_environment() != Some(typed) => {
            Err(Failure::usage(format_args!(
                "--layout says \"{typed}\", and the server's IDs have \"{}\": leave --layout out, \
                 it is for --library and for servers that do not say their own",
                facts.layout
            )))
        }
        _ => Ok(facts.layout),
    }
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
