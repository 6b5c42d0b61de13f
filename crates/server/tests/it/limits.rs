//! The limits as docs/security.md lists them.

use std::collections::BTreeMap;

use frazil_server::Limits;

/// The names and values of the fields, as `Debug` writes them.
fn fields() -> BTreeMap<String, String> {
    let text = format!("{:?}", Limits::default());
    let inside = text.strip_prefix("Limits { ").and_then(|text| text.strip_suffix(" }")).unwrap();
    let pairs = inside.split(", ").map(|field| field.split_once(": ").unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A default of the table as `Debug` writes it.
fn value(cell: &str) -> String {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let number = number.replace(',', "");
    let times = |factor: u64| (number.parse::<u64>().unwrap() * factor).to_string();
    match unit {
        "" if number == "none" => "0ns".to_owned(),
        "" => number,
        "s" => format!("{number}s"),
        "KiB" => times(1024),
        "MiB" => times(1024 * 1024),
        _ => panic!("what is {cell:?}?"),
    }
}

#[test]
fn the_page_lists_every_limit_with_its_default_and_no_other() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## Limits\n").expect("a section of limits");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeMap<_, _> = rows
        .map(|row| {
            let (name, rest) = row.split_once("` |").expect("one limit a row");
            let default = rest.split('|').next().unwrap().trim();
            (name.to_owned(), value(default))
        })
        .collect();
    assert_eq!(listed, fields());
}
