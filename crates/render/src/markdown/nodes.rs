//! The changes of nodes by wave, action and reason, with names and zones, or only counted.

use std::collections::BTreeMap;

use super::{LONGEST_COUNTED, MarkdownOptions, clipped, code, counted, prose};
use crate::nodes::{Group, groups};
use crate::ranges::{fold, natural_order};
use planner::plan::{Action, ActionTotals, DaemonSetPlan, NodePlan};

/// Maximum number of zones that are named.
const MOST_ZONES: usize = 8;
/// Maximum number of groups that short variants list.
const MOST_GROUPS: usize = 12;

/// Nodes of a DaemonSet grouped by wave, action and reason; wave `None` is changed at once.
pub(super) struct Fates<'a>(Vec<(Option<u32>, Vec<Group<'a, Action>>)>);

impl<'a> Fates<'a> {
    pub(super) fn of(daemon_set: &'a DaemonSetPlan) -> Self {
        let mut waves: BTreeMap<Option<u32>, Vec<&NodePlan>> = BTreeMap::new();
        for node in daemon_set.nodes.iter().filter(|node| node.action != Action::Keep) {
            waves.entry(node.wave).or_default().push(node);
        }
        let grouped = waves.into_iter().map(|(wave, nodes)| {
            let reported = nodes.into_iter().map(|node| {
                let NodePlan { name, action, wave: _, pods: _, reasons } = node;
                (*action, name.as_ref(), reasons.as_slice())
            });
            (wave, groups(reported))
        });
        Self(grouped.collect())
    }

    /// The groups of one wave, or of the nodes that are changed at once.
    pub(super) fn of_wave(&self, wave: Option<u32>) -> &[Group<'a, Action>] {
        self.0.iter().find(|(index, _)| *index == wave).map_or(&[], |(_, groups)| groups)
    }
}

/// `12 replaced: runs revision 7; `a-01 … a-12` (12); zone `a` 12`.
pub(super) fn group_words(
    group: &Group<'_, Action>,
    names: bool,
    options: &MarkdownOptions,
) -> String {
    let Group { key, why, nodes } = group;
    let mut words = format!("{}: {}", done(*key, nodes.len()), prose(why));
    if names {
        let ranges: Vec<String> = fold(nodes.iter().copied()).iter().map(code).collect();
        words = format!("{words}; {}", ranges.join(", "));
    }
    let zones = by_zone(nodes, options);
    if zones.is_empty() { words } else { format!("{words}; {zones}") }
}

/// The largest of `groups`, counted; the others by action.
pub(super) fn counted_groups(
    groups: &[Group<'_, Action>],
    options: &MarkdownOptions,
) -> Vec<String> {
    let mut largest: Vec<&Group<'_, Action>> = groups.iter().collect();
    largest.sort_by_key(|group| std::cmp::Reverse(group.nodes.len()));
    let rest = largest.split_off(largest.len().min(MOST_GROUPS));
    let mut words: Vec<String> =
        largest.into_iter().map(|group| group_words(group, false, options)).collect();
    for action in Action::ALL {
        let others = rest.iter().filter(|group| group.key == action);
        let nodes: usize = others.map(|group| group.nodes.len()).sum();
        if nodes > 0 {
            words.push(format!("{} for other reasons", done(action, nodes)));
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
        tally.add(zone(node, options), 1);
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
    fn add(&mut self, text: &str, times: usize) {
        if let Some(count) = self.0.get_mut(text) {
            *count += times;
        } else {
            self.0.insert(text.to_owned(), times);
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
/// wave.
pub(super) fn summed(left_out: &[&DaemonSetPlan], options: &MarkdownOptions) -> Vec<String> {
    const MOST: usize = 10;
    let mut totals = ActionTotals::default();
    let [mut reasons, mut zones, mut waves] = [(); 3].map(|()| Tally::default());
    for daemon_set in left_out {
        totals += daemon_set.totals;
        for node in daemon_set.nodes.iter().filter(|node| node.action != Action::Keep) {
            for coded in node.reasons.iter().take(1) {
                reasons.add(coded.reason.code(), 1);
            }
            if !options.zones.is_empty() {
                zones.add(zone(node.name.as_ref(), options), 1);
            }
            let wave = node.wave.map_or("at once".to_owned(), |wave| format!("wave {wave}"));
            waves.add(&wave, 1);
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

/// `409 replaced, 1 waiting`; empty if no node changes.
pub(crate) fn node_words(totals: &ActionTotals) -> String {
    let happens = Action::ALL.into_iter().filter(|action| *action != Action::Keep);
    let counts = happens.map(|action| (action, totals.of(action))).filter(|(_, count)| *count > 0);
    counts.map(|(action, count)| done(action, count)).collect::<Vec<_>>().join(", ")
}

/// `409 replaced`.
fn done(action: Action, nodes: impl std::fmt::Display) -> String {
    let word = match action {
        Action::Create => "created",
        Action::Delete => "deleted",
        Action::Replace => "replaced",
        Action::Surge => "surged",
        Action::Wait => "waiting",
        Action::Keep => "kept",
    };
    format!("{nodes} {word}")
}
