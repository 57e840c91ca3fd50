//! The details of one DaemonSet of a plan: fields, waves, nodes and forecast, in several lengths.

use std::iter;

use super::comment::{MARKDOWN_LIMIT, MarkdownOptions};
use super::fields::{Depth, fields};
use super::fit::LengthVariants;
use super::markup::{Table, code, fence, folded, html_code, items, prose};
use super::nodes::group_items;
use crate::view::{DaemonSetView, NodeRow, StepView, WaveView, node_words, roughly};
use planner::plan::NewPods;
use planner::words::count;

/// Maximum number of waves that short variants list.
const MOST_WAVES: usize = 8;
/// Maximum length of the table of steps, in bytes.
const LONGEST_STEPS: usize = 4_000;
/// Maximum number of fields of other managers that short variants list.
const MOST_OWNED: usize = 5;

/// The details, from the longest variant that can fit to the shortest.
pub(super) fn variants(
    daemon_set: &DaemonSetView<'_>,
    options: &MarkdownOptions,
) -> LengthVariants {
    Depth::variants(options, |depth| reported(daemon_set, depth, options))
}

fn reported(daemon_set: &DaemonSetView<'_>, depth: Depth, options: &MarkdownOptions) -> String {
    let mut blocks = Vec::from_iter(new_pods(daemon_set, depth));
    blocks.extend(fields(daemon_set.fields, daemon_set.base, depth));
    let facts = [
        daemon_set.managed_by.map(prose),
        daemon_set.pause.as_deref().map(prose),
        daemon_set.policy.map(|name| format!("policy {}", code(name))),
        daemon_set.after.as_ref().map(|keys| format!("after {}", code(keys))),
        daemon_set.shared_budget.as_ref().map(|(words, keys)| format!("{words} {}", code(keys))),
        daemon_set.pre_pull.as_ref().map(|words| format!("pre-pull: {words}")),
        daemon_set.counters.clone(),
    ];
    let checks = daemon_set.checks.iter().map(|check| prose(check));
    let facts: Vec<String> = facts.into_iter().flatten().chain(checks).collect();
    blocks.push(items(&facts, facts.len(), "fact"));
    blocks.extend(owned(daemon_set, depth));
    if daemon_set.steps.is_empty() {
        blocks.extend(waves(&daemon_set.waves, depth, options));
    } else {
        let differing = daemon_set.steps.iter().filter(|step| !step.is_plain);
        let groups = differing.map(|step| group_items(&step.groups, depth, options));
        blocks.extend(groups);
    }
    let at_once = group_items(&daemon_set.at_once, depth, options);
    if !at_once.is_empty() {
        let title = match daemon_set.waves.len() {
            0 => "Nodes",
            1 => "Other nodes",
            _ => "Outside of waves",
        };
        blocks.push(format!("**{title}**\n\n{at_once}"));
    }
    if depth == Depth::Whole {
        blocks.push(every_node(&daemon_set.nodes));
    }
    blocks.extend(forecast(daemon_set));
    blocks.retain(|block| !block.is_empty());
    folded(&summary(daemon_set), &blocks.join("\n\n"))
}

/// The steps as a table, the earliest end, and what is waited for. `None` if nothing is waited for.
pub(super) fn steps(daemon_set: &DaemonSetView<'_>) -> Option<String> {
    let mut table = Table::new(&["step", "nodes", "which", "pace", "takes"]);
    for step in &daemon_set.steps {
        let StepView { title, nodes, whereabouts, limits, .. } = step;
        let takes = step.takes_and_state();
        let cells = [title, &nodes.to_string(), whereabouts, limits, &takes].map(|it| prose(it));
        if !table.row(&cells, LONGEST_STEPS) {
            break;
        }
    }
    let table = (!daemon_set.steps.is_empty()).then(|| table.to_string());
    let lines = daemon_set.earliest_end.iter().chain(&daemon_set.waits_for).map(|it| prose(it));
    let blocks: Vec<String> = table.into_iter().chain(lines).collect();
    let policy = daemon_set.policy.map(|name| format!(", policy {}", code(name)));
    let title = format!("**{}**{}", code(&daemon_set.key), policy.unwrap_or_default());
    (!blocks.is_empty()).then(|| format!("{title}\n\n{}", blocks.join("\n\n")))
}

/// The line that is visible while the details are collapsed.
fn summary(daemon_set: &DaemonSetView<'_>) -> String {
    let title = daemon_set.title();
    let happens = node_words(&daemon_set.totals);
    let reported = if happens.is_empty() { title } else { format!("{title}, {happens}") };
    format!("{}: {reported}", html_code(&daemon_set.key))
}

/// Fields that conflict with other managers, and fields that are kept because of them.
fn owned(daemon_set: &DaemonSetView<'_>, depth: Depth) -> Option<String> {
    let lines = daemon_set.owned.iter().map(|it| {
        let manager = it.manager.map_or("no manager".to_owned(), code);
        format!("{} {} {manager}", code(it.path), it.words)
    });
    let lines: Vec<String> = lines.collect();
    let most = if depth == Depth::Whole { lines.len() } else { MOST_OWNED };
    (!lines.is_empty())
        .then(|| format!("**Fields of other managers**\n\n{}", items(&lines, most, "field")))
}

fn waves(waves: &[WaveView<'_>], depth: Depth, options: &MarkdownOptions) -> Vec<String> {
    let most = if depth == Depth::Counts { MOST_WAVES } else { waves.len() };
    let (shown, rest) = waves.split_at(most.min(waves.len()));
    let reported = shown.iter().map(|wave| {
        let WaveView { name, nodes, pace, groups, .. } = wave;
        let nodes = count(*nodes, "node");
        let title = match name {
            Some((index, name)) => format!("**Wave {index}** ({}): {nodes}", prose(name)),
            None => format!("**{nodes}**"),
        };
        format!("{title}{}\n\n{}", prose(pace), group_items(groups, depth, options))
    });
    let mut reported: Vec<String> = reported.collect();
    if !rest.is_empty() {
        let nodes: usize = rest.iter().map(|wave| wave.nodes).sum();
        let more = count(rest.len(), "more wave");
        reported.push(format!("and {more}: {}", count(nodes, "node")));
    }
    reported
}

/// A line for each node, up to the length limit of the document.
fn every_node(nodes: &[NodeRow<'_>]) -> String {
    let mut lines = Vec::new();
    let mut length = 0;
    for node in nodes {
        let start = format!("{:3} {}", node.action.symbol(), node.name);
        let line = iter::once(start).chain(node.fates()).collect::<Vec<_>>().join("   ");
        length += line.len();
        lines.push(line);
        // Too long: this variant is not used.
        if length > MARKDOWN_LIMIT {
            break;
        }
    }
    fence("", &lines)
}

/// The images of a new DaemonSet, and what its pods may do beyond other pods.
fn new_pods(daemon_set: &DaemonSetView<'_>, depth: Depth) -> Option<String> {
    let NewPods { images, access } = daemon_set.new_pods?;
    let images = images.iter().map(|image| format!("image {}", code(image)));
    let access = access.iter().map(|access| prose(&access.to_string()));
    let lines: Vec<String> = images.chain(access).collect();
    let most = if depth == Depth::Counts { MOST_OWNED } else { lines.len() };
    Some(format!("**New pods**\n\n{}", items(&lines, most, "line")))
}

/// The expected duration, and the number of rounds that the rollout needs.
fn forecast(daemon_set: &DaemonSetView<'_>) -> Option<String> {
    if daemon_set.on_delete {
        return Some(format!("**Forecast**: {}.", daemon_set.strategy));
    }
    let rounds = daemon_set.waves.iter().filter_map(|wave| wave.rounds_words.as_deref());
    let rounds: Vec<&str> = rounds.take(MOST_WAVES).collect();
    let rounds = (!rounds.is_empty()).then(|| rounds.join(", then "));
    let about = daemon_set.course.map(|it| format!("about {}", roughly(it.seconds)));
    let words: Vec<String> = about.into_iter().chain(rounds).collect();
    (!words.is_empty()).then(|| format!("**Forecast**: {}.", words.join("; ")))
}
