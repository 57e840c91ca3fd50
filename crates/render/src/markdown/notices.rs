//! Guards, visible at once, and warnings, collapsed.

use std::collections::BTreeMap;

use super::fit::LengthVariants;
use super::markup::{code, few, folded, items, prose};
use crate::view::{Notice, number_of};
use planner::words::{count, grouped};

/// Maximum number of names; the others are counted.
const MOST_NAMES: usize = 5;
/// Maximum number of guards or warnings; the others are counted.
const MOST_TOLD: usize = 40;

/// Maximum number of guards that are visible without unfolding anything.
const MOST_OPEN: usize = 5;

/// The guards as they are read first: each with the flag that allows it; many only by their kinds.
pub(super) fn guards(guards: &[Notice<'_>]) -> Option<String> {
    let title = format!("**Blocked by {}**", count(number_of(guards), "guard"));
    if guards.is_empty() {
        return None;
    }
    if guards.len() <= MOST_OPEN {
        let lines: Vec<String> = guards.iter().map(guard).collect();
        return Some(format!("{title}\n\n{}", items(&lines, lines.len(), "guard")));
    }
    Some(format!("{title}\n\n{}", items(&kinds(guards), MOST_TOLD, "kind")))
}

/// Each of the guards, if there are too many for [`guards`].
pub(super) fn many_guards(guards: &[Notice<'_>]) -> LengthVariants {
    let many = if guards.len() <= MOST_OPEN { &[] } else { guards };
    variants(&count(number_of(many), "guard"), many, guard)
}

/// Warnings.
pub(super) fn warnings(warnings: &[Notice<'_>]) -> LengthVariants {
    variants(&count(number_of(warnings), "warning"), warnings, about)
}

fn guard(guard: &Notice<'_>) -> String {
    let flag = guard.allow_flag.map(|flag| format!(" {}", code(flag))).unwrap_or_default();
    let kind = capitalized(guard.kind);
    format!("{}. **{kind}**. {}{flag}.", about(guard), guard.way_out())
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
    let lengths = [lines.len(), MOST_TOLD, MOST_TOLD / 8];
    let lists = lengths.map(|most| items(&lines, most, "line"));
    let lists = lists.into_iter().chain([items(&kinds(notices), MOST_TOLD, "kind")]);
    lists.map(|list| folded(summary, &list)).collect()
}

/// The number of notices of each kind.
fn kinds(notices: &[Notice<'_>]) -> Vec<String> {
    let mut by_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for notice in notices {
        *by_kind.entry(notice.kind).or_default() += number_of(std::slice::from_ref(notice));
    }
    let words = by_kind.into_iter();
    words.map(|(kind, number)| format!("{} {}", prose(kind), grouped(number))).collect()
}

/// `logging/fluent-bit: MESSAGE (3 nodes: …)`.
fn about(notice: &Notice<'_>) -> String {
    let subject = notice.subject(|key| code(key));
    let subject = subject.map(|subject| format!("{subject}: ")).unwrap_or_default();
    let sentence = prose(notice.message.trim_end_matches('.'));
    if notice.nodes.is_empty() {
        return format!("{subject}{sentence}");
    }
    let names = few(notice.nodes.iter(), MOST_NAMES);
    format!("{subject}{sentence} ({}: {names})", count(notice.nodes.len(), "node"))
}

fn capitalized(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
