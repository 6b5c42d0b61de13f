//! Versions get along: today's types read the answers of every version that was released, and of those to come.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;

use frazil_wire::{Cluster, Drained, Election, Elections, IdsReply, Info, Problem, Rotated};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The versions whose answers are kept.
const VERSIONS: &[&str] = &["0.1.0"];

/// Fields without which an answer means nothing, or whose default would be taken at its word.
const NEEDED: &[&str] = &[
    "ids.ids",
    "ids.count",
    "ids.metadata",
    "ids.metadata.node",
    "ids.metadata.worker",
    "ids.metadata.token",
    "info.version",
    "info.namespace",
    "info.layout",
    "info.layout.text",
    "info.layout.fingerprint",
    "info.layout.epoch_ms",
    "info.layout.tick_ms",
    "info.layout.time_bits",
    "info.layout.worker_bits",
    "info.layout.sequence_bits",
    "info.limits",
    "info.limits.max_count",
    "info.limits.max_body_bytes",
    "info.limits.max_wait_ms",
    "info.scopes.name",
    "info.scopes.kind",
    "info.scopes.leader.node",
    "info.scopes.leader.token",
    "info.node",
    "info.node.name",
    "info.node.state",
    "info.lanes.state",
    "info.store.url",
    "info.store.up",
    "cluster.namespace",
    "cluster.nodes",
    "cluster.nodes.name",
    "cluster.scopes.name",
    "cluster.scopes.kind",
    "cluster.scopes.leader.node",
    "cluster.scopes.leader.token",
    "elections.elections",
    "elections.elections.name",
    "elections.elections.is_leader",
    "elections.elections.instance_id",
    "elections.elections.leader_info.instance",
    "elections.elections.leader_info.token",
    "election.name",
    "election.is_leader",
    "election.instance_id",
    "election.leader_info.instance",
    "election.leader_info.token",
    "problem.reason",
    "drained.node",
    "drained.state",
    "drained.released",
    "rotated.node",
    "rotated.moved",
    "rotated.moved.from",
    "rotated.moved.to",
];

/// Does something with every kind of answer, by its name.
macro_rules! for_each_answer {
    ($check:ident($($argument:expr),*)) => {
        $check::<IdsReply>("ids" $(, $argument)*);
        $check::<Info>("info" $(, $argument)*);
        $check::<Cluster>("cluster" $(, $argument)*);
        $check::<Elections>("elections" $(, $argument)*);
        $check::<Election>("election" $(, $argument)*);
        $check::<Problem>("problem" $(, $argument)*);
        $check::<Drained>("drained" $(, $argument)*);
        $check::<Rotated>("rotated" $(, $argument)*);
    };
}

fn folder(version: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(version)
}

fn golden(version: &str, name: &str) -> Value {
    let text = std::fs::read_to_string(folder(version).join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Calls `visit` with every object in a value and its path; the elements of a list have the path of the list.
fn objects(
    value: &mut Value,
    path: &str,
    visit: &mut dyn FnMut(&str, &mut serde_json::Map<String, Value>),
) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|one| objects(one, path, visit)),
        Value::Object(fields) => {
            visit(path, fields);
            for (name, inner) in fields {
                objects(inner, &format!("{path}.{name}"), visit);
            }
        }
        _ => {}
    }
}

#[test]
fn todays_types_read_the_answers_of_every_version_and_lose_nothing() {
    fn check<T: DeserializeOwned + Serialize>(name: &str, version: &str) {
        let before = golden(version, name);
        let read: T = serde_json::from_value(before.clone()).unwrap();
        let mut after = serde_json::to_value(read).unwrap();
        keep_known(&mut after, &before);
        assert_eq!(after, before, "{name} of {version}");
    }
    /// Leaves out what later versions have added.
    fn keep_known(after: &mut Value, before: &Value) {
        match (after, before) {
            (Value::Object(after), Value::Object(before)) => {
                after.retain(|name, _| before.contains_key(name));
                after.iter_mut().for_each(|(name, inner)| keep_known(inner, &before[name]));
            }
            (Value::Array(after), Value::Array(before)) => {
                after.iter_mut().zip(before).for_each(|(after, before)| keep_known(after, before));
            }
            _ => {}
        }
    }
    for version in VERSIONS {
        for_each_answer!(check(version));
    }
}

#[test]
fn a_field_that_another_version_does_not_send_is_not_missed() {
    fn check<T: DeserializeOwned>(name: &str, version: &str, needed: &mut BTreeSet<String>) {
        let whole = golden(version, name);
        let mut paths = BTreeSet::new();
        objects(&mut whole.clone(), name, &mut |path, fields| {
            paths.extend(fields.keys().map(|field| format!("{path}.{field}")));
        });
        for path in paths {
            let mut less = whole.clone();
            objects(&mut less, name, &mut |at, fields| {
                fields.retain(|field, _| format!("{at}.{field}") != path);
            });
            if serde_json::from_value::<T>(less).is_err() {
                needed.insert(path);
            }
        }
    }
    let mut needed = BTreeSet::new();
    for version in VERSIONS {
        for_each_answer!(check(version, &mut needed));
    }
    let listed: BTreeSet<String> = NEEDED.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(needed, listed);
}

#[test]
fn a_field_that_a_later_version_adds_is_ignored() {
    fn check<T: DeserializeOwned + PartialEq + Debug>(name: &str, version: &str) {
        let known = golden(version, name);
        let mut more = known.clone();
        objects(&mut more, name, &mut |path, fields| {
            // What a leader says of itself is a map of texts: it has no fields.
            if !path.ends_with("leader_info.metadata") {
                fields.insert("of_tomorrow".to_owned(), json!(["anything"]));
            }
        });
        assert_ne!(more, known);
        let read = |value: Value| serde_json::from_value::<T>(value);
        assert_eq!(read(more).unwrap(), read(known).unwrap(), "{name} of {version}");
    }
    for version in VERSIONS {
        for_each_answer!(check(version));
    }
}

#[test]
fn a_kind_of_scope_that_a_later_version_adds_is_read_as_unknown() {
    let mut info = golden("0.1.0", "info");
    info["scopes"][0]["kind"] = "gapless".into();
    let info: Info = serde_json::from_value(info).unwrap();
    assert_eq!(info.scopes[0].kind, frazil_wire::ScopeKind::Unknown);
}

/// Numbers, names and types of fields are what a client was built with.
#[test]
fn the_proto_has_everything_that_an_earlier_one_had() {
    let read = |folder: PathBuf| protox::compile(["frazil/v1/ids.proto"], [folder]).unwrap().file;
    let today = read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("proto"));
    for version in VERSIONS {
        let before = read(folder(version).join("proto"));
        let lost = lost(&facts(&before), &facts(&today));
        assert!(lost.is_empty(), "the proto of {version} had {lost:#?}");
    }
    let mut control = today.clone();
    control[0].message_type[0].field.remove(0);
    assert_eq!(lost(&facts(&today), &facts(&control)).len(), 1, "a control");
}

fn lost(before: &BTreeSet<String>, today: &BTreeSet<String>) -> Vec<String> {
    before.difference(today).cloned().collect()
}

/// A line for each thing in a proto that a client may rely on.
fn facts(files: &[prost_types::FileDescriptorProto]) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    for file in files.iter().filter(|file| file.package() == "frazil.v1") {
        file.message_type.iter().for_each(|message| message_facts("", message, &mut facts));
        for list in &file.enum_type {
            let values = list.value.iter();
            facts.extend(values.map(|v| format!("{}.{} = {}", list.name(), v.name(), v.number())));
        }
        for service in &file.service {
            facts.extend(service.method.iter().map(|method| {
                let (from, to) = (method.input_type(), method.output_type());
                let streams = (method.client_streaming(), method.server_streaming());
                format!("{}/{} {from} {to} {streams:?}", service.name(), method.name())
            }));
        }
    }
    facts
}

fn message_facts(
    outer: &str,
    message: &prost_types::DescriptorProto,
    facts: &mut BTreeSet<String>,
) {
    let name = format!("{outer}.{}", message.name());
    for field in &message.field {
        let kind = (field.r#type(), field.type_name(), field.label(), field.proto3_optional());
        facts.insert(format!("{name}.{} = {} {kind:?}", field.name(), field.number()));
    }
    message.nested_type.iter().for_each(|inner| message_facts(&name, inner, facts));
}
