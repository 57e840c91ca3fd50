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

/// The fields of an internal struct of upstream in Go's order: Go's name, the name in the
/// manifest, and the type.
pub(super) type GoStruct = &'static [(&'static str, &'static str, GoType)];

/// How `json.Marshal` prints a field of a struct.
#[derive(Clone, Copy)]
pub(super) enum GoType {
    /// A value; when absent, this text. `""` omits the field (upstream: `omitempty`).
    Or(&'static str),
    /// A pointer to a struct.
    Struct(GoStruct),
}

/// A string, which is empty when absent.
pub(super) const STRING: GoType = GoType::Or("\"\"");
/// A pointer or a list, which is `null` when absent.
pub(super) const POINTER: GoType = GoType::Or("null");

/// A value as `json.Marshal` prints upstream's struct of it.
pub(super) fn json_struct(value: &Value, fields: GoStruct) -> String {
    let fields = fields.iter().filter_map(|(go_name, name, kind)| {
        let shown = match (value.get(name).filter(|it| !it.is_null()), kind) {
            (None, GoType::Or("")) => return None,
            (None, GoType::Or(absent)) => (*absent).to_owned(),
            (None, GoType::Struct(_)) => "null".to_owned(),
            (Some(value), GoType::Or(_)) => json(value),
            (Some(value), GoType::Struct(fields)) => json_struct(value, fields),
        };
        Some(format!("\"{go_name}\":{shown}"))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
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
    }
    #[test]
    fn structs_are_printed_as_go_prints_them() {
        const INNER: GoStruct = &[("C", "c", POINTER)];
        const OUTER: GoStruct = &[
            ("Type", "type", STRING),
            ("A", "a", GoType::Struct(INNER)),
            ("D", "d", GoType::Or("0")),
            ("e", "e", GoType::Or("")),
        ];
        for (input, want) in [
            (value!({"type": "<"}), r#"{"Type":"\u003c","A":null,"D":0}"#),
            (
                value!({"a": {"c": ["x"]}, "d": 2, "e": true}),
                r#"{"Type":"","A":{"C":["x"]},"D":2,"e":true}"#,
            ),
            (value!({"a": {}, "e": null}), r#"{"Type":"","A":{"C":null},"D":0}"#),
        ] {
            assert_eq!(json_struct(&input, OUTER), want);
        }
    }
}
