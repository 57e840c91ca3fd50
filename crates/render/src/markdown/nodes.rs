//! The changes of nodes by wave, action and reason, with names and zones, or only counted.

use std::collections::BTreeMap;

use super::comment::MarkdownOptions;
use super::fields::Depth;
use super::markup::{LONGEST_COUNTED, clipped, code, counted, items, prose};
use crate::view::{
    Action, ActionTotals, DaemonSetView, NodeGroup, NodeRange, done, fold, natural_order,
    node_words,
};
use planner::words::grouped;

/// Maximum number of zones that are named.
const MOST_ZONES: usize = 8;
/// Maximum number of groups that short variants list.
const MOST_GROUPS: usize = 12;

/// A list item for each group of nodes with something to do.
pub(super) fn group_items(
    groups: &[NodeGroup<'_>],
    depth: Depth,
    options: &MarkdownOptions,
) -> String {
    let groups = groups.iter().filter(|group| group.key != Action::Keep);
    let lines = match depth {
        Depth::Counts => counted_groups(groups.collect(), options),
        Depth::Whole | Depth::Values | Depth::Paths => {
            groups.map(|group| group_words(group, true, options)).collect()
        }
    };
    items(&lines, lines.len(), "group")
}

/// `12 replaced: runs revision 7; `a-01 … a-12` (12); zone `a` 12`.
fn group_words(group: &NodeGroup<'_>, names: bool, options: &MarkdownOptions) -> String {
    let NodeGroup { key, why, nodes, zones: _ } = group;
    let mut words = format!("{} {}: {}", grouped(nodes.len()), done(*key), prose(why));
    if let Some(ranges) = ranges(nodes).filter(|_| names) {
        words = format!("{words}; {ranges}");
    }
    let zones = by_zone(nodes, options);
    if zones.is_empty() { words } else { format!("{words}; {zones}") }
}

/// The names of nodes in ranges; `None` if those would mislead.
pub(super) fn ranges(nodes: &[&str]) -> Option<String> {
    let ranges = fold(nodes.iter().copied());
    let clear = ranges.iter().all(NodeRange::is_clear);
    clear.then(|| ranges.iter().map(code).collect::<Vec<_>>().join(", "))
}

/// The largest groups, counted; the others by action.
fn counted_groups(mut largest: Vec<&NodeGroup<'_>>, options: &MarkdownOptions) -> Vec<String> {
    largest.sort_by_key(|group| std::cmp::Reverse(group.nodes.len()));
    let rest = largest.split_off(largest.len().min(MOST_GROUPS));
    let mut words: Vec<String> =
        largest.into_iter().map(|group| group_words(group, false, options)).collect();
    for action in Action::ALL {
        let others = rest.iter().filter(|group| group.key == action);
        let nodes: usize = others.map(|group| group.nodes.len()).sum();
        if nodes > 0 {
            words.push(format!("{} {} for other reasons", grouped(nodes), done(action)));
        }
    }
    words
}

/// The number of `nodes` in each zone; empty if no zone is known.
fn by_zone(nodes: &[&str], options: &MarkdownOptions) -> String {
    if options.zones.is_empty() {
        return String::new();
    }
    let mut tally = Tally::default();
    for node in nodes {
        tally.add(zone(node, options));
    }
    let mut zones = tally.0.keys();
    match (zones.next(), zones.next()) {
        (Some(only), None) => format!("all in zone {}", prose(&clipped(only, LONGEST_COUNTED))),
        _ => format!("by zone: {}", tally.words(MOST_ZONES)),
    }
}

fn zone<'o>(node: &str, options: &'o MarkdownOptions) -> &'o str {
    options.zones.get(node).map_or("none", AsRef::as_ref)
}

/// Counts of texts.
#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn add(&mut self, text: &str) {
        if let Some(count) = self.0.get_mut(text) {
            *count += 1;
        } else {
            self.0.insert(text.to_owned(), 1);
        }
    }

    /// The counts in natural order; those beyond `most` are summed up.
    fn words(self, most: usize) -> String {
        let mut counts: Vec<(String, usize)> = self.0.into_iter().collect();
        if counts.len() > most {
            counts.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| natural_order(a, b)));
        } else {
            counts.sort_by(|(a, _), (b, _)| natural_order(a, b));
        }
        counted(&counts, most)
    }
}

/// The changes of the nodes of DaemonSets whose details are left out: by action, reason, zone and
/// wave, of those with several waves.
pub(super) fn summed(left_out: &[&DaemonSetView<'_>], options: &MarkdownOptions) -> Vec<String> {
    const MOST: usize = 10;
    let mut totals = ActionTotals::default();
    let [mut reasons, mut zones, mut waves] = [(); 3].map(|()| Tally::default());
    for daemon_set in left_out {
        totals += daemon_set.totals;
        for node in daemon_set.nodes.iter().filter(|node| node.action != Action::Keep) {
            if let Some(code) = node.code() {
                reasons.add(code);
            }
            if !options.zones.is_empty() {
                zones.add(zone(node.name, options));
            }
            if daemon_set.waves.len() > 1 {
                waves.add(&node.wave.map_or("at once".to_owned(), |wave| format!("wave {wave}")));
            }
        }
    }
    let reported = [
        ("nodes", node_words(&totals)),
        ("by reason", reasons.words(MOST)),
        ("by zone", zones.words(MOST)),
        ("by wave", waves.words(MOST)),
    ];
    let reported = reported.into_iter().filter(|(_, words)| !words.is_empty());
    reported.map(|(what, words)| format!("{what}: {words}")).collect()
}
