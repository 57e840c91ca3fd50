//! An object's JSON text as an item of a list, without `kind` and `apiVersion`.
//!
//! Its `spec` is kept apart, because most writes do not change it: status updates and deletions.
//! Versions then share it, and it is not parsed or written again.

use std::sync::Arc;

use serde_json::Value;

/// The text, in three pieces: up to the value of `spec`, that value, and the rest.
#[derive(Debug)]
pub(super) struct Text {
    before: Box<str>,
    spec: Option<Arc<str>>,
    after: Box<str>,
}

impl Text {
    /// The text of an object; with the `spec` of `other`, if given, instead of its own. It is
    /// written into `text` first, so that the stored pieces have no spare capacity.
    pub(super) fn of(object: &Value, other: Option<&Self>, text: &mut Vec<u8>) -> Self {
        let mut before = None;
        let mut spec = None;
        text.clear();
        let mut separator = b'{';
        for (name, value) in object.as_object().into_iter().flatten() {
            if matches!(name.as_str(), "kind" | "apiVersion") {
                continue;
            }
            text.push(separator);
            separator = b',';
            text.push(b'"');
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b"\":");
            if name != "spec" {
                write(value, text);
                continue;
            }
            before = Some(written(text).into());
            text.clear();
            spec = if let Some(other) = other {
                other.spec.clone()
            } else {
                write(value, text);
                Some(written(text).into())
            };
            text.clear();
        }
        if separator == b'{' {
            text.push(separator);
        }
        text.push(b'}');
        match before {
            Some(before) => Self { before, spec, after: written(text).into() },
            None => Self { before: written(text).into(), spec: None, after: "".into() },
        }
    }

    /// The three pieces, in order.
    pub(super) fn pieces(&self) -> [&str; 3] {
        [&self.before, self.spec().unwrap_or_default(), &self.after]
    }

    /// The text of `spec`; `None` for objects without one.
    pub(super) fn spec(&self) -> Option<&str> {
        self.spec.as_deref()
    }

    pub(super) fn whole(&self) -> String {
        self.pieces().concat()
    }

    /// The complete text without the value of `spec`.
    pub(super) fn without_spec(&self) -> String {
        let nothing = if self.spec.is_some() { "null" } else { "" };
        [&self.before, nothing, &self.after].concat()
    }
}

fn write(value: &Value, text: &mut Vec<u8>) {
    // Writing values to memory cannot fail.
    let _ = serde_json::to_writer(text, value);
}

fn written(text: &[u8]) -> &str {
    // JSON text is UTF-8.
    std::str::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_spec_is_kept_apart() {
        let metadata = json!({"name": "a"});
        for (object, whole, without) in [
            (json!({}), "{}", "{}"),
            (json!({"kind": "Pod", "apiVersion": "v1"}), "{}", "{}"),
            (
                json!({"data": {"spec": "s"}}),
                r#"{"data":{"spec":"s"}}"#,
                r#"{"data":{"spec":"s"}}"#,
            ),
            (json!({"spec": {"a": 1}}), r#"{"spec":{"a":1}}"#, r#"{"spec":null}"#),
            (
                json!({"kind": "Pod", "metadata": metadata, "spec": {"b": "ü"}, "status": {}}),
                r#"{"metadata":{"name":"a"},"spec":{"b":"ü"},"status":{}}"#,
                r#"{"metadata":{"name":"a"},"spec":null,"status":{}}"#,
            ),
        ] {
            let text = Text::of(&object, None, &mut Vec::new());
            assert_eq!(text.whole(), whole);
            assert_eq!(text.without_spec(), without);
            let mut changed: Value = serde_json::from_str(without).unwrap();
            changed["status"] = json!({"now": true});
            let next = Text::of(&changed, Some(&text), &mut Vec::new()).whole();
            let next: Value = serde_json::from_str(&next).unwrap();
            let mut wanted: Value = serde_json::from_str(whole).unwrap();
            wanted["status"] = json!({"now": true});
            assert_eq!(next, wanted);
        }
    }

    #[test]
    fn versions_share_it() {
        let mut room = Vec::new();
        let old = Text::of(&json!({"spec": {"a": 1}, "status": 1}), None, &mut room);
        let new = Text::of(&json!({"spec": null, "status": 2}), Some(&old), &mut room);
        assert_eq!(new.whole(), r#"{"spec":{"a":1},"status":2}"#);
        assert!(Arc::ptr_eq(old.spec.as_ref().unwrap(), new.spec.as_ref().unwrap()));
    }
}
