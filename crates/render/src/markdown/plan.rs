//! A plan as a comment on a pull request: the effect of merging in one line, a row for each
//! DaemonSet, and details, collapsed.

use std::collections::BTreeMap;

use super::comment::{MARKDOWN_LIMIT, MarkdownOptions, document};
use super::daemon_set::variants;
use super::fit::{LengthVariants, fitted};
use super::markup::{Table, code, few, folded, items};
use super::nodes::summed;
use super::notices::{guards, warnings};
use super::origin::compared;
use crate::view::{
    ActionTotals, Change, DaemonSetView, Notice, PlanView, change_words, effect, node_words,
};
use daemonset::model::short_commit;
use planner::plan::Plan;
use planner::words::{agree, count};

/// Maximum length of the table, so that there is room for details.
const TABLE: usize = 20_000;
/// Length reserved for the summary of DaemonSets whose details are left out.
const LEFT_OUT: usize = 8_000;
/// Maximum number of names; the others are counted.
const MOST_NAMES: usize = 5;

/// The plan as GitHub-flavoured Markdown, at most [`MARKDOWN_LIMIT`] bytes of it.
pub fn plan_markdown(plan: &Plan, options: &MarkdownOptions) -> String {
    let plan = PlanView::of(plan);
    let (shown, quiet) = plan.shown();
    let mut blocks = vec![headline(&plan)];
    if shown.is_empty() && plan.guards.is_empty() && plan.warnings.is_empty() {
        return document(&blocks, &options.comment);
    }
    if !shown.is_empty() {
        blocks.push(table(&shown, &plan.guards));
    }
    if !shown.is_empty() && !quiet.is_empty() {
        let others = count(quiet.len(), "other DaemonSet");
        blocks.push(format!("Nothing to do for {others}: {}.", keys(&quiet)));
    }
    blocks.extend(plan.forecast.clone());
    let footer = footer(&plan);
    let used: usize = blocks.iter().map(|block| block.len() + 2).sum();
    let room = MARKDOWN_LIMIT.saturating_sub(used + footer.len() + LEFT_OUT);
    blocks.extend(details(&plan, &shown, room, options));
    blocks.push(footer);
    document(&blocks, &options.comment)
}

/// The collapsed details, as far as there is room, and a summary of those left out.
fn details(
    plan: &PlanView<'_>,
    shown: &[&DaemonSetView<'_>],
    room: usize,
    options: &MarkdownOptions,
) -> Vec<String> {
    let mut parts: Vec<LengthVariants> = vec![guards(&plan.guards), warnings(&plan.warnings)];
    let messages = parts.len();
    parts.extend(shown.iter().map(|daemon_set| variants(daemon_set, options)));
    let (mut blocks, left_out) = fitted(&parts, room);
    let left_out = left_out.into_iter().filter_map(|part| shown.get(part.checked_sub(messages)?));
    let left_out: Vec<&DaemonSetView<'_>> = left_out.copied().collect();
    if !left_out.is_empty() {
        let sums = summed(&left_out, options);
        let what = format!("Details left out for length: {}", count(left_out.len(), "DaemonSet"));
        let names = keys(&left_out);
        blocks.push(folded(&what, &format!("{names}\n\n{}", items(&sums, sums.len(), "sums"))));
    }
    blocks
}

fn keys(daemon_sets: &[&DaemonSetView<'_>]) -> String {
    few(daemon_sets.iter().map(|it| &it.key), MOST_NAMES)
}

/// The effect of merging, in one line.
fn headline(plan: &PlanView<'_>) -> String {
    let what = plan.origin.commit.map_or("this".to_owned(), |id| code(short_commit(id)));
    let changing = plan.changing();
    if changing.is_empty() {
        let checked = count(plan.daemon_sets.len(), "DaemonSet");
        return format!("**Merging {what} changes nothing**: {checked} checked.");
    }
    let asked = |it: &&DaemonSetView<'_>| it.base.is_none_or(|base| base.change != Change::None);
    let (own, older): (Vec<&DaemonSetView<'_>>, Vec<_>) = changing.into_iter().partition(asked);
    let mut line = match own.as_slice() {
        [] => format!("**Merging {what} itself changes nothing.**"),
        own => format!("**Merging {what} {}.**", effect(own)),
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
        line = format!("{line} Blocked by {}.", count(plan.guards.len(), "guard"));
    }
    line
}

fn table(shown: &[&DaemonSetView<'_>], guards: &[Notice<'_>]) -> String {
    let mut header = vec!["DaemonSet", "Object", "Revision", "Nodes", "Pace"];
    let base = shown.iter().any(|it| it.base.is_some());
    if base {
        header.push("By this pull request");
    }
    let mut refused: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for guard in guards {
        if let Some(key) = guard.daemon_set {
            refused.entry(key).or_default().push(guard.kind);
        }
    }
    if !refused.is_empty() {
        header.push("Blocked");
    }
    let mut table = Table::new(&header);
    for (nth, daemon_set) in shown.iter().enumerate() {
        let mut cells = cells(daemon_set);
        if base {
            cells.push(asked_words(daemon_set));
        }
        if !refused.is_empty() {
            let words = refused.get(daemon_set.key.as_str());
            cells.push(words.map_or_else(String::new, |words| words.join(", ")));
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
        daemon_set.object().to_owned(),
        daemon_set.revision.clone(),
        if nodes.is_empty() { "none".to_owned() } else { nodes },
        daemon_set.strategy.clone(),
    ]
}

/// The changes of a row that the pull request itself makes.
fn asked_words(daemon_set: &DaemonSetView<'_>) -> String {
    let Some(base) = daemon_set.base else { return String::new() };
    match base.change {
        Change::None => "nothing (existing drift)".to_owned(),
        Change::Create => "all of it".to_owned(),
        Change::Update | Change::Recreate | Change::Delete => count(base.changes.len(), "field"),
    }
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
        .map(|(change, sets)| format!("{sets} {}", change_words(*change)))
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
