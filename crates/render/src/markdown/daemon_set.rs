//! The details of one DaemonSet of a plan: fields, waves, nodes and forecast, in several lengths.

use std::iter;

use super::fields::{Depth, fields};
use super::fit::LengthVariants;
use super::nodes::{Fates, counted_groups, group_words, node_words};
use super::{MARKDOWN_LIMIT, MarkdownOptions, few, folded, html_code, items, prose};
use crate::daemon_set_text::{counters_words, managed_words, strategy_words};
use crate::nodes::fate;
use crate::pace::{pace, rounds, stays_up};
use crate::page::count;
use crate::plan_text::key;
use daemonset::model::Cascade;
use planner::plan::{Change, DaemonSetPlan, FieldOwner, NodePlan, Strategy, Wave};

/// Maximum number of waves that short variants list.
const MOST_WAVES: usize = 8;
/// Maximum number of fields of other managers that short variants list.
const MOST_OWNED: usize = 5;

/// The level of detail of one DaemonSet, from the most to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    /// Every node with its pods, and values in full.
    EveryNode,
    /// Names in ranges, values shortened.
    Ranges,
    /// Names in ranges, fields by path only.
    Paths,
    /// Everything counted.
    Counts,
}

/// The details, from the longest variant that can fit to the shortest.
pub(super) fn variants(daemon_set: &DaemonSetPlan, options: &MarkdownOptions) -> LengthVariants {
    let fates = Fates::of(daemon_set);
    let all = [Telling::EveryNode, Telling::Ranges, Telling::Paths, Telling::Counts];
    let wanted = all.into_iter().filter(|it| options.verbose || *it != Telling::EveryNode);
    let reported = wanted.map(|telling| reported(daemon_set, &fates, telling, options));
    reported.filter(|text| text.len() < MARKDOWN_LIMIT).collect()
}

fn reported(
    daemon_set: &DaemonSetPlan,
    fates: &Fates<'_>,
    telling: Telling,
    options: &MarkdownOptions,
) -> String {
    let DaemonSetPlan {
        namespace: _,
        name: _,
        uid: _,
        generation: _,
        change: _,
        cascade: _,
        managed_by,
        policy,
        strategy,
        pause,
        live_template: _,
        target_template: _,
        revision: _,
        changes,
        base,
        leftovers,
        conflicts,
        forced_conflicts: _,
        waves,
        nodes,
        totals: _,
        status,
    } = daemon_set;
    let depth = match telling {
        Telling::EveryNode => Depth::Whole,
        Telling::Ranges => Depth::Values,
        Telling::Paths => Depth::Paths,
        Telling::Counts => Depth::Counts,
    };
    let mut blocks = fields(changes, base.as_ref(), depth);
    let mut facts: Vec<String> = managed_words(*managed_by).iter().map(|it| prose(it)).collect();
    facts.extend(pause.iter().map(|pause| prose(&pause.to_string())));
    facts.extend(policy.iter().map(|name| format!("policy {}", super::code(name))));
    facts.extend(status.as_ref().map(counters_words));
    blocks.push(items(&facts, MOST_OWNED, "facts"));
    blocks.extend(owned(conflicts, leftovers, telling));
    blocks.extend(reported_waves(waves, fates, telling, options));
    blocks.extend(at_once(fates, telling, options));
    if telling == Telling::EveryNode {
        blocks.push(every_node(nodes));
    }
    blocks.push(forecast(*strategy, waves));
    blocks.retain(|block| !block.is_empty());
    folded(&summary(daemon_set), &blocks.join("\n\n"))
}

/// The line that is visible while the details are collapsed.
fn summary(daemon_set: &DaemonSetPlan) -> String {
    let fields = match (daemon_set.change, daemon_set.changes.len()) {
        (Change::Create, _) => "new".to_owned(),
        (Change::Delete, _) => object_words(daemon_set).to_owned(),
        (Change::Update | Change::Recreate | Change::None, fields) => count(fields, "field"),
    };
    let happens = node_words(&daemon_set.totals);
    let reported = if happens.is_empty() { fields } else { format!("{fields}, {happens}") };
    format!("{}: {reported}", html_code(key(daemon_set)))
}

/// Fields that conflict with other managers, and fields that are kept because of them.
fn owned(conflicts: &[FieldOwner], leftovers: &[FieldOwner], telling: Telling) -> Option<String> {
    let owner = |owner: &FieldOwner, words: &str| {
        let FieldOwner { path, manager } = owner;
        let manager = manager.as_ref().map_or("no manager".to_owned(), super::code);
        format!("{} {words} {manager}", super::code(path))
    };
    let taken = conflicts.iter().map(|it| owner(it, "conflicts with"));
    let stays = leftovers.iter().map(|it| owner(it, "kept; not in git; owned by"));
    let all: Vec<String> = taken.chain(stays).collect();
    let most = if telling == Telling::EveryNode { all.len() } else { MOST_OWNED };
    (!all.is_empty())
        .then(|| format!("**Fields of other managers**\n\n{}", items(&all, most, "fields")))
}

fn reported_waves(
    waves: &[Wave],
    fates: &Fates<'_>,
    telling: Telling,
    options: &MarkdownOptions,
) -> Vec<String> {
    let short = telling == Telling::Counts;
    let most = if short { MOST_WAVES } else { waves.len() };
    let mut reported: Vec<String> = waves
        .iter()
        .take(most)
        .map(|wave| {
            let Wave { index, nodes, .. } = wave;
            let budget = prose(&format!("{}{}", pace(wave), stays_up(wave)));
            let name =
                if waves.len() > 1 { format!(" ({})", prose(&wave.name)) } else { String::new() };
            let title = format!("**Wave {index}**{name}: {}{budget}", count(nodes.len(), "node"));
            let groups = reported_groups(fates, Some(*index), short, options);
            format!("{title}\n\n{}", items(&groups, groups.len(), "groups"))
        })
        .collect();
    if waves.len() > most {
        let rest = &waves[most..];
        let nodes: usize = rest.iter().map(|wave| wave.nodes.len()).sum();
        reported.push(format!("and {} more waves: {}", rest.len(), count(nodes, "node")));
    }
    reported
}

/// Changes that do not wait for a wave.
fn at_once(fates: &Fates<'_>, telling: Telling, options: &MarkdownOptions) -> Option<String> {
    let groups = reported_groups(fates, None, telling == Telling::Counts, options);
    let list = items(&groups, groups.len(), "groups");
    (!groups.is_empty()).then(|| format!("**Outside of waves**\n\n{list}"))
}

fn reported_groups(
    fates: &Fates<'_>,
    wave: Option<u32>,
    short: bool,
    options: &MarkdownOptions,
) -> Vec<String> {
    let groups = fates.of_wave(wave);
    if short {
        return counted_groups(groups, options);
    }
    groups.iter().map(|group| group_words(group, true, options)).collect()
}

/// A line for each node, up to the length limit of the document.
fn every_node(nodes: &[NodePlan]) -> String {
    let mut lines = Vec::new();
    let mut length = 0;
    for NodePlan { name, action, wave: _, pods, reasons: _ } in nodes {
        let start = format!("{:3} {name}", action.symbol());
        let line = iter::once(start).chain(pods.iter().map(fate)).collect::<Vec<_>>().join("   ");
        length += line.len();
        lines.push(line);
        // Too long: this variant is not used.
        if length > MARKDOWN_LIMIT {
            break;
        }
    }
    super::fence("", &lines)
}

/// The number of rounds that the rollout needs.
fn forecast(strategy: Strategy, waves: &[Wave]) -> String {
    let in_rounds: Vec<String> = waves.iter().filter_map(rounds).collect();
    match (strategy, in_rounds.as_slice()) {
        (Strategy::OnDelete, _) => format!("**Forecast**: {}.", strategy_words(strategy)),
        (Strategy::RollingUpdate { .. }, []) => String::new(),
        (Strategy::RollingUpdate { .. }, rounds) => {
            format!("**Forecast**: {}.", rounds[..rounds.len().min(MOST_WAVES)].join(", then "))
        }
    }
}

/// The change of the object, and of the pods of a deleted one.
pub(crate) fn object_words(daemon_set: &DaemonSetPlan) -> &'static str {
    match daemon_set.cascade {
        Some(Cascade::Orphan) => "deleted, its pods are kept",
        Some(Cascade::Background) | None => change_words(daemon_set.change),
    }
}

/// The change of objects.
pub(super) fn change_words(change: Change) -> &'static str {
    match change {
        Change::Create => "created",
        Change::Update => "updated",
        Change::Recreate => "must be deleted and recreated",
        Change::Delete => "deleted",
        Change::None => "unchanged",
    }
}

/// Names of DaemonSets.
pub(super) fn keys(daemon_sets: &[&DaemonSetPlan], most: usize) -> String {
    few(daemon_sets.iter().map(|it| key(it)), most)
}
