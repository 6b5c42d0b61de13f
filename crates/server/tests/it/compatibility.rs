//! Clients of every version that was released find in today's answers what they know, and `openapi.json` describes
//! what the types say, and has lost nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use frazil_id::{Id, Layout};
use frazil_server::DeclaredScope;
use frazil_wire::{
    Cluster, Decoded, Drained, Election, Elections, IdsReply, Info, Problem, Rotated,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::site::{Site, send};

/// The versions whose answers are kept.
const VERSIONS: &[&str] = &["0.1.0"];
/// Bodies of requests: what they must have can only become less.
const REQUESTS: [&str; 2] = ["DecodeRequest", "EncodeRequest"];
/// Between two steps of a place in the description, in which paths have slashes.
const SEPARATOR: &str = " > ";
/// Longer than an election takes.
const LIMIT: Duration = Duration::from_secs(30);

fn golden(version: &str, name: &str) -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../wire/golden").join(version);
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn openapi() -> Value {
    serde_json::from_str(include_str!("../../openapi.json")).unwrap()
}

#[tokio::test]
async fn a_client_of_an_earlier_version_finds_in_every_answer_what_it_knows() {
    let answers = answers().await;
    for version in VERSIONS {
        for (name, today) in &answers {
            let lost = missing(&golden(version, name), today, name);
            assert!(lost.is_empty(), "{name} of {version} had {lost:?}");
        }
    }
    let (mut less, today) = (golden("0.1.0", "info"), golden("0.1.0", "info"));
    less["node"]["state"] = json!(1);
    less["lanes"][0].as_object_mut().unwrap().remove("worker");
    assert_eq!(missing(&today, &less, "info"), ["info.lanes.worker", "info.node.state"]);
}

/// Every kind of answer of a server, by its name among the golden ones.
async fn answers() -> BTreeMap<&'static str, Value> {
    let site = Site::start_with(|config| {
        config.scopes = vec![DeclaredScope::strict("orders"), "mail".into()];
        (config.region, config.zone) = (Some("eu".to_owned()), Some("eu-1".to_owned()));
        config.advertise = Some("http://127.0.0.1:7780".to_owned());
        config.admin = config.http;
    })
    .await;
    let json = async |path: &str| site.get(path).await.json();
    let led = async {
        while json("/v1/info").await["scopes"][0]["leader"].is_null() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, led).await.expect("a leader");
    let admin = async |path: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let reply = send(site.addrs.admin.unwrap(), head.as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    BTreeMap::from([
        ("ids", site.post("/v1/ids?count=2&scope=mail").await.json()),
        ("info", json("/v1/info").await),
        ("cluster", json("/v1/cluster").await),
        ("elections", json("/v1/elections").await),
        ("election", json("/v1/elections/scope:orders").await),
        ("decoded", json("/v1/ids/175928847299117063?layout=discord").await),
        ("rotated", admin("/v1/node:rotate").await),
        ("drained", admin("/v1/node:drain").await),
        ("problem", site.post("/v1/ids").await.json()),
    ])
}

/// What an object had and has not, or has as something else. A list is judged by its first element.
fn missing(before: &Value, today: &Value, path: &str) -> Vec<String> {
    match (before, today) {
        (Value::Object(before), Value::Object(today)) => {
            let of = |(name, before): (&String, &Value)| {
                let path = format!("{path}.{name}");
                match today.get(name) {
                    // What is not so in this case: nothing can be said of it.
                    Some(Value::Null) => Vec::new(),
                    Some(today) => missing(before, today, &path),
                    None => vec![path],
                }
            };
            before.iter().flat_map(of).collect()
        }
        (Value::Array(before), Value::Array(today)) => match (before.first(), today.first()) {
            (Some(before), Some(today)) => missing(before, today, path),
            _ => Vec::new(),
        },
        _ if before.is_null()
            || std::mem::discriminant(before) == std::mem::discriminant(today) =>
        {
            Vec::new()
        }
        _ => vec![path.to_owned()],
    }
}

/// The schema of each type, and an object of that type with all its fields.
fn described() -> Vec<(&'static str, Value)> {
    fn of<T: DeserializeOwned + Serialize>(name: &str) -> Value {
        let full: T = serde_json::from_value(golden("0.1.0", name)).unwrap();
        serde_json::to_value(full).unwrap()
    }
    let id = Id::from_u64(175_928_847_299_117_063);
    let layout: Layout = "discord".parse().unwrap();
    let text = layout.to_string();
    let decoded = Decoded::new(id, id.parts(&layout).unwrap(), &layout, &text);
    vec![
        ("Ids", of::<IdsReply>("ids")),
        ("Info", of::<Info>("info")),
        ("Cluster", of::<Cluster>("cluster")),
        ("Elections", of::<Elections>("elections")),
        ("Election", of::<Election>("election")),
        ("Problem", of::<Problem>("problem")),
        ("Drained", of::<Drained>("drained")),
        ("Rotated", of::<Rotated>("rotated")),
        ("Decoded", serde_json::to_value(decoded).unwrap()),
    ]
}

#[test]
fn the_description_and_the_types_have_the_same_fields() {
    let page = openapi();
    for (name, object) in described() {
        let schema = &page["components"]["schemas"][name];
        assert_eq!(wrong(&page, schema, &object, name), Vec::<String>::new());
    }
    let (name, mut object) = described().remove(1);
    let fields = object["node"].as_object_mut().unwrap();
    fields.remove("zone");
    fields.insert("state".to_owned(), json!(7));
    fields.insert("colour".to_owned(), json!("blue"));
    let found = wrong(&page, &page["components"]["schemas"][name], &object, name);
    let expected = [
        "zone is described",
        "zone is required",
        "colour is not described",
        "state is not a string",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for word in expected {
        assert!(found.iter().any(|fault| fault.contains(word)), "{word}: {found:?}");
    }
}

/// In what a value with all its fields differs from its schema.
fn wrong(page: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let schema = resolved(page, schema);
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let tried = choices.iter().map(|choice| wrong(page, choice, value, path));
        return tried.min_by_key(Vec::len).unwrap_or_default();
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => vec![kind.as_str().unwrap_or("value without a type")],
    };
    if !kinds.iter().any(|kind| is_a(kind, value)) {
        return vec![format!("{path} is not a {}: {value}", kinds.join(" or "))];
    }
    match value {
        Value::Array(elements) => {
            let each = elements.iter().map(|one| wrong(page, &schema["items"], one, path));
            each.flatten().collect()
        }
        // A map: its names are anybody's.
        Value::Object(fields) if schema["additionalProperties"].is_object() => {
            let of = &schema["additionalProperties"];
            fields.values().flat_map(|one| wrong(page, of, one, path)).collect()
        }
        Value::Object(fields) => {
            let described = names(&schema["properties"]);
            let has: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
            let unsaid = has.difference(&described).map(|n| format!("{path}.{n} is not described"));
            let unmade =
                described.difference(&has).map(|n| format!("{path}.{n} is described only"));
            let required = texts(&schema["required"]);
            let absent = required.difference(&has).map(|n| format!("{path}.{n} is required"));
            let inner = described.intersection(&has).flat_map(|name| {
                wrong(page, &schema["properties"][name], &fields[*name], &format!("{path}.{name}"))
            });
            unsaid.chain(unmade).chain(absent).chain(inner).collect()
        }
        _ => Vec::new(),
    }
}

fn resolved<'a>(page: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(at) => page.pointer(at.trim_start_matches('#')).unwrap_or_else(|| panic!("no {at}")),
        None => schema,
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn names(object: &Value) -> BTreeSet<&str> {
    object.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn texts(list: &Value) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn every_reference_in_the_description_leads_somewhere() {
    fn check(page: &Value, value: &Value) {
        if let Value::Object(fields) = value {
            resolved(page, value);
            fields.values().for_each(|inner| check(page, inner));
        }
        value.as_array().into_iter().flatten().for_each(|inner| check(page, inner));
    }
    let page = openapi();
    check(&page, &page);
}

#[test]
fn the_description_has_everything_that_an_earlier_one_had() {
    let today = openapi();
    for version in VERSIONS {
        let before = golden(version, "openapi");
        let lost = lost(&before, &today, "", false);
        assert!(lost.is_empty(), "openapi.json of {version} had {lost:#?}");
    }
    let mut control = today.clone();
    control["paths"].as_object_mut().unwrap().remove("/v1/info");
    control["components"]["schemas"]["Info"]["required"] = json!(["version"]);
    control["components"]["schemas"]["EncodeRequest"]["required"] = json!(["layout"]);
    control["components"]["schemas"]["Scope"]["properties"]["kind"]["enum"] = json!(["plain"]);
    control["components"]["schemas"]["Drained"]["properties"]["node"]["type"] = json!("integer");
    assert_eq!(lost(&today, &control, "", false).len(), 5, "a control");
}

/// What a description had that a client may rely on, and does not have any more.
fn lost(before: &Value, today: &Value, path: &str, is_request: bool) -> Vec<String> {
    let here = || vec![path.to_owned()];
    let last = path.rsplit(SEPARATOR).next().unwrap_or_default();
    match (before, today) {
        // Words may become better; and what was closed may be opened.
        _ if matches!(last, "description" | "summary" | "info" | "tags" | "example") => Vec::new(),
        _ if last == "additionalProperties" && before.is_boolean() => Vec::new(),
        (Value::Array(_), Value::Array(_)) if last == "required" || last == "enum" => {
            let (before, today) = (texts(before), texts(today));
            let is_kept = match (last, is_request) {
                ("required", true) => today.is_subset(&before),
                _ => before.is_subset(&today),
            };
            if is_kept { Vec::new() } else { here() }
        }
        (Value::Array(before), Value::Array(today)) if last == "parameters" => {
            let of =
                |list: &[Value], name: &Value| list.iter().find(|p| p["name"] == *name).cloned();
            let gone = before.iter().flat_map(|parameter| {
                let name = &parameter["name"];
                let now = of(today, name).unwrap_or(Value::Null);
                lost(parameter, &now, &format!("{path}{SEPARATOR}{name}"), true)
            });
            let is_new =
                |p: &&Value| p["required"] == json!(true) && of(before, &p["name"]).is_none();
            let demanded =
                today.iter().filter(is_new).map(|p| format!("{path}{SEPARATOR}{}", p["name"]));
            gone.chain(demanded).collect()
        }
        (Value::Array(before), Value::Array(today)) if before.len() <= today.len() => {
            let both = before.iter().zip(today).enumerate();
            both.flat_map(|(at, (b, t))| lost(b, t, &format!("{path}{SEPARATOR}{at}"), is_request))
                .collect()
        }
        (Value::Object(before), Value::Object(today)) => {
            let of = |(name, before): (&String, &Value)| {
                let is_request =
                    is_request || name == "requestBody" || REQUESTS.contains(&name.as_str());
                let today = today.get(name).unwrap_or(&Value::Null);
                lost(before, today, &format!("{path}{SEPARATOR}{name}"), is_request)
            };
            before.iter().flat_map(of).collect()
        }
        _ if before == today => Vec::new(),
        _ => here(),
    }
}
