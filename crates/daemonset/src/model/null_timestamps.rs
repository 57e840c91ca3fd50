//! `creationTimestamp: null`, which servers before 1.34 add to the metadata of each template
//! (upstream: `ObjectMeta`, whose timestamp is left out since 1.34 if it is zero).
//!
//! It says nothing, so templates are read without it: else no template of such a server would equal
//! the one in a manifest.

use serde_json::Value;

const CREATION_TIMESTAMP: &str = "creationTimestamp";

/// Removes each null `creationTimestamp`: of a template, and of the volume claims in it.
pub fn drop_null_timestamps(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, value| !is_null_timestamp(key, value));
            fields.values_mut().for_each(drop_null_timestamps);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null_timestamps),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a field is such a timestamp.
pub(crate) fn is_null_timestamp(key: &str, value: &Value) -> bool {
    value.is_null() && key == CREATION_TIMESTAMP
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_null_timestamps_are_removed() {
        let mut template = json!({
            "metadata": {"creationTimestamp": null, "labels": {"app": "a"}},
            "spec": {"volumes": [
                {"ephemeral": {"volumeClaimTemplate": {"metadata": {"creationTimestamp": null}}}},
                {"name": null, "creationTimestamp": "2026-01-01T00:00:00Z"},
            ]},
        });
        drop_null_timestamps(&mut template);
        let expected = json!({
            "metadata": {"labels": {"app": "a"}},
            "spec": {"volumes": [
                {"ephemeral": {"volumeClaimTemplate": {"metadata": {}}}},
                {"name": null, "creationTimestamp": "2026-01-01T00:00:00Z"},
            ]},
        });
        assert_eq!(template, expected);
    }
}
