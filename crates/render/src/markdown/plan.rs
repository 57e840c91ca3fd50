//! A plan as a comment on a pull request. Its first screen has the cluster, the effect of merging,
//! the expected duration, the guards, and a row for each DaemonSet, the riskiest first. Details are
//! collapsed.

use std::collections::{BTreeMap, BTreeSet};

use super::comment::{MARKDOWN_LIMIT, MarkdownOptions, document};
use super::daemon_set::{self, variants};
use super::fit::{LengthVariants, fitted};
use super::markup::{Table, code, few, folded, items, prose};
use super::nodes::summed;
use super::notices::{guards, many_guards, warnings};
use super::origin::{cluster, compared};
use crate::view::{
    self, ActionTotals, Change, DaemonSetView, Notice, PlanView, asked_words, change_words, effect,
    node_words, number_of,
};
use daemonset::model::short_commit;
use planner::plan::Plan;
use planner::words::{agree, count, grouped};

/// Maximum length of the table, so that there is room for details.
const TABLE: usize = 20_000;
/// Maximum length of the steps of all DaemonSets.
const STEPS: usize = 12_000;
/// Length reserved for the summary of DaemonSets whose details are left out.
const LEFT_OUT: usize = 8_000;
/// Maximum number of names; the others are counted.
const MOST_NAMES: usize = 5;
/// Maximum number of privileges and host accesses in a row of the table; the others are counted.
const MOST_ACCESS: usize = 3;

/// The plan as GitHub-flavoured Markdown, at most [`MARKDOWN_LIMIT`] bytes of it.
pub fn plan_markdown(plan: &Plan, options: &MarkdownOptions) -> String {
    let plan = PlanView::of(plan);
    let (shown, quiet) = plan.by_risk();
    let mut blocks = vec![headline(&plan)];
    if shown.is_empty() && plan.guards.is_empty() && plan.warnings.is_empty() {
        return document(&blocks, &options.comment);
    }
    blocks.extend(plan.forecast.clone());
    blocks.extend(guards(&plan.guards));
    blocks.extend(steps(&shown));
    if !shown.is_empty() {
        blocks.push(table(&shown, &plan.guards));
    }
    if !shown.is_empty() && !quiet.is_empty() {
        let others = count(quiet.len(), "other DaemonSet");
        blocks.push(format!("Nothing to do for {others}: {}.", keys(&quiet)));
    }
    let footer = footer(&plan);
    let used: usize = blocks.iter().map(|block| block.len() + 2).sum();
    let room = MARKDOWN_LIMIT.saturating_sub(used + footer.len() + LEFT_OUT);
    blocks.extend(details(&plan, &shown, room, options));
    blocks.push(footer);
    document(&blocks, &options.comment)
}

/// The steps of the DaemonSets that have some, and when they end. These are not collapsed: they take
/// the longest.
fn steps(shown: &[&DaemonSetView<'_>]) -> Vec<String> {
    let blocks: Vec<String> = shown.iter().filter_map(|it| daemon_set::steps(it)).collect();
    let mut room = STEPS;
    let fits = |block: &&String| {
        let fits = block.len() <= room;
        room = room.saturating_sub(block.len());
        fits
    };
    let mut fitting: Vec<String> = blocks.iter().take_while(fits).cloned().collect();
    if fitting.len() < blocks.len() {
        let more = count(blocks.len() - fitting.len(), "more DaemonSet");
        fitting.push(format!("and steps of {more}, which the plan as text or HTML shows."));
    }
    fitting
}

/// The collapsed details, as far as there is room, and a summary of those left out.
fn details(
    plan: &PlanView<'_>,
    shown: &[&DaemonSetView<'_>],
    room: usize,
    options: &MarkdownOptions,
) -> Vec<String> {
    let mut parts: Vec<LengthVariants> = vec![many_guards(&plan.guards), warnings(&plan.warnings)];
    let messages = parts.len();
    parts.extend(shown.iter().map(|daemon_set| variants(daemon_set, options)));
    let (mut blocks, left_out) = fitted(&parts, room);
    let left_out = left_out.into_iter().filter_map(|part| shown.get(part.checked_sub(messages)?));
    let left_out: Vec<&DaemonSetView<'_>> = left_out.copied().collect();
    if !left_out.is_empty() {
        let sums = summed(&left_out, options);
        let what = format!("Details left out for length: {}", count(left_out.len(), "DaemonSet"));
        let names = keys(&left_out);
        blocks.push(folded(&what, &format!("{names}\n\n{}", items(&sums, sums.len(), "sum"))));
    }
    blocks
}

fn keys(daemon_sets: &[&DaemonSetView<'_>]) -> String {
    few(daemon_sets.iter().map(|it| &it.key), MOST_NAMES)
}

/// The cluster, and the effect of merging, in one line.
fn headline(plan: &PlanView<'_>) -> String {
    let cluster = cluster(&plan.origin);
    let what = plan.origin.commit.map_or("this".to_owned(), |id| code(short_commit(id)));
    let changing = plan.changing();
    if changing.is_empty() {
        let checked = count(plan.daemon_sets.len(), "DaemonSet");
        return format!("**{cluster}: merging {what} changes nothing**: {checked} checked.");
    }
    let asked = |it: &&DaemonSetView<'_>| it.base.is_none_or(|base| base.change != Change::None);
    let (own, older): (Vec<&DaemonSetView<'_>>, Vec<_>) = changing.into_iter().partition(asked);
    let mut line = match own.as_slice() {
        [] => format!("**{cluster}: merging {what} itself changes nothing.**"),
        own => format!("**{cluster}: merging {what} {}.**", effect(own)),
    };
    if !older.is_empty() {
        line = format!(
            "{line} {} {} from git already; applying the rest of git {}.",
            count(older.len(), "DaemonSet"),
            agree(older.len(), "differs", "differ"),
            effect(&older)
        );
    }
    if !plan.guards.is_empty() {
        line = format!("{line} Blocked by {}.", count(number_of(&plan.guards), "guard"));
    }
    line
}

fn table(shown: &[&DaemonSetView<'_>], guards: &[Notice<'_>]) -> String {
    let mut header = vec!["DaemonSet", "Object", "Nodes", "Revision", "Pace"];
    let base = shown.iter().any(|it| it.base.is_some());
    if base {
        header.push("By this pull request");
    }
    let mut blocked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for guard in guards {
        for key in &guard.daemon_sets {
            blocked.entry(key).or_default().insert(guard.kind);
        }
    }
    if !blocked.is_empty() {
        header.push("Blocked");
    }
    let mut table = Table::new(&header);
    for (nth, daemon_set) in shown.iter().enumerate() {
        let mut cells = cells(daemon_set);
        if base {
            cells.push(daemon_set.base.map(asked_words).unwrap_or_default());
        }
        if !blocked.is_empty() {
            let words = blocked.get(daemon_set.key.as_str());
            let words = words.into_iter().flatten().copied().collect::<Vec<_>>();
            cells.push(words.join(", "));
        }
        if !table.row(&cells, TABLE) {
            return format!("{table}\n\n{}", rest_of_table(&shown[nth..]));
        }
    }
    table.to_string()
}

fn cells(daemon_set: &DaemonSetView<'_>) -> Vec<String> {
    let nodes = node_words(&daemon_set.totals);
    vec![
        code(&daemon_set.key),
        object(daemon_set),
        if nodes.is_empty() { "none".to_owned() } else { nodes },
        daemon_set.revision.clone(),
        daemon_set.strategy.clone(),
    ]
}

/// The change of the object, with what the pods of a new one may do beyond other pods.
fn object(daemon_set: &DaemonSetView<'_>) -> String {
    let access: Vec<String> = daemon_set.access().map(|it| prose(&it.to_string())).collect();
    let object = daemon_set.object();
    if access.is_empty() {
        return object.to_owned();
    }
    format!("{object}: {}", view::few(access.into_iter(), MOST_ACCESS))
}

/// A summary of the rows that are left out for length.
fn rest_of_table(rest: &[&DaemonSetView<'_>]) -> String {
    let mut totals = ActionTotals::default();
    let mut by_change: BTreeMap<Change, usize> = BTreeMap::new();
    for daemon_set in rest {
        totals += daemon_set.totals;
        *by_change.entry(daemon_set.change).or_default() += 1;
    }
    let objects: Vec<String> = by_change
        .iter()
        .map(|(change, sets)| format!("{} {}", grouped(*sets), change_words(*change)))
        .collect();
    let nodes = node_words(&totals);
    let nodes = if nodes.is_empty() { nodes } else { format!("; nodes: {nodes}") };
    format!("and {}: {}{nodes}.", count(rest.len(), "more DaemonSet"), objects.join(", "))
}

/// The source, the cluster, and the version of the program.
fn footer(plan: &PlanView<'_>) -> String {
    let version = code(format!("ds-plan {}", plan.tool_version));
    let compared = compared(&plan.origin);
    format!("{compared} Plan {}, made by {version}.", code(plan.digest))
}
