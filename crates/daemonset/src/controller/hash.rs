//! The hash of a template, for the name of its revision (upstream: `ComputeHash`).
//!
//! Upstream hashes a dump of its Go structs, so the same template has another hash in each minor
//! version. Nothing depends on the value: the controller never computes it again for an existing
//! revision. This hash has the same format but is computed from the canonical data bytes.

use serde_json::Value;

use super::revision_data::{canonical_json, data_for};
use crate::model::RevisionHash;

/// FNV-1a, 32 bits: start value and multiplier.
const OFFSET_BASIS: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// Characters that replace decimal digits: no vowels, so no words (upstream: `SafeEncodeString`).
const ALPHABET: &[u8; 10] = b"456789bcdf";

/// The hash of a template as served, at most ten characters of `[4-9bcdf]`. `collision_count`
/// distinguishes templates with equal hashes; `None` and 0 differ.
pub fn hash(template: &Value, collision_count: Option<u32>) -> RevisionHash {
    let mut state = OFFSET_BASIS;
    let mut write = |bytes: &[u8]| {
        for byte in bytes {
            state = (state ^ u32::from(*byte)).wrapping_mul(PRIME);
        }
    };
    write(&canonical_json(&data_for(template)));
    if let Some(count) = collision_count {
        write(&u64::from(count).to_le_bytes());
    }
    let digits = state.to_string();
    let encoded: String =
        digits.bytes().map(|digit| char::from(ALPHABET[usize::from(digit - b'0')])).collect();
    RevisionHash::from(encoded)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_hash_is_a_short_legal_label() {
        let templates = (0..200).map(|at| json!({"spec": {"containers": [{"image": at}]}}));
        let hashes: BTreeSet<_> = templates.map(|template| hash(&template, None)).collect();
        assert_eq!(hashes.len(), 200, "no collision among a few");
        for hash in &hashes {
            let legal = |byte: u8| ALPHABET.contains(&byte);
            assert!((1..=10).contains(&hash.as_str().len()), "{hash}");
            assert!(hash.as_str().bytes().all(legal), "{hash}");
        }
    }

    #[test]
    fn it_depends_on_content_and_count_only() {
        let template = json!({"spec": {"a": 1, "b": 2}});
        let reordered: Value = serde_json::from_str(r#"{"spec": {"b": 2, "a": 1}}"#).unwrap();
        assert_eq!(hash(&template, None), hash(&reordered, None));
        let timed = json!({"spec": {"a": 1, "b": 2}, "metadata": {"creationTimestamp": null}});
        let untimed = json!({"spec": {"a": 1, "b": 2}, "metadata": {}});
        assert_eq!(hash(&timed, None), hash(&untimed, None));
        let counted = [None, Some(0), Some(1)].map(|count| hash(&template, count));
        assert_eq!(BTreeSet::from(counted).len(), 3);
        // Fixed for ever: a value that changes would make a new revision of every template.
        assert_eq!(hash(&json!({}), None), "5c486558bb");
    }
}
