//! The file of keys.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::entry::KeyEntry;
use crate::toml_problem::toml_problem;

/// Thousands of keys; a longer file is another file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What is wrong with a file of keys: everything at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysError {
    /// Each with its line.
    pub problems: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    key: Vec<Spanned<KeyEntry>>,
}

/// Reads a file of keys.
///
/// # Errors
/// If it cannot be read, or everything that is wrong in it.
pub fn read(path: &Path) -> Result<Vec<KeyEntry>, KeysError> {
    let name = path.display();
    let one = |problem: String| KeysError { problems: vec![problem] };
    let unreadable = |error| one(format!("{name}: the keys cannot be read: {error}"));
    if path.is_dir() {
        return Err(one(format!("{name}: the keys cannot be read: it is a directory")));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(one(format!("{name}: more than {FILE_BYTES_MAX} bytes are no file of keys")));
    }
    parse(&text).map_err(|error| KeysError {
        problems: error.problems.into_iter().map(|problem| format!("{name}:{problem}")).collect(),
    })
}

/// Reads the text of such a file.
///
/// # Errors
/// Everything that is wrong in it, each beginning with its line.
pub fn parse(text: &str) -> Result<Vec<KeyEntry>, KeysError> {
    let line = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line(span.start));
        KeysError { problems: vec![format!("{line}: {}", toml_problem(error.message()))] }
    })?;
    let (mut problems, mut seen) = (Vec::new(), HashMap::new());
    let (mut certificates, mut names) = (HashMap::new(), HashMap::new());
    for key in &file.key {
        let (line, entry) = (line(key.span().start), key.get_ref());
        if let Err(problem) = entry.check() {
            problems.push(format!("{line}: {problem}"));
        }
        if let Some(first) = seen.insert(&entry.id, line) {
            problems.push(format!("{line}: the key {} is there twice, see line {first}", entry.id));
        }
        // A key that is replaced ends: two that stay cannot be told apart in the log, the metrics and the quotas.
        if let Some((first, None)) = names.insert(&entry.name, (line, entry.expires.as_ref())) {
            let name = &entry.name;
            problems.push(format!(
                "{line}: there is another key of the name {name}, see line {first}: choose another name; to \
                 replace a key, use frazil key rotate"
            ));
        }
        for name in entry.certificates() {
            if let Some(first) = certificates.insert(name, line) {
                let problem = "the certificate stands for another key too";
                problems.push(format!("{line}: {problem}, see line {first}"));
            }
        }
    }
    if !problems.is_empty() {
        return Err(KeysError { problems });
    }
    Ok(file.key.into_iter().map(Spanned::into_inner).collect())
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for KeysError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::keys::{NewKey, Role};

    fn entry(id: &str, more: &str) -> String {
        let hash = "ab".repeat(32);
        format!("[[key]]\nid = \"{id}\"\nname = \"{id}\"\nsha256 = \"{hash}\"\n{more}\n")
    }

    #[test]
    fn a_whole_entry_is_read() {
        let key = NewKey::mint().unwrap();
        let text = format!(
            "[[key]]\nid = \"{}\"\nname = \"orders\"\nroles = [\"ids\", \"read\"]\n\
             scopes = [\"orders\"]\nids_per_second = 1000\nexpires = \"2027-01-31T00:00:00Z\"\n\
             sha256 = \"{}\"\n",
            key.id(),
            key.sha256(),
        );
        let entries = parse(&text).unwrap();
        assert_eq!(entries[0].roles, [Role::Ids, Role::Read]);
        assert_eq!(entries[0].ids_per_second.unwrap().get(), 1000);
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn a_certificate_can_take_the_place_of_a_hash_and_stands_for_one_key() {
        let entry = |id: &str, more: &str| {
            format!("[[key]]\nid = \"{id}\"\nname = \"{id}\"\nroles = [\"ids\"]\n{more}\n")
        };
        let subject = "certificate_subject = \"CN=orders\"";
        let dns = |name: &str| format!("certificate_san = \"{name}\"");
        let text = [entry("a", subject), entry("b", &dns("a.example"))].concat();
        let entries = parse(&text).unwrap();
        assert_eq!(entries[0].certificate_subject.as_deref(), Some("CN=orders"));
        for (bad, expected) in [
            (entry("c", ""), "1: nothing tells whose"),
            (entry("c", "certificate_subject = \"orders\""), "1: \"orders\" is no subject"),
            (entry("c", &dns("")), "1: \"\" is no alternative name"),
            (format!("{text}{}", entry("c", subject)), "11: the certificate stands for another"),
            (format!("{text}{}", entry("c", &dns("A.Example"))), "11: the certificate stands"),
        ] {
            let error = parse(&bad).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_name_is_that_of_one_key_and_of_those_that_it_replaces() {
        let named = |id: &str, expires: &str| {
            entry(id, &format!("roles = [\"ids\"]\n{expires}"))
                .replace(&format!("name = \"{id}\""), "name = \"n\"")
        };
        let ends = "expires = \"2027-01-31T00:00:00Z\"";
        for (entries, is_fine) in [
            ([named("a", ends), named("b", ends), named("c", "")], true),
            ([named("a", ends), named("b", ends), named("c", ends)], true),
            ([named("a", ""), named("b", ends), entry("c", "roles = [\"ids\"]")], false),
            ([named("a", ends), named("b", ""), named("c", "")], false),
        ] {
            let read = parse(&entries.concat());
            assert_eq!(read.is_ok(), is_fine, "{read:?}");
            if let Err(error) = read {
                assert!(error.to_string().contains("another key of the name n"), "{error}");
            }
        }
    }

    #[test]
    fn every_fault_is_told_with_its_line() {
        let text = [
            entry("a_", "roles = [\"ids\"]"),
            entry("b", "roles = []"),
            entry("c", "roles = [\"ids\"]\nexpires = \"soon\""),
            entry("c", "roles = [\"ids\"]\nscopes = []"),
        ]
        .concat();
        let problems = parse(&text).unwrap_err().problems;
        let lines: Vec<_> = problems.iter().map(|p| p.split(':').next().unwrap()).collect();
        assert_eq!(lines, ["1", "6", "11", "17", "17"], "{problems:#?}");
        for (bad, expected) in [
            (entry("d", "roles = [\"root\"]"), "unknown variant"),
            (entry("d", "roles = [\"ids\"]\nquota = 3"), "unknown field"),
            (entry("d", "roles = [\"ids\"]\nids_per_second = 0"), "nonzero"),
            ("[key]".to_owned(), "expected"),
            ("\0".to_owned(), ""),
        ] {
            let error = parse(&bad).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
