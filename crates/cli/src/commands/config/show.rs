//! `frazil config show`: every value in effect, and who said it.

use serde::Serialize;
use serde_json::Value;

use super::toml_text;
use crate::args::ConfigShowArgs;
use crate::config::{self, Setting, Settings, server_config};
use crate::output::{Data, Failure};

#[derive(Serialize)]
struct Object {
    key: String,
    value: Value,
    origin: String,
}

pub(super) fn run(args: &ConfigShowArgs) -> Result<(), Failure> {
    let settings = config::load_values(&args.serve)?;
    let mut data = Data::new();
    let mut section = "";
    for setting in &settings.values {
        let key = setting.key;
        let texts = shown(setting, &settings)?;
        let origin = setting.origin.to_string();
        if args.json {
            let value = texts.map_or(Value::Null, |texts| toml_text::json(key.kind, &texts));
            data.json(&Object { key: key.to_string(), value, origin })?;
            continue;
        }
        if section != key.section {
            let gap = if section.is_empty() { "" } else { "\n" };
            data.text(format_args!("{gap}[{}]", key.section))?;
            section = key.section;
        }
        let origin = if args.origin { format!(" # {origin}") } else { String::new() };
        match texts {
            Some(texts) => {
                let value = toml_text::toml(key.kind, &texts);
                data.text(format_args!("{} = {value}{origin}", key.name))?;
            }
            None => data.text(format_args!("# {} is not set", key.name))?,
        }
    }
    data.flush()
}

/// What is shown of a value: the store without its password, and what stands for some that are not
/// set.
fn shown(setting: &Setting, settings: &Settings) -> Result<Option<Vec<String>>, Failure> {
    let args = &settings.args;
    let path = setting.key.to_string();
    match path.as_str() {
        "store.url" if args.dev || args.worker.is_some() => Ok(None),
        // From the URL as it was parsed, which prints no password.
        "store.url" => {
            let url = args.place.url()?.to_string();
            Ok(Some(vec![url]))
        }
        "node.threads" if setting.texts.is_none() => {
            let config = server_config(args, Some(std::path::Path::new("")));
            Ok(config.ok().map(|config| vec![config.threads.to_string()]))
        }
        _ => Ok(setting.texts.clone()),
    }
}
