//! Folds the names of many nodes into few ranges, `edge-a-01 … edge-a-137`. Names are compared in
//! natural order: numbers in them by value.
//!
//! A range may have gaps (the missing nodes are in another group), so each has the number of its
//! nodes.

use std::cmp::Ordering;
use std::fmt;
use std::iter;

/// Maximum number of ranges and single names on a line.
const MOST: usize = 4;
/// Minimum number of names for which a range is shorter than the names.
const WORTH_FOLDING: usize = 3;

/// Consecutive names with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeRange<'a> {
    /// The first name.
    pub first: &'a str,
    /// The last name; equal to `first` if there is only one.
    pub last: &'a str,
    /// Number of names, including these two.
    pub count: usize,
}

impl fmt::Display for NodeRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, count } = self;
        match count {
            0 | 1 => f.write_str(first),
            _ => write!(f, "{first} … {last} ({count})"),
        }
    }
}

impl NodeRange<'_> {
    /// Whether a reader can tell the names between the first and the last: at most one number and
    /// one letter differ. `ip-10-0-0-1 … ip-10-0-19-129` suggests a thousand addresses, and
    /// `pool-x7f2 … pool-zz9k` nothing.
    pub(crate) fn is_clear(&self) -> bool {
        if self.count <= 1 {
            return true;
        }
        let (first, last): (Vec<&str>, Vec<&str>) =
            (parts(self.first).collect(), parts(self.last).collect());
        let differing = first.iter().zip(&last).filter(|(a, b)| a != b);
        let (numbers, letters): (Vec<_>, Vec<_>) =
            differing.partition(|(a, b)| is_number(a) && is_number(b));
        let is_letter = |part: &str| part.trim_end_matches(['-', '.', '_']).chars().count() <= 1;
        first.len() == last.len()
            && numbers.len() <= 1
            && letters.len() <= 1
            && letters.iter().all(|(a, b)| is_letter(a) && is_letter(b))
    }
}

/// `ranges` as text. A single range has no count: the caller prints it.
pub(crate) fn listed(ranges: &[NodeRange<'_>]) -> String {
    if let [NodeRange { first, last, count: 2.. }] = ranges {
        return format!("{first} … {last}");
    }
    let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// `names` in at most [`MOST`] ranges; each name is in exactly one. The common prefix of each range
/// is as long as possible.
pub(crate) fn fold<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<NodeRange<'a>> {
    let mut sorted: Vec<&str> = names.into_iter().collect();
    sorted.sort_by(|a, b| natural_order(a, b));
    let deepest = sorted.iter().map(|name| parts(name).count()).max().unwrap_or(0);
    // More depth never results in fewer ranges.
    let folds = (0..deepest).map(|depth| at_depth(&sorted, depth));
    let fitting = folds.take_while(|ranges| ranges.len() <= MOST).last();
    fitting.unwrap_or_else(|| range_of(&sorted).into_iter().collect())
}

/// Ranges of names with the same first `depth` parts.
fn at_depth<'a>(sorted: &[&'a str], depth: usize) -> Vec<NodeRange<'a>> {
    let alike = |a: &&str, b: &&str| family(a, depth) == family(b, depth);
    let families = sorted.chunk_by(alike);
    let ranges = families.flat_map(|family| {
        let size = if family.len() < WORTH_FOLDING { 1 } else { family.len() };
        family.chunks(size).filter_map(range_of)
    });
    ranges.collect()
}

/// The first `depth` parts, but never the whole name: a family of one name cannot be folded.
fn family(name: &str, depth: usize) -> &str {
    let mut parts = parts(name).peekable();
    let mut length = 0;
    for _ in 0..depth {
        match (parts.next(), parts.peek()) {
            (Some(part), Some(_)) => length += part.len(),
            (Some(_) | None, _) => break,
        }
    }
    &name[..length]
}

fn range_of<'a>(names: &[&'a str]) -> Option<NodeRange<'a>> {
    let (first, last) = (names.first()?, names.last()?);
    Some(NodeRange { first, last, count: names.len() })
}

/// Runs of digits, and runs of everything else that end after a separator: `edge-`, `a-`, `01`.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    iter::from_fn(move || {
        let end = (1..rest.len()).find(|at| is_boundary(rest, *at)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Whether a part ends before the byte at `at`, which is neither the first nor past the end. Digits and
/// separators are single bytes, so no character is cut.
fn is_boundary(name: &str, at: usize) -> bool {
    let (before, after) = (name.as_bytes()[at - 1], name.as_bytes()[at]);
    before.is_ascii_digit() != after.is_ascii_digit() || matches!(before, b'-' | b'.' | b'_')
}

/// By parts, digits by value; names that differ only in leading zeros by their bytes.
pub(crate) fn natural_order(a: &str, b: &str) -> Ordering {
    let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    // The parts before the one in which they differ are equal.
    let from = (1..common).rev().find(|at| is_boundary(a, *at)).unwrap_or(0);
    let (mut left, mut right) = (parts(&a[from..]), parts(&b[from..]));
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) => match part_order(a, b) {
                Ordering::Equal => {}
                unequal @ (Ordering::Less | Ordering::Greater) => return unequal,
            },
            (None, None) => return a.cmp(b),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        }
    }
}

fn is_number(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_digit())
}

fn part_order(a: &str, b: &str) -> Ordering {
    if !(is_number(a) && is_number(b)) {
        return a.cmp(b);
    }
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbered(prefix: &str, numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
        numbers.into_iter().map(|n| format!("{prefix}{n:02}")).collect()
    }

    #[test]
    fn names_fold_into_readable_ranges() {
        let zones = |zones: &str, nodes: u32| -> Vec<String> {
            zones.chars().flat_map(|z| numbered(&format!("edge-{z}-"), 1..=nodes)).collect()
        };
        let aws = |third: u32| numbered(&format!("ip-10-0-{third}-"), 11..=13);
        for (rule, names, want) in [
            ("one", zones("a", 1), "edge-a-01"),
            ("two are not a range", zones("a", 2), "edge-a-01, edge-a-02"),
            ("numbers by value", zones("a", 120), "edge-a-01 … edge-a-120"),
            (
                "a range a prefix",
                zones("ab", 12),
                "edge-a-01 … edge-a-12 (12), edge-b-01 … edge-b-12 (12)",
            ),
            ("too many prefixes: the longer one", zones("abcdef", 12), "edge-a-01 … edge-f-12"),
            (
                "others are separate",
                [zones("abcde", 9), numbered("gpu-", 1..=3)].concat(),
                "edge-a-01 … edge-e-09 (45), gpu-01 … gpu-03 (3)",
            ),
            (
                "addresses",
                [aws(9), aws(10)].concat(),
                "ip-10-0-9-11 … ip-10-0-9-13 (3), ip-10-0-10-11 … ip-10-0-10-13 (3)",
            ),
            ("nothing in common", ["a", "b", "c", "d", "e"].map(String::from).to_vec(), "a … e"),
        ] {
            assert_eq!(listed(&fold(names.iter().map(String::as_str))), want, "{rule}");
        }
    }

    #[test]
    fn a_range_is_clear_if_the_names_in_it_can_be_listed() {
        for (first, last, want) in [
            ("edge-a-01", "edge-a-120", true),
            ("edge-a-01", "edge-f-12", true),
            ("a", "e", true),
            ("ip-10-0-19-1", "ip-10-0-19-129", true),
            ("ip-10-0-0-1", "ip-10-0-19-129", false),
            ("pool-abcde", "pool-vwxyz", false),
            ("pool-x7f2", "pool-zz9k", false),
            ("edge-1", "gpu-1", false),
        ] {
            let range = NodeRange { first, last, count: 9 };
            assert_eq!(range.is_clear(), want, "{range}");
        }
    }

    #[test]
    fn names_are_in_natural_order() {
        let sorted = ["", "a", "a-02", "a-2", "a-10", "a-10-x", "b", "é"];
        for pair in sorted.windows(2) {
            assert_eq!(natural_order(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    proptest! {
        #[test]
        fn each_name_is_in_exactly_one_range(
            names in prop::collection::btree_set("[ab]{0,2}-?[0-9]{0,3}[.é]?[0-9]{0,2}", 0..60)
        ) {
            let ranges = fold(names.iter().map(String::as_str));
            prop_assert!(ranges.len() <= MOST);
            prop_assert_eq!(ranges.iter().map(|r| r.count).sum::<usize>(), names.len());
            for name in &names {
                let holds = |r: &&NodeRange<'_>| {
                    natural_order(r.first, name).is_le() && natural_order(name, r.last).is_le()
                };
                prop_assert_eq!(ranges.iter().filter(holds).count(), 1, "{}", name);
            }
        }

        #[test]
        fn the_order_is_by_parts(a in "[a01-]{0,5}é?", b in "[a01-]{0,5}é?") {
            let pairs = parts(&a).zip(parts(&b)).map(|(a, b)| part_order(a, b));
            let first = pairs.into_iter().find(|order| order.is_ne());
            let by_number = || parts(&a).count().cmp(&parts(&b).count()).then_with(|| a.cmp(&b));
            prop_assert_eq!(natural_order(&a, &b), first.unwrap_or_else(by_number));
        }

        #[test]
        fn the_order_is_one(mut names in prop::collection::vec("[a0-1.-]{0,4}", 3)) {
            names.sort_by(|a, b| natural_order(a, b));
            prop_assert!(natural_order(&names[0], &names[2]).is_le());
        }
    }
}
