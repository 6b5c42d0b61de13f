//! The test vectors for implementations in other languages say what this one does.
//!
//! `UPDATE_VECTORS=1 cargo test -p frazil-wire vectors` writes them anew; a change of what
//! is there already breaks users.

use std::path::Path;

use frazil_id::{Format, Id, Layout, PRESETS};
use frazil_wire::{Decoded, LayoutInfo, Reason};
use serde_json::{Value, json};

fn compare(name: &str, vectors: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name);
    let text = format!("{vectors:#}\n");
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(&stored, vectors, "{name} says something else");
}

#[test]
fn layouts() {
    let layouts: Vec<Value> = PRESETS
        .iter()
        .map(|(name, layout)| json!({ "name": name, "layout": LayoutInfo::from(layout) }))
        .collect();
    compare("layouts.json", &Value::from(layouts));
}

/// IDs at the edges of every layout, and some that others issued.
#[test]
fn ids() {
    let mut ids = Vec::new();
    let mut push = |name: &str, layout: &Layout, id: Id| {
        let parts = id.parts(layout).unwrap();
        let decoded = serde_json::to_value(Decoded::new(id, parts, layout, &layout.to_string()));
        ids.push(json!({ "preset": name, "decoded": decoded.unwrap() }));
    };
    for &(name, layout) in PRESETS {
        let last = layout.last_tick();
        for (tick, worker, sequence) in [
            (1, 0, 0),
            (1, layout.last_worker(), layout.last_sequence()),
            (last / 3, layout.last_worker() / 2, 1.min(layout.last_sequence())),
            (last, layout.last_worker(), layout.last_sequence()),
        ] {
            let parts = frazil_id::Parts { tick, worker, sequence };
            push(name, &layout, layout.encode(parts).unwrap());
        }
    }
    let preset = |wanted: &str| PRESETS.iter().find(|(name, _)| *name == wanted).unwrap();
    for (name, id) in [("discord", 175_928_847_299_117_063), ("twitter", 1_050_118_621_198_921_728)]
    {
        push(name, &preset(name).1, Id::from_u64(id));
    }
    compare("ids.json", &Value::from(ids));
}

#[test]
fn text_forms() {
    let ids =
        [0, 1, 61, 62, 4095, 380_314_777_215_332_352, (1 << 53) + 1, i64::MAX as u64, u64::MAX];
    let texts: Vec<Value> = ids
        .iter()
        .map(|id| {
            let forms: serde_json::Map<String, Value> = Format::ALL
                .iter()
                .map(|form| (form.to_string(), Id::from_u64(*id).text(*form).to_string().into()))
                .collect();
            Value::from(forms)
        })
        .collect();
    compare("text.json", &Value::from(texts));
}

#[test]
fn errors() {
    let errors: Vec<Value> = Reason::ALL
        .iter()
        .map(|reason| {
            json!({
                "reason": reason.name(),
                "http_status": reason.http_status(),
                "grpc_code": reason.grpc_code(),
                "retryable": reason.is_retryable(),
            })
        })
        .collect();
    compare("errors.json", &Value::from(errors));
}

#[test]
fn reasons_have_names_of_their_own() {
    for reason in Reason::ALL {
        assert_eq!(reason.name().parse(), Ok(*reason));
        assert!(!reason.title().is_empty() && !reason.help().is_empty());
        let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
        assert!(reason.name().chars().all(is_name), "{reason}");
    }
}
