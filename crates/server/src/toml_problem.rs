//! The words for what is wrong in a TOML text.

/// What a reader of TOML says of a text, without the values that it repeats: a secret may stand in the wrong place.
/// Names of fields stay.
#[doc(hidden)]
#[must_use]
pub fn toml_problem(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    if found.starts_with("unknown field") {
        return message.to_owned();
    }
    let kind = found.split(['"', '`']).next().unwrap_or_default().trim_end();
    format!("{kind}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem<T: serde::de::DeserializeOwned>(text: &str) -> String {
        toml_problem(toml::from_str::<T>(text).err().unwrap().message())
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "it is never read")]
    struct Read {
        list: Option<Vec<u8>>,
        number: Option<std::num::NonZeroU32>,
        role: Option<crate::keys::Role>,
    }

    #[test]
    fn values_are_not_repeated() {
        for text in [
            "list = \"canary\"",
            "list = \"canary, expected `canary\"",
            "list = [\"canary\"]",
            "number = \"canary\"",
            "role = \"canary\"",
            "role = { canary = \"canary\" }",
            "list = canary",
            "list = \"canary",
            "canary",
            "number = 1 canary",
        ] {
            let said = problem::<Read>(text);
            assert!(!said.contains("canary") && !said.is_empty(), "{text}: {said}");
        }
    }

    #[test]
    fn what_was_expected_is_told() {
        assert_eq!(problem::<Read>("list = \"x\""), "invalid type: string, expected a sequence");
        assert!(problem::<Read>("number = 0").contains("nonzero"));
        assert!(problem::<Read>("lst = 1").starts_with("unknown field `lst`"));
    }
}
