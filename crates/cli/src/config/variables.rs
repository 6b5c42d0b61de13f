//! Environment variables: a mistyped one would set nothing, and nobody would notice.

use std::collections::BTreeSet;
use std::env;

use clap::Command;

use super::suggestion::closest;

/// Variables that are read elsewhere than in the command line, or given to the commands that `frazil elect` runs.
const OTHERS: [&str; 14] = [
    "FRAZIL_STATE_DIR",
    "FRAZIL_STORE_PASSWORD",
    "FRAZIL_KEY",
    "FRAZIL_ENDPOINTS",
    "FRAZIL_ZONE",
    "FRAZIL_ELECTION",
    "FRAZIL_INSTANCE",
    "FRAZIL_FENCE",
    "FRAZIL_ELECTION_TTL",
    "FRAZIL_ELECTION_HEARTBEAT",
    "FRAZIL_ELECTION_RETRY",
    "FRAZIL_ELECTION_LOCK_DELAY",
    "FRAZIL_ELECTION_INSTANCE_ID",
    "FRAZIL_ELECTION_HOSTNAME",
];

/// What is wrong with the variables of this process, one message for each.
pub(super) fn unknown(command: &Command) -> Vec<String> {
    let mut known = BTreeSet::from(OTHERS.map(str::to_owned));
    collect(command, &mut known);
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let wrong = names.filter(|name| name.starts_with("FRAZIL_") && !known.contains(name));
    wrong.filter(|name| !is_of_a_service(name)).map(|name| message(&name, &known)).collect()
}

fn message(name: &str, known: &BTreeSet<String>) -> String {
    let advice = match closest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near}?"),
        None => "`frazil serve --help` names those that there are".to_owned(),
    };
    format!("no setting is named {name}: {advice}")
}

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(clap::Arg::get_env);
    known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|command| collect(command, known));
}

/// Whether Kubernetes set it: it tells every pod about services, also about one that is called frazil.
fn is_of_a_service(name: &str) -> bool {
    let is_port =
        |rest: &str| rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.split_once("_PORT").is_some_and(|(_, rest)| is_port(rest.trim_start_matches('_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_services_are_not_settings() {
        for name in [
            "FRAZIL_SERVICE_HOST",
            "FRAZIL_SERVICE_PORT_HTTP",
            "FRAZIL_PORT",
            "FRAZIL_PORT_7780_TCP_ADDR",
            "FRAZIL_NODES_PORT_7780_TCP",
        ] {
            assert!(is_of_a_service(name), "{name}");
        }
        for name in ["FRAZIL_STOER", "FRAZIL_PORTS", "FRAZIL_SERVICE"] {
            assert!(!is_of_a_service(name), "{name}");
        }
    }
}
