//! Nodes: one by one, and grouped by action and reasons, so that a fleet fits on a screen.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{Discriminant, discriminant};

use super::ranges::{NodeRange, fold, listed, natural_order};
use planner::plan::{
    Action, ActionTotals, Coded, Fate, NodePlan, PodPlan, Reason, RevisionPlan, Zones,
};
use planner::words::{count, grouped};

/// Actions, the one with the most risk first: of a node with several, the map shows the first.
pub(crate) const BY_RISK: [Action; 6] =
    [Action::Delete, Action::Wait, Action::Replace, Action::Surge, Action::Create, Action::Keep];

/// Maximum number of groups that are listed although only the details of their reasons differ.
const MOST_ALIKE: usize = 5;

/// The plan of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeRow<'a> {
    pub name: &'a str,
    pub action: Action,
    /// Index of its wave, if there are several.
    pub wave: Option<u32>,
    reasons: &'a [Coded<Reason>],
    pods: &'a [PodPlan],
}

impl<'a> NodeRow<'a> {
    pub(super) fn of(node: &'a NodePlan, several_waves: bool) -> Self {
        let NodePlan { name, action, wave, pods, reasons } = node;
        let wave = wave.filter(|_| several_waves);
        Self { name: name.as_ref(), action: *action, wave, reasons, pods }
    }

    /// All reasons in one sentence.
    pub(crate) fn why(&self) -> String {
        sentence(self.reasons)
    }

    /// Code of the main reason.
    pub(crate) fn code(&self) -> Option<&'static str> {
        self.reasons.first().map(|coded| coded.reason.code())
    }

    /// Each of its pods, whether it is kept, and why.
    pub(crate) fn fates(&self) -> impl Iterator<Item = String> {
        self.pods.iter().map(fate)
    }
}

/// Nodes with the same action and the same reasons.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeGroup<'a, K = Action> {
    /// Their action; `()` where no action is planned.
    pub key: K,
    /// Their reasons, as one sentence.
    pub why: String,
    /// Their names, in natural order.
    pub nodes: Vec<&'a str>,
    /// Number of their zones; `None` if not all of them are known.
    pub zones: Option<usize>,
}

impl<K> NodeGroup<'_, K> {
    /// Its nodes as text.
    pub(crate) fn names(&self) -> String {
        names(&self.nodes, self.zones)
    }
}

/// The kinds of the reasons, without their data.
type Codes = Vec<Discriminant<Reason>>;

/// Nodes by action and reasons, before groups are merged.
type Alike<'a, K> = BTreeMap<(K, String), (Codes, Vec<&'a str>)>;

/// Groups `nodes`, given as key, name and reasons; ordered by key, then name.
pub(crate) fn groups<'a, K: Ord + Copy>(
    nodes: impl IntoIterator<Item = (K, &'a str, &'a [Coded<Reason>])>,
    zones: &Zones,
) -> Vec<NodeGroup<'a, K>> {
    let mut alike: Alike<'a, K> = BTreeMap::new();
    for (key, name, reasons) in nodes {
        let codes = || reasons.iter().map(|coded| discriminant(&coded.reason)).collect();
        let group = alike.entry((key, sentence(reasons)));
        group.or_insert_with(|| (codes(), Vec::new())).1.push(name);
    }
    let mut groups = merge_details(alike);
    for group in &mut groups {
        group.nodes.sort_by(|a, b| natural_order(a, b));
        group.zones = zones_of(&group.nodes, zones);
    }
    groups.sort_by(|a, b| a.key.cmp(&b.key).then_with(|| first_name_order(a, b)));
    groups
}

fn first_name_order<K>(a: &NodeGroup<'_, K>, b: &NodeGroup<'_, K>) -> std::cmp::Ordering {
    let first =
        |group: &NodeGroup<'_, K>| group.nodes.first().copied().unwrap_or_default().to_owned();
    natural_order(&first(a), &first(b))
}

/// Reasons may name a pod, a different one on each node. Many groups that differ only in that are
/// merged into one, with the reason of the first.
fn merge_details<'a, K: Ord + Copy>(alike: Alike<'a, K>) -> Vec<NodeGroup<'a, K>> {
    let mut groups: Vec<(Codes, Vec<NodeGroup<'a, K>>)> = Vec::new();
    for ((key, why), (codes, nodes)) in alike {
        let group = NodeGroup { key, why, nodes, zones: None };
        match groups.iter_mut().find(|(other, all)| *other == codes && all[0].key == key) {
            Some((_, all)) => all.push(group),
            None => groups.push((codes, vec![group])),
        }
    }
    let merged = groups.into_iter().flat_map(|(_, mut all)| {
        if all.len() > MOST_ALIKE {
            let rest: Vec<&str> = all.drain(1..).flat_map(|group| group.nodes).collect();
            let speaker = &mut all[0];
            let others = rest.len();
            let others = grouped(others);
            speaker.why = format!("{} ({others} with other details, -v shows them)", speaker.why);
            speaker.nodes.extend(rest);
        }
        all
    });
    merged.collect()
}

/// All reasons in one sentence, made from their data.
pub(crate) fn sentence(reasons: &[Coded<Reason>]) -> String {
    let texts: Vec<String> = reasons.iter().map(Coded::to_string).collect();
    texts.join("; ")
}

/// Number of zones of `nodes`; `None` if not all of them are known.
pub(super) fn zones_of(nodes: &[&str], zones: &Zones) -> Option<usize> {
    let known: Option<BTreeSet<&str>> =
        nodes.iter().map(|node| zones.get(*node).map(AsRef::as_ref)).collect();
    known.map(|known| known.len()).filter(|number| *number > 0)
}

/// Nodes as text: `edge-c-77`, or `12 nodes: edge-a-01 … edge-a-12`, or `417 nodes in 3 zones`.
pub(crate) fn names(nodes: &[&str], zones: Option<usize>) -> String {
    match whereabouts(nodes, zones) {
        Whereabouts::Each(names) => names,
        Whereabouts::Ranges(ranges) => format!("{}: {ranges}", count(nodes.len(), "node")),
        Whereabouts::Zones(zones) => format!("{} {zones}", count(nodes.len(), "node")),
        Whereabouts::Unclear => count(nodes.len(), "node"),
    }
}

/// What tells a reader which nodes are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// Each of their names.
    Each(String),
    /// Ranges of their names.
    Ranges(String),
    /// `in 3 zones`, where ranges would mislead.
    Zones(String),
    /// Ranges would mislead, and zones are not known.
    Unclear,
}

/// What tells a reader which nodes are meant.
pub(crate) fn whereabouts(nodes: &[&str], zones: Option<usize>) -> Whereabouts {
    let ranges = fold(nodes.iter().copied());
    if ranges.iter().all(|range| range.count == 1) {
        return Whereabouts::Each(listed(&ranges));
    }
    if ranges.iter().all(NodeRange::is_clear) {
        return Whereabouts::Ranges(listed(&ranges));
    }
    zones.map_or(Whereabouts::Unclear, |zones| {
        Whereabouts::Zones(format!("in {}", count(zones, "zone")))
    })
}

/// Whether a pod is kept or deleted, and the reason.
pub(crate) fn fate(pod: &PodPlan) -> String {
    let PodPlan { name, uid: _, revision_hash: _, fate, reason } = pod;
    match fate {
        Fate::Keep => format!("pod {name} kept: {reason}"),
        Fate::Delete => format!("pod {name} deleted: {reason}"),
    }
}

/// The actions that nodes undergo, with their numbers, the riskiest first.
pub(crate) fn happens(totals: &ActionTotals) -> impl Iterator<Item = (Action, u32)> {
    let actions = BY_RISK.into_iter().filter(|action| *action != Action::Keep);
    actions.map(|action| (action, totals.of(action))).filter(|(_, count)| *count > 0)
}

/// `1 waiting, 409 replaced`; empty if no node changes.
pub(crate) fn node_words(totals: &ActionTotals) -> String {
    let words =
        happens(totals).map(|(action, count)| format!("{} {}", grouped(count), done(action)));
    words.collect::<Vec<_>>().join(", ")
}

/// The action as done: `replaced`.
pub(crate) fn done(action: Action) -> &'static str {
    match action {
        Action::Create => "created",
        Action::Delete => "deleted",
        Action::Replace => "replaced",
        Action::Surge => "surged",
        Action::Wait => "waiting",
        Action::Keep => "nothing to do",
    }
}
/// Whether all of these nodes have one reason: they run the current revision.
pub(super) fn runs_current(groups: &[NodeGroup<'_>], revision: &RevisionPlan) -> bool {
    let current = revision.current.as_ref().map(|it| it.number);
    let wanted = sentence(&[Reason::Outdated { revision: current }.into()]);
    matches!(groups, [only] if only.why == wanted)
}
