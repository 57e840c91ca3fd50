//! A name for a template (upstream: `ComputeHash`).
//!
//! Upstream hashes a dump of its own Go structs, so the same template has another hash in each
//! minor version. Nothing depends on the value: the controller never computes it again for a
//! revision that exists. Ours is of the same shape but made from the canonical data bytes.

use serde_json::Value;

use super::revision_data::{canonical_json, data_for};
use crate::model::RevisionHash;

/// FNV-1a, 32 bits: start value and multiplier.
const OFFSET_BASIS: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// What each decimal digit becomes: no vowels, so no words (upstream: `SafeEncodeString`).
const ALPHABET: &[u8; 10] = b"456789bcdf";

/// The hash of a template as served, at most ten of `[4-9bcdf]`. `collision_count` tells apart
/// templates that would else have one name; `None` and 0 differ.
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
