//! Documents as JSON and YAML: the data is exact, and harmless on a terminal or in the log of a CI
//! system, because invisible characters are written as escapes of the format.

use std::fmt::Write as _;
use std::io;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use crate::error::Error;
use crate::neutral;

/// `document` as indented JSON, fields in the order of the type, with a line break at the end.
///
/// # Errors
/// The type has a value that JSON cannot represent, such as a map whose keys are not strings.
pub fn json<T: Serialize>(document: &T) -> Result<String, Error> {
    let mut bytes = Vec::new();
    write_json(document, &mut bytes)?;
    // Only whole lines of text are written.
    String::from_utf8(bytes).map_err(|error| Error::Output(io::Error::other(error)))
}

/// Writes `document` as [`json`], line by line as it is made.
///
/// # Errors
/// As [`json`]; [`Error::Output`] if it cannot be written. What was written before stays.
pub fn write_json<T: Serialize>(document: &T, out: impl io::Write) -> Result<(), Error> {
    let mut lines = SafeLines { out, line: Vec::new() };
    let written = serde_json::to_writer_pretty(&mut lines, document);
    written.map_err(|error| {
        if error.is_io() { Error::Output(error.into()) } else { Error::Json(error) }
    })?;
    lines.end().map_err(Error::Output)
}

/// Passes JSON on, with escapes for characters that must not be printed.
struct SafeLines<W> {
    out: W,
    /// The line that has begun.
    line: Vec<u8>,
}

impl<W: io::Write> SafeLines<W> {
    /// Writes the rest, a line break, and what the output has buffered.
    fn end(mut self) -> io::Result<()> {
        self.line.push(b'\n');
        self.pass_on()?;
        self.out.flush()
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let line = str::from_utf8(&self.line).map_err(io::Error::other)?;
        let plain = line.strip_suffix('\n').unwrap_or(line);
        if neutral::is_harmless(plain) {
            self.out.write_all(line.as_bytes())?;
        } else {
            self.out.write_all(safe(line).as_bytes())?;
        }
        self.line.clear();
        Ok(())
    }
}

impl<W: io::Write> io::Write for SafeLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.pass_on()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// JSON with escapes for characters that must not be printed; it has them only inside of strings.
fn safe(json: &str) -> String {
    escaped(json, |c, safe| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(safe, "\\u{unit:04x}");
        }
    })
}

/// `document` as JSON in one line, with the line break.
///
/// # Errors
/// As [`json`].
pub fn json_line<T: Serialize>(document: &T) -> Result<String, Error> {
    let mut line = safe(&serde_json::to_string(document).map_err(Error::Json)?);
    line.push('\n');
    Ok(line)
}

/// `document` as YAML that readers of YAML 1.1 and 1.2 understand alike, keys sorted as in
/// kubectl's output.
///
/// # Errors
/// The type has a value that JSON cannot represent, such as a map whose keys are not strings.
pub fn yaml<T: Serialize>(document: &T) -> Result<String, Error> {
    let value = serde_json::to_value(document).map_err(Error::Json)?;
    yaml_of(&value)
}

/// `value` as YAML.
///
/// The YAML library cannot be configured to quote keys. A value with a key to escape is therefore
/// written as JSON, which is valid YAML and has all strings in double quotes.
pub(super) fn yaml_of(value: &Value) -> Result<String, Error> {
    let plain = if all_keys_harmless(value) {
        // Long lines stay long: folded ones are hard to compare.
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
        serde_saphyr::to_string_with_options(&Quoting(value), options).map_err(Error::Yaml)?
    } else {
        serde_json::to_string_pretty(value).map_err(Error::Json)? + "\n"
    };
    // All strings are in double quotes, where these escapes are valid.
    Ok(escaped(&plain, |c, safe| {
        let _ = match u32::from(c) {
            code @ ..=0xff => write!(safe, "\\x{code:02x}"),
            code @ ..=0xffff => write!(safe, "\\u{code:04x}"),
            code => write!(safe, "\\U{code:08x}"),
        };
    }))
}

/// `text` with an escape in place of each character that must not be printed.
fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut safe = String::with_capacity(text.len() + 1);
    for (nth, line) in text.split('\n').enumerate() {
        if nth > 0 {
            safe.push('\n');
        }
        if neutral::is_harmless(line) {
            safe.push_str(line);
            continue;
        }
        let commands = neutral::commands(line);
        for (at, c) in line.char_indices() {
            if neutral::is_visible(c) && !commands.contains(&at) {
                safe.push(c);
            } else {
                escape(c, &mut safe);
            }
        }
    }
    safe
}

/// A value whose strings are double-quoted if they contain a character to escape.
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

/// Whether no line of `text` contains a character to escape.
fn is_harmless(text: &str) -> bool {
    text.split('\n').all(neutral::is_harmless)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Strings that some YAML parser reads as another type, or that contain invisible characters.
    fn nasty() -> Vec<String> {
        serde_json::from_str(include_str!("../../../tests/nasty_strings.json")).unwrap()
    }

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
        for text in nasty() {
            for value in [
                serde_json::json!({ "a": text }),
                serde_json::json!([text, [text]]),
                serde_json::json!({ text.as_str(): { "deep": [ { text.as_str(): text } ] } }),
            ] {
                both_readers_agree(&value).unwrap();
            }
        }
    }

    #[test]
    fn invisible_characters_are_escaped() {
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
            prop::sample::select(nasty()),
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
            prop_assert!(is_harmless(&text), "{}", text);
        }

        #[test]
        fn yaml_is_exact_and_harmless(value in arbitrary_value()) {
            both_readers_agree(&value).map_err(TestCaseError::fail)?;
            let text = yaml_of(&value).unwrap();
            prop_assert!(is_harmless(&text), "{}", text);
        }
    }
}
