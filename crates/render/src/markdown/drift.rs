//! A drift report as Markdown, for the summary of a job or an issue: the number of deviations of
//! each class, then each DaemonSet, collapsed.

use std::iter;

use super::comment::{MARKDOWN_LIMIT, MarkdownOptions, document};
use super::fields::{Depth, reported};
use super::fit::{LengthVariants, fitted};
use super::markup::{Table, code, folded, html_code, items, prose};
use super::nodes::ranges;
use super::notices::warnings;
use super::origin::{cluster, compared};
use crate::view::{
    CLASSES, DaemonSetDriftView, DeviationView, DriftView, FieldDrift, NodeGroup, class_heads,
    totals_words,
};
use planner::plan::Drift;
use planner::words::count;

/// Maximum length of the table.
const TABLE: usize = 20_000;
/// Length reserved for everything except table and details.
const BESIDES: usize = 6_000;
/// Maximum number of field managers that short variants list.
const MOST_WRITERS: usize = 10;

/// The report as GitHub-flavoured Markdown, at most [`MARKDOWN_LIMIT`] bytes of it.
pub fn drift_markdown(drift: &Drift, options: &MarkdownOptions) -> String {
    let drift = DriftView::of(drift);
    let all = count(drift.daemon_sets.len(), "DaemonSet");
    let (deviating, reported) = (drift.deviating(), drift.reported());
    let waits = drift.waits_words("; ");
    let (cluster, totals) = (cluster(&drift.origin), totals_words(drift.totals));
    let mut blocks = vec![match deviating.len() {
        0 => format!("**{cluster}: no drift**: {all} checked{waits}."),
        some => {
            format!("**{cluster}: {}** in {some} of {all}{waits}.", totals.trim_end_matches('.'))
        }
    }];
    if reported.is_empty() && drift.warnings.is_empty() {
        return document(&blocks, &options.comment);
    }
    if !deviating.is_empty() {
        blocks.push(table(&deviating));
    }
    let used: usize = blocks.iter().map(|block| block.len() + 2).sum();
    let mut parts = vec![warnings(&drift.warnings)];
    parts.extend(reported.iter().map(|it| variants(it, options)));
    let (shown, left_out) = fitted(&parts, MARKDOWN_LIMIT.saturating_sub(used + BESIDES));
    blocks.extend(shown);
    if !left_out.is_empty() {
        let sets = count(left_out.len(), "DaemonSet");
        blocks.push(format!("Details left out for length: {sets}."));
    }
    blocks.push(compared(&drift.origin));
    document(&blocks, &options.comment)
}

fn table(deviating: &[&DaemonSetDriftView<'_>]) -> String {
    let mut table = Table::new(&class_heads());
    for (nth, daemon_set) in deviating.iter().enumerate() {
        let number = |number: u32| if number == 0 { String::new() } else { number.to_string() };
        let numbers = daemon_set.totals.map(number);
        let cells: Vec<String> = [code(&daemon_set.key)].into_iter().chain(numbers).collect();
        if !table.row(&cells, TABLE) {
            let rest = &deviating[nth..];
            let mut totals = [0; CLASSES.len()];
            for daemon_set in rest {
                totals = std::array::from_fn(|class| totals[class] + daemon_set.totals[class]);
            }
            let more = count(rest.len(), "more DaemonSet");
            return format!("{table}\n\nand {more}. {}", totals_words(totals));
        }
    }
    table.to_string()
}

/// Variants with names of nodes and values of fields, then only with paths, then counted.
fn variants(daemon_set: &DaemonSetDriftView<'_>, options: &MarkdownOptions) -> LengthVariants {
    Depth::variants(options, |depth| details(daemon_set, depth))
}

fn details(daemon_set: &DaemonSetDriftView<'_>, depth: Depth) -> String {
    let fields = daemon_set.fields();
    let changes = fields.iter().map(|field| field.change);
    let mut blocks: Vec<String> =
        reported("spec: live against the source", changes, depth).into_iter().collect();
    blocks.push(writers(&fields, depth));
    for class in CLASSES {
        let of_class = daemon_set.others().filter(|it| it.class == class);
        let lines: Vec<String> = of_class.map(|it| line(it, depth)).collect();
        if !lines.is_empty() {
            blocks.push(format!("**{class}**\n\n{}", items(&lines, lines.len(), "deviation")));
        }
    }
    blocks.retain(|block| !block.is_empty());
    let is_drift = |it: &&DeviationView<'_>| !it.is_expected;
    let found = match daemon_set.deviations.iter().filter(is_drift).count() {
        0 => "waits".to_owned(),
        some => count(some, "deviation"),
    };
    folded(&format!("{}: {found}", html_code(&daemon_set.key)), &blocks.join("\n\n"))
}

/// The field managers that wrote the fields that differ.
fn writers(fields: &[&FieldDrift<'_>], depth: Depth) -> String {
    let written = fields.iter().flat_map(|FieldDrift { change, writers }| {
        writers.iter().map(|writer| format!("{} {}", code(&change.path), prose(writer)))
    });
    let lines: Vec<String> = written.collect();
    let most = if depth == Depth::Counts { MOST_WRITERS } else { lines.len() };
    items(&lines, most, "write")
}

/// A deviation that is not a field, with its nodes.
fn line(deviation: &DeviationView<'_>, depth: Depth) -> String {
    let groups = if depth == Depth::Counts { &[] } else { deviation.groups.as_slice() };
    let nodes = groups.iter().map(|group| {
        let NodeGroup { key: (), why, nodes, zones: _ } = group;
        let names = ranges(nodes).unwrap_or_else(|| group.names());
        let why = if why.is_empty() { String::new() } else { format!(": {}", prose(why)) };
        format!("{names}{why}")
    });
    let sentence = prose(&deviation.sentence);
    iter::once(sentence).chain(nodes).collect::<Vec<_>>().join("\n  - ")
}
