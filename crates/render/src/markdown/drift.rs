//! A drift report as Markdown, for the summary of a job or an issue: the number of deviations of
//! each class, then each DaemonSet, collapsed.

use std::iter;

use super::fields::{Depth, reported};
use super::fit::{LengthVariants, fit};
use super::plan::{from, reported_warnings, seen};
use super::{
    MARKDOWN_LIMIT, MarkdownOptions, Table, code, document, folded, html_code, items, prose,
};
use crate::drift::{grouped, key, totals_words, writer_words};
use crate::nodes::Group;
use crate::page::count;
use crate::ranges::fold;
use planner::plan::{
    Classified, DaemonSetDrift, DeviatingNodes, Deviation, Drift, DriftClass, DriftTotals,
    FieldChange, NodeDrift, Writer,
};

/// Maximum length of the table.
const TABLE: usize = 20_000;
/// Length reserved for everything except table and details.
const BESIDES: usize = 6_000;
/// Maximum number of field managers that short variants list.
const MOST_WRITERS: usize = 10;

/// The report as GitHub-flavoured Markdown, at most [`MARKDOWN_LIMIT`] bytes of it.
pub fn drift_markdown(drift: &Drift, options: &MarkdownOptions) -> String {
    let Drift { api_version: _, kind: _, source, cluster, daemon_sets, totals, warnings } = drift;
    let all = count(daemon_sets.len(), "DaemonSet");
    let deviating: Vec<&DaemonSetDrift> =
        daemon_sets.iter().filter(|it| !it.deviations.is_empty()).collect();
    if deviating.is_empty() && warnings.is_empty() {
        let none = format!("**No drift**: {all} checked.");
        return document(&[none], &options.comment);
    }
    let totals = totals_words(*totals);
    let mut blocks = vec![match deviating.len() {
        0 => format!("**No drift**: {all} checked."),
        some => format!("**{}** in {some} of {all}.", totals.trim_end_matches('.')),
    }];
    if !deviating.is_empty() {
        blocks.push(table(&deviating));
    }
    let used: usize = blocks.iter().map(|block| block.len() + 2).sum();
    let mut parts = vec![reported_warnings(warnings)];
    parts.extend(deviating.iter().map(|it| variants(it, options)));
    let chosen = fit(&parts, MARKDOWN_LIMIT.saturating_sub(used + BESIDES));
    let left_out = chosen.iter().filter(|it| it.is_none()).count();
    blocks.extend(chosen.into_iter().flatten().filter(|it| !it.is_empty()).map(str::to_owned));
    if left_out > 0 {
        blocks.push(format!("Details left out for length: {}.", count(left_out, "DaemonSet")));
    }
    blocks.push(format!("{}; {}.", from(source), seen(cluster)));
    document(&blocks, &options.comment)
}

const CLASSES: [DriftClass; 5] = [
    DriftClass::Spec,
    DriftClass::Pod,
    DriftClass::Rollout,
    DriftClass::History,
    DriftClass::Eligibility,
];

fn table(deviating: &[&DaemonSetDrift]) -> String {
    let classes = CLASSES.map(|class| class.to_string());
    let header: Vec<&str> =
        ["DaemonSet"].into_iter().chain(classes.iter().map(String::as_str)).collect();
    let mut table = Table::new(&header);
    for (nth, daemon_set) in deviating.iter().enumerate() {
        let numbers = CLASSES.map(|class| {
            match daemon_set.deviations.iter().filter(|it| it.class == class).count() {
                0 => String::new(),
                some => some.to_string(),
            }
        });
        let cells: Vec<String> = [code(key(daemon_set))].into_iter().chain(numbers).collect();
        if !table.row(&cells, TABLE) {
            let rest = &deviating[nth..];
            let mut totals = DriftTotals::default();
            let classes = rest.iter().flat_map(|it| &it.deviations).map(|it| it.class);
            classes.for_each(|class| totals.add(class));
            let more = count(rest.len(), "more DaemonSet");
            return format!("{table}\n\nand {more}. {}", totals_words(totals));
        }
    }
    table.to_string()
}

/// Variants with names of nodes and values of fields, then only with paths, then counted.
fn variants(daemon_set: &DaemonSetDrift, options: &MarkdownOptions) -> LengthVariants {
    let depths = [Depth::Whole, Depth::Values, Depth::Paths, Depth::Counts];
    let wanted = depths.into_iter().filter(|it| options.verbose || *it != Depth::Whole);
    let reported = wanted.map(|depth| details(daemon_set, depth));
    reported.filter(|text| text.len() < MARKDOWN_LIMIT).collect()
}

fn details(daemon_set: &DaemonSetDrift, depth: Depth) -> String {
    let fields: Vec<(&FieldChange, &[Writer])> =
        daemon_set.deviations.iter().filter_map(|it| field(&it.deviation.reason)).collect();
    let changes = fields.iter().map(|(change, _)| *change);
    let mut blocks: Vec<String> =
        reported("spec: live against the source", changes, depth).into_iter().collect();
    blocks.push(writers(&fields, depth));
    for class in CLASSES {
        let of_class = daemon_set.deviations.iter().filter(|it| it.class == class);
        let lines: Vec<String> = of_class
            .filter_map(|Classified { class: _, deviation }| line(&deviation.reason, depth))
            .collect();
        if !lines.is_empty() {
            blocks.push(format!("**{class}**\n\n{}", items(&lines, lines.len(), "")));
        }
    }
    blocks.retain(|block| !block.is_empty());
    let found = count(daemon_set.deviations.len(), "deviation");
    folded(&format!("{}: {found}", html_code(key(daemon_set))), &blocks.join("\n\n"))
}

fn field(deviation: &Deviation) -> Option<(&FieldChange, &[Writer])> {
    let Deviation::FieldDiffers { change, writers } = deviation else { return None };
    Some((change, writers))
}

/// The field managers that wrote the fields that differ.
fn writers(fields: &[(&FieldChange, &[Writer])], depth: Depth) -> String {
    let written = fields.iter().flat_map(|(change, writers)| {
        writers
            .iter()
            .map(|writer| format!("{} {}", code(&change.path), prose(&writer_words(writer))))
    });
    let lines: Vec<String> = written.collect();
    let most = if depth == Depth::Counts { MOST_WRITERS } else { lines.len() };
    items(&lines, most, "writes")
}

/// A deviation that is not a field.
fn line(deviation: &Deviation, depth: Depth) -> Option<String> {
    if field(deviation).is_some() {
        return None;
    }
    let nodes = match deviation.nodes() {
        DeviatingNodes::None => Vec::new(),
        DeviatingNodes::WithReasons(nodes) => reasons(nodes),
        DeviatingNodes::Named(nodes) => {
            vec![ranges(&nodes.iter().map(AsRef::as_ref).collect::<Vec<_>>())]
        }
    };
    let sentence = prose(&deviation.to_string());
    let nodes = if depth == Depth::Counts { Vec::new() } else { nodes };
    Some(iter::once(sentence).chain(nodes).collect::<Vec<_>>().join("\n  - "))
}

fn reasons(nodes: &[NodeDrift]) -> Vec<String> {
    let grouped = grouped(nodes);
    let lines = grouped
        .iter()
        .map(|Group { key: (), why, nodes }| format!("{}: {}", ranges(nodes), prose(why)));
    lines.collect()
}

fn ranges(nodes: &[&str]) -> String {
    fold(nodes.iter().copied()).iter().map(code).collect::<Vec<_>>().join(", ")
}
