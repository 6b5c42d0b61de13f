//! The table of keys has everything, and means what the server means.

use std::collections::BTreeSet;
use std::path::Path;

use clap::FromArgMatches;
use frazil_server::{Config, Limits};

use super::*;

/// The names of all fields of a struct whose `Debug` is derived.
fn fields(value: &impl std::fmt::Debug) -> BTreeSet<String> {
    let text = format!("{value:#?}");
    let own = text.lines().filter_map(|line| line.strip_prefix("    "));
    let own = own.filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    own.filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
}

fn defaults() -> ServeArgs {
    let matches = layers::bare_command().get_matches_from(["frazil"]);
    ServeArgs::from_arg_matches(&matches).unwrap()
}

#[test]
fn every_limit_of_the_server_is_a_key_of_its_name() {
    let limits = fields(&Limits::default());
    assert!(limits.contains("max_count"), "{limits:?}");
    let keys: BTreeSet<_> =
        KEYS.iter().filter(|key| key.section == "limits").map(|key| key.name.to_owned()).collect();
    assert_eq!(keys, limits);
}

#[test]
fn every_field_of_the_server_is_some_key() {
    let fields = fields(&Config::default());
    assert!(fields.contains("node") && fields.contains("refusal_limit"), "{fields:?}");
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
    let shown = |mut config: Config| {
        config.node = config.node.store_url(frazil::coord::StoreUrl::file("/x"));
        format!("{config:#?}")
    };
    assert_eq!(shown(ours), shown(theirs));
}

#[test]
fn keys_of_a_section_stand_together() {
    let sections: Vec<_> = key::sections().collect();
    let distinct: BTreeSet<_> = sections.iter().collect();
    assert_eq!(sections.len(), distinct.len(), "{sections:?}");
}
