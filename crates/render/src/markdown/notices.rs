//! Guards and warnings, collapsed.

use std::collections::BTreeMap;

use super::fit::LengthVariants;
use super::markup::{code, few, folded, items, prose};
use crate::view::Notice;
use planner::words::count;

/// Maximum number of names; the others are counted.
const MOST_NAMES: usize = 5;
/// Maximum number of guards or warnings; the others are counted.
const MOST_TOLD: usize = 40;

/// Guards, with the flags that allow them.
pub(super) fn guards(guards: &[Notice<'_>]) -> LengthVariants {
    let line = |guard: &Notice<'_>| {
        let way_out = match guard.allow_flag {
            Some(flag) => format!("To allow it, pass {}", code(flag)),
            None => "No flag allows it".to_owned(),
        };
        format!("{}. **{}**. {way_out}.", about(guard), capitalized(guard.kind))
    };
    variants(&format!("Blocked by {}", count(guards.len(), "guard")), guards, line)
}

/// Warnings.
pub(super) fn warnings(warnings: &[Notice<'_>]) -> LengthVariants {
    variants(&count(warnings.len(), "warning"), warnings, about)
}

/// Variants with all notices, then with fewer, finally only the number of each kind.
fn variants(
    summary: &str,
    notices: &[Notice<'_>],
    line: impl Fn(&Notice<'_>) -> String,
) -> LengthVariants {
    if notices.is_empty() {
        return vec![String::new()];
    }
    let lines: Vec<String> = notices.iter().map(line).collect();
    let mut by_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for notice in notices {
        *by_kind.entry(notice.kind).or_default() += 1;
    }
    let kinds: Vec<String> = by_kind
        .iter()
        .take(MOST_TOLD)
        .map(|(kind, count)| format!("{} {count}", prose(kind)))
        .collect();
    let lengths = [lines.len(), MOST_TOLD, MOST_TOLD / 8];
    let lists = lengths.map(|most| items(&lines, most, "of them"));
    let lists = lists.into_iter().chain([items(&kinds, MOST_TOLD, "kinds")]);
    lists.map(|list| folded(summary, &list)).collect()
}

/// `logging/fluent-bit: MESSAGE (3 nodes: …)`.
fn about(notice: &Notice<'_>) -> String {
    let Notice { kind: _, daemon_set, message, nodes, allow_flag: _ } = notice;
    let subject = daemon_set.map(|key| format!("{}: ", code(key))).unwrap_or_default();
    let sentence = prose(message.trim_end_matches('.'));
    if nodes.is_empty() {
        return format!("{subject}{sentence}");
    }
    let names = few(nodes.iter(), MOST_NAMES);
    format!("{subject}{sentence} ({}: {names})", count(nodes.len(), "node"))
}

fn capitalized(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
