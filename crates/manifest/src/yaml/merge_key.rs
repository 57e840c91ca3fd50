//! The merge key `<<`, which copies the entries of one mapping into another (YAML 1.1).

use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle};

use super::error::{YamlError, syntax};
use crate::tree::{Data, Entry, Node};

/// `true` for `<<`, plain or with its own tag (upstream: `isMerge`).
pub(super) fn is_merge_key(event: &Event<'_>) -> bool {
    let Event::Scalar(text, style, _, tag) = event else { return false };
    text == "<<"
        && match tag {
            None => *style == ScalarStyle::Plain,
            Some(tag) => tag.suffix() == "merge",
        }
}

/// Writes the entries of the mapping (or mappings, the last one first) under `<<` over `entries`.
pub(super) fn merge(entries: &mut BTreeMap<String, Entry>, value: &Node) -> Result<(), YamlError> {
    let wrong = |at| syntax(at, "a merge key needs a mapping, or a list of mappings");
    let mut write = |from: &Node| match &from.data {
        Data::Map(merged) => {
            for (key, entry) in merged {
                let written_at = entries.get(key).and_then(|before| before.written_at);
                entries.insert(key.clone(), Entry { written_at, ..entry.clone() });
            }
            Ok(())
        }
        Data::Scalar(_) | Data::List(_) => Err(wrong(from.at)),
    };
    match &value.data {
        Data::List(items) => items.iter().rev().try_for_each(|item| write(item)),
        Data::Map(_) | Data::Scalar(_) => write(value),
    }
}
