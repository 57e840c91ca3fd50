//! Documents as JSON and YAML: the data exact, and still harmless on a terminal or in the log of a
//! CI system, because whatever cannot be seen is written as an escape of the format itself.

use std::fmt::Write as _;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use super::Error;
use super::neutral;

/// `document` as indented JSON, fields in the order of the type, with a line break at the end.
pub(super) fn json<T: Serialize>(document: &T) -> Result<String, Error> {
    let plain = serde_json::to_string_pretty(document).map_err(Error::Json)?;
    let mut safe = String::with_capacity(plain.len() + 1);
    let commands = sorted_commands(&plain);
    for (at, c) in plain.char_indices() {
        // Outside of strings JSON has nothing that is escaped here, so all of it is in strings.
        match c {
            '\n' => safe.push(c),
            c if neutral::is_visible(c) && commands.binary_search(&at).is_err() => safe.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(safe, "\\u{unit:04x}");
                }
            }
        }
    }
    safe.push('\n');
    Ok(safe)
}

/// `document` as YAML that readers of YAML 1.1 and 1.2 understand alike, keys sorted as in
/// kubectl's output.
pub(super) fn yaml<T: Serialize>(document: &T) -> Result<String, Error> {
    let value = serde_json::to_value(document).map_err(Error::Json)?;
    yaml_of(&value)
}

/// `value` as YAML.
///
/// The writer takes no orders on how to quote keys. So a value with a key to be escaped is written
/// as JSON is, which is YAML as well, and puts everything in double quotes.
pub(super) fn yaml_of(value: &Value) -> Result<String, Error> {
    let plain = if all_keys_harmless(value) {
        // Long lines stay long: folded ones are hard to compare.
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
        serde_saphyr::to_string_with_options(&Quoting(value), options).map_err(Error::Yaml)?
    } else {
        serde_json::to_string_pretty(value).map_err(Error::Json)? + "\n"
    };
    let mut safe = String::with_capacity(plain.len());
    let commands = sorted_commands(&plain);
    for (at, c) in plain.char_indices() {
        // All of it is in double quotes, where these escapes are understood.
        match u32::from(c) {
            _ if c == '\n' => safe.push(c),
            _ if neutral::is_visible(c) && commands.binary_search(&at).is_err() => safe.push(c),
            code @ ..=0xff => drop(write!(safe, "\\x{code:02x}")),
            code @ ..=0xffff => drop(write!(safe, "\\u{code:04x}")),
            code => drop(write!(safe, "\\U{code:08x}")),
        }
    }
    Ok(safe)
}

/// Where in `text` orders to a CI system are, in order.
fn sorted_commands(text: &str) -> Vec<usize> {
    let mut start = 0;
    let mut found = Vec::new();
    for row in text.split('\n') {
        found.extend(neutral::commands(row).into_iter().map(|at| start + at));
        start += row.len() + 1;
    }
    found
}

/// A value whose strings are double-quoted where they hold something to be escaped.
struct Quoting<'a>(&'a Value);

impl Serialize for Quoting<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) if is_harmless(text) => serializer.serialize_str(text),
            Value::String(text) => serde_saphyr::DoubleQuoted(text).serialize(serializer),
            Value::Array(elements) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    list.serialize_element(&Quoting(element))?;
                }
                list.end()
            }
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, &Quoting(value))?;
                }
                map.end()
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => {
                plain.serialize(serializer)
            }
        }
    }
}

fn all_keys_harmless(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().all(all_keys_harmless),
        Value::Object(fields) => {
            fields.iter().all(|(key, value)| is_harmless(key) && all_keys_harmless(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Whether nothing in `text`, on any of its lines, has to be escaped.
fn is_harmless(text: &str) -> bool {
    text.split('\n')
        .all(|line| line.chars().all(neutral::is_visible) && neutral::commands(line).is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Strings that some reader of YAML takes for something else, or that hide something.
    pub(in crate::render) const NASTY: [&str; 52] = [
        "",
        " ",
        "  leading",
        "trailing ",
        "\ttab",
        "a\tb",
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "Y",
        "true",
        "TRUE",
        "null",
        "Null",
        "~",
        "1",
        "-1",
        "+1",
        "1_000",
        "0644",
        "08",
        "0o17",
        "0x1F",
        "0b1",
        "1e3",
        "1.",
        ".5",
        ".inf",
        ".NaN",
        "12:30:45",
        "2026-08-01",
        "2026-08-01T12:00:00Z",
        "key: value",
        "- x",
        "# no comment",
        "a #b",
        "&a",
        "*a",
        "!tag",
        "|",
        ">",
        "[a]",
        "{a: b}",
        "a\nb",
        "a\n\n",
        "\n",
        " a\n  b\n",
        "emoji 🚀",
        "=",
    ];

    const HIDDEN: [&str; 10] = [
        "a\u{2028}b",
        "\u{202e}",
        "a\rb",
        "\u{1b}[0m",
        "\u{0}",
        "\u{85}",
        "\u{feff}",
        "\u{e0041}",
        "x\n::error::y",
        "##[group]",
    ];

    fn both_readers_agree(value: &Value) -> Result<(), String> {
        let yaml = yaml_of(value).map_err(|e| e.to_string())?;
        let ours: Value = serde_saphyr::from_str(&yaml).map_err(|e| format!("{e} in\n{yaml}"))?;
        let other: Value = serde_yaml::from_str(&yaml).map_err(|e| format!("{e} in\n{yaml}"))?;
        match (&ours == value, &other == value) {
            (true, true) => Ok(()),
            agree => Err(format!("{agree:?}: {value:?} as\n{yaml}")),
        }
    }

    #[test]
    fn nasty_strings_survive_yaml() {
        for text in NASTY.iter().chain(&HIDDEN) {
            for value in [
                serde_json::json!({ "a": text }),
                serde_json::json!([text, [text]]),
                serde_json::json!({ *text: { "deep": [ { *text: *text } ] } }),
            ] {
                both_readers_agree(&value).unwrap();
            }
        }
    }

    #[test]
    fn what_is_hidden_is_escaped() {
        let shown: Vec<_> =
            HIDDEN.iter().map(|text| yaml_of(&Value::from(*text)).unwrap()).collect();
        insta::assert_snapshot!(shown.concat(), @r##"
            "a\Lb"
            "\u202e"
            "a\rb"
            "\e[0m"
            "\0"
            "\N"
            "\uFEFF"
            "\U000e0041"
            "x\n::error::y"
            "#\x23[group]"
            "##);
        let list: BTreeMap<_, _> = HIDDEN.iter().enumerate().collect();
        insta::assert_snapshot!(json(&list).unwrap(), @r##"
            {
              "0": "a\u2028b",
              "1": "\u202e",
              "2": "a\rb",
              "3": "\u001b[0m",
              "4": "\u0000",
              "5": "\u0085",
              "6": "\ufeff",
              "7": "\udb40\udc41",
              "8": "x\n::error::y",
              "9": "#\u0023[group]"
            }
            "##);
    }

    fn arbitrary_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ \n\t:#-]{0,6}[a-z0-9.:'\"\\\\ \n]{0,12}",
            prop::sample::select(NASTY.to_vec()).prop_map(String::from),
            prop::sample::select(HIDDEN.to_vec()).prop_map(String::from),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_is_exact_and_harmless(value in arbitrary_value()) {
            let text = json(&value).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &value);
            prop_assert!(text.chars().all(|c| c == '\n' || neutral::is_visible(c)), "{}", text);
            prop_assert!(sorted_commands(&text).is_empty(), "{}", text);
        }

        #[test]
        fn yaml_is_exact_and_harmless(value in arbitrary_value()) {
            both_readers_agree(&value).map_err(TestCaseError::fail)?;
            let text = yaml_of(&value).unwrap();
            prop_assert!(text.chars().all(|c| c == '\n' || neutral::is_visible(c)), "{}", text);
            prop_assert!(sorted_commands(&text).is_empty(), "{}", text);
        }
    }
}
