//! Groups nodes with the same action and reasons, so that a fleet fits on a screen.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

use super::page::{Line, Page, count};
use super::ranges::{fold, listed, natural_order};
use planner::plan::{Coded, Fate, NodePlan, PodPlan, Reason};

/// Maximum number of groups that are listed although only the details of their reasons differ.
const MOST_ALIKE: usize = 5;
/// The reasons are aligned if no name before them is wider than this.
const MOST_ALIGNED: usize = 44;

/// Nodes with the same action and the same reasons.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group<'a, K> {
    /// Their action.
    pub key: K,
    /// Their reasons, as one sentence.
    pub why: String,
    /// Their names, in natural order.
    pub nodes: Vec<&'a str>,
}

/// The kinds of the reasons, without their data.
type Codes = Vec<Discriminant<Reason>>;

/// Nodes by action and reasons, before groups are merged.
type Alike<'a, K> = BTreeMap<(K, String), (Codes, Vec<&'a str>)>;

/// Groups `nodes`, given as key, name and reasons; ordered by key, then name.
pub(super) fn groups<'a, K: Ord + Copy>(
    nodes: impl IntoIterator<Item = (K, &'a str, &'a [Coded<Reason>])>,
) -> Vec<Group<'a, K>> {
    let mut alike: Alike<'a, K> = BTreeMap::new();
    for (key, name, reasons) in nodes {
        let codes = || reasons.iter().map(|coded| discriminant(&coded.reason)).collect();
        let group = alike.entry((key, sentence(reasons)));
        group.or_insert_with(|| (codes(), Vec::new())).1.push(name);
    }
    let mut groups = merge_details(alike);
    for group in &mut groups {
        group.nodes.sort_by(|a, b| natural_order(a, b));
    }
    groups.sort_by(|a, b| a.key.cmp(&b.key).then_with(|| first_name_order(a, b)));
    groups
}

fn first_name_order<K>(a: &Group<'_, K>, b: &Group<'_, K>) -> std::cmp::Ordering {
    let first = |group: &Group<'_, K>| group.nodes.first().copied().unwrap_or_default().to_owned();
    natural_order(&first(a), &first(b))
}

/// Reasons may name a pod, a different one on each node. Many groups that differ only in that are
/// merged into one, with the reason of the first.
fn merge_details<'a, K: Ord + Copy>(alike: Alike<'a, K>) -> Vec<Group<'a, K>> {
    let mut groups: Vec<(Codes, Vec<Group<'a, K>>)> = Vec::new();
    for ((key, why), (codes, nodes)) in alike {
        let group = Group { key, why, nodes };
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
            speaker.why = format!("{} ({others} with other details, -v shows them)", speaker.why);
            speaker.nodes.extend(rest);
        }
        all
    });
    merged.collect()
}

/// All reasons in one sentence, made from their data.
pub(super) fn sentence(reasons: &[Coded<Reason>]) -> String {
    let texts: Vec<String> = reasons.iter().map(Coded::to_string).collect();
    texts.join("; ")
}

/// Nodes as text: `edge-c-77`, or `12 nodes: edge-a-01 … edge-a-12`.
pub(super) fn names(nodes: &[&str]) -> String {
    let ranges = fold(nodes.iter().copied());
    if ranges.iter().all(|range| range.count == 1) {
        listed(&ranges)
    } else {
        format!("{}: {}", count(nodes.len(), "node"), listed(&ranges))
    }
}

/// The column in which reasons begin, counted from where the names begin.
pub(super) fn reason_column<'a, K: 'a>(
    groups: impl IntoIterator<Item = &'a Group<'a, K>>,
) -> usize {
    let widths = groups.into_iter().map(|group| names(&group.nodes).chars().count());
    widths.filter(|width| *width <= MOST_ALIGNED).max().unwrap_or(0)
}

/// Adds a line for each node, with its pods.
pub(super) fn every_node<'a>(
    page: &mut Page,
    indent: usize,
    nodes: impl IntoIterator<Item = &'a NodePlan>,
) {
    for NodePlan { name, action: _, wave: _, pods, reasons: _ } in nodes {
        let mut line = Line::at(indent).plain(name);
        for pod in pods {
            line = line.plain("   ").plain(fate(pod));
        }
        page.push(line);
    }
}

/// Whether a pod is kept or deleted, and the reason.
pub(super) fn fate(pod: &PodPlan) -> String {
    let PodPlan { name, uid: _, revision_hash: _, fate, reason } = pod;
    match fate {
        Fate::Keep => format!("pod {name} kept: {reason}"),
        Fate::Delete => format!("pod {name} deleted: {reason}"),
    }
}
