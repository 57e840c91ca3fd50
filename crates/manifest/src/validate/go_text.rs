//! Formats values in error messages as Go does: `%q` for plain strings, `json.Marshal` for
//! everything else.

use std::fmt::Write as _;

use serde_json::Value;

/// A string as `%q` prints it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            _ => push_plain(&mut out, c),
        }
    }
    out.push('"');
    out
}

fn push_plain(out: &mut String, c: char) {
    let code = u32::from(c);
    let written = if c == '\'' || c.escape_debug().eq([c]) {
        out.push(c);
        Ok(())
    } else if code < 0x80 {
        write!(out, "\\x{code:02x}")
    } else if code < 0x1_0000 {
        write!(out, "\\u{code:04x}")
    } else {
        write!(out, "\\U{code:08x}")
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

/// A value as `json.Marshal` prints it: keys sorted, and `<`, `>`, `&` escaped for HTML.
pub(super) fn json(value: &Value) -> String {
    escaped_for_html(&sorted(value).to_string())
}

/// A struct as `json.Marshal` prints it: fields in the order of the Go type, `null` for those that
/// are not set.
pub(super) fn json_struct(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn escaped_for_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            _ => out.push(c),
        }
    }
    out
}

/// The same value with sorted keys, independent of the order that `serde_json` keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        for (text, want) in [
            ("plain", r#""plain""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("it's <b>", r#""it's <b>""#),
            ("\n\t\u{7}\u{b}\u{1}\u{7f}", r#""\n\t\a\v\x01\x7f""#),
            ("ä€\u{a0}\u{202e}", "\"ä€\\u00a0\\u202e\""),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quoted(text), want);
        }
    }

    #[test]
    fn json_is_printed_as_go_prints_it() {
        for (input, want) in [
            (value!({"b": 1, "a": "<&>"}), r#"{"a":"\u003c\u0026\u003e","b":1}"#),
            (value!(["x", null, true]), r#"["x",null,true]"#),
        ] {
            assert_eq!(json(&input), want);
        }
        assert_eq!(
            json_struct(&[("Type", "\"x\"".into()), ("A", "null".into())]),
            r#"{"Type":"x","A":null}"#
        );
    }
}
