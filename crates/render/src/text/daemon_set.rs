//! One DaemonSet of a plan: the object's change, the waves, and what happens outside of them.

use std::collections::BTreeMap;

use anstyle::Style;

use super::fields::field_change;
use super::nodes::{group_line, reason_column};
use super::page::{ASIDE, CHANGE, GAIN, HALT, LOSS, Line, NAME, Page, TextOptions, style_of};
use crate::neutral;
use crate::view::{
    BaseChange, Change, DaemonSetView, NodeGroup, NodeRow, StepView, WaveView, Whereabouts,
    asked_words, whereabouts,
};
use planner::plan::NewPods;
use planner::words::count;

/// Indentation of the lines of a DaemonSet.
const INDENT: usize = 4;
/// Indentation of the lines below those.
const DEEPER: usize = 8;

/// Maximum width of a column in the lines of steps.
const WIDEST: usize = 56;

/// Adds the block of one DaemonSet.
pub(super) fn block(page: &mut Page, daemon_set: &DaemonSetView<'_>, options: TextOptions) {
    page.push(title(daemon_set));
    let names = daemon_set.revision_names.as_ref().filter(|_| options.verbose);
    let shared = daemon_set.shared_budget.as_ref();
    let shared = shared.map(|(words, keys)| {
        format!("Shared budget: {}.", neutral::line(&format!("{words} {keys}")))
    });
    let facts = [
        (ASIDE, names.map(|names| format!("ControllerRevision {names}"))),
        (ASIDE, daemon_set.counters.clone().filter(|_| options.verbose)),
        (ASIDE, daemon_set.managed_by.map(str::to_owned)),
        (ASIDE, daemon_set.after.as_ref().map(|keys| format!("After {}.", neutral::line(keys)))),
        (ASIDE, shared),
        (ASIDE, daemon_set.pre_pull.as_ref().map(|words| format!("Pre-pull: {words}."))),
        (CHANGE, daemon_set.pause.clone()),
    ];
    for (style, fact) in facts.into_iter().filter_map(|(style, fact)| Some((style, fact?))) {
        page.push(Line::at(INDENT).styled(style, fact));
    }
    for check in &daemon_set.checks {
        page.push(Line::at(INDENT).styled(ASIDE, format!("Check: {}.", neutral::line(check))));
    }
    let columns = wave_columns(&daemon_set.waves);
    // What takes hours or days comes before the details.
    steps(page, daemon_set, columns, options);
    if !daemon_set.steps.is_empty() {
        end_and_waits(page, daemon_set);
    }
    if let Some(pods) = daemon_set.new_pods {
        new_pods(page, pods);
    }
    for field in daemon_set.fields {
        field_change(page, INDENT, field, options);
    }
    for owned in &daemon_set.owned {
        let (style, remedy) =
            if owned.conflicts { (HALT, ": force conflicts to set it") } else { (ASIDE, "") };
        page.push(Line::at(INDENT).styled(style, format!("{}{remedy}", owned.sentence())));
    }
    if let Some(base) = daemon_set.base {
        page.push(Line::at(INDENT).styled(ASIDE, base_words(base)));
    }
    if daemon_set.steps.is_empty() {
        for wave in &daemon_set.waves {
            wave_lines(page, wave, INDENT, columns, daemon_set, options);
        }
        end_and_waits(page, daemon_set);
    }
    group_lines(page, INDENT, &daemon_set.at_once, &daemon_set.nodes, options);
}

/// The earliest end, and what is waited for before that.
fn end_and_waits(page: &mut Page, daemon_set: &DaemonSetView<'_>) {
    if let Some(end) = &daemon_set.earliest_end {
        page.push(Line::at(INDENT).plain(end));
    }
    for wait in &daemon_set.waits_for {
        page.push(Line::at(INDENT).styled(CHANGE, wait));
    }
}

/// `~ DaemonSet logging/fluent-bit   revision 7 -> 8 (new)   RollingUpdate, …`.
fn title(daemon_set: &DaemonSetView<'_>) -> Line {
    let DaemonSetView { key, change, revision, strategy, policy, .. } = daemon_set;
    let (style, symbol) = symbol(*change);
    let policy = policy.map(|name| format!("   policy {name}")).unwrap_or_default();
    Line::at(0)
        .styled(style, symbol)
        .plain(" DaemonSet ")
        .styled(NAME, key)
        .plain(note(daemon_set))
        .plain(format!("   {revision}   {strategy}"))
        .plain(policy)
}

/// The images of a new DaemonSet, and what its pods may do beyond other pods.
fn new_pods(page: &mut Page, pods: &NewPods) {
    let NewPods { images, access } = pods;
    let access: Vec<String> = access.iter().map(ToString::to_string).collect();
    for (title, names) in [("image: ", images), ("access: ", &access)] {
        if !names.is_empty() {
            page.push(Line::at(INDENT).styled(ASIDE, title).plain(names.join(", ")));
        }
    }
}

/// The symbol of a change, as terraform prints it.
fn symbol(change: Change) -> (Style, &'static str) {
    match change {
        Change::Create => (GAIN, "+"),
        Change::Update => (CHANGE, "~"),
        Change::Recreate => (HALT, "!"),
        Change::Delete => (LOSS, "-"),
        Change::None => (Style::new(), " "),
    }
}

/// What the symbol does not say.
fn note(daemon_set: &DaemonSetView<'_>) -> String {
    match daemon_set.change {
        Change::Create | Change::Update => String::new(),
        Change::Recreate | Change::None => format!(" ({})", daemon_set.object()),
        Change::Delete if daemon_set.keeps_pods => {
            " (deleted: no longer in the source; its pods are kept)".to_owned()
        }
        Change::Delete => format!(
            " (deleted: no longer in the source; its pods on {} are deleted at once)",
            count(daemon_set.totals.delete, "node")
        ),
    }
}

/// The part of the changes that the pull request itself makes.
fn base_words(base: &BaseChange) -> String {
    let BaseChange { change, changes } = base;
    let what = match change {
        Change::Create | Change::None => asked_words(base),
        Change::Update | Change::Recreate | Change::Delete => {
            changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>().join(", ")
        }
    };
    format!("by this pull request: {what}")
}

/// A line for each step; below it, its nodes if their reasons differ, and its waves with
/// `--verbose` or if they can be stepped one by one.
fn steps(
    page: &mut Page,
    daemon_set: &DaemonSetView<'_>,
    columns: (usize, usize),
    options: TextOptions,
) {
    let cells: Vec<[String; 5]> = daemon_set.steps.iter().map(step_cells).collect();
    let mut widths = [0; 5];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            // A long list of nodes does not push the others away.
            *width = cell.chars().count().min(WIDEST).max(*width);
        }
    }
    for (step, row) in daemon_set.steps.iter().zip(&cells) {
        let mut line = Line::at(INDENT);
        let mut column = INDENT;
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let style = if at == 0 { NAME } else { Style::new() };
            let gap = if at == 0 || width == 0 { 0 } else { 3 };
            column = column.max(line.width()) + gap;
            line = line.padded_to(column).styled(style, cell);
            column += width;
        }
        page.push(line);
        if options.verbose || daemon_set.can_step {
            let waves = daemon_set.waves.iter().filter(|wave| step.waves.contains(&wave.index));
            for wave in waves {
                wave_lines(page, wave, DEEPER, columns, daemon_set, options);
            }
        } else if !step.is_plain {
            group_lines(page, DEEPER, &step.groups, &daemon_set.nodes, options);
        }
    }
}

/// `step 2 rest`, `406 nodes`, `-/+ domains a, b`, `2 at a time`, `about 1h; needs approval`.
fn step_cells(step: &StepView<'_>) -> [String; 5] {
    let symbol = step.groups.first().map(|group| group.key.symbol()).unwrap_or_default();
    let symbol = if step.is_plain { format!("{symbol} ") } else { String::new() };
    [
        step.title.clone(),
        count(step.nodes, "node"),
        format!("{symbol}{}", step.whereabouts),
        step.limits.clone(),
        step.takes_and_state(),
    ]
}

/// The columns of the counts and of the nodes, which all waves share, from their indentation.
fn wave_columns(waves: &[WaveView<'_>]) -> (usize, usize) {
    let widest = |text: fn(&WaveView<'_>) -> String| {
        let widths = waves.iter().map(|wave| text(wave).chars().count());
        widths.max().filter(|width| *width > 0).map_or(0, |width| width + 3)
    };
    let counts = widest(wave_title);
    (counts, counts + widest(|wave| count(wave.nodes, "node")))
}

/// Empty for the only wave.
fn wave_title(wave: &WaveView<'_>) -> String {
    let title = wave.name.map(|(index, name)| format!("wave {index} {}", neutral::line(name)));
    title.unwrap_or_default()
}

fn wave_lines(
    page: &mut Page,
    wave: &WaveView<'_>,
    indent: usize,
    (counts, names): (usize, usize),
    daemon_set: &DaemonSetView<'_>,
    options: TextOptions,
) {
    let line = Line::at(indent)
        .styled(NAME, wave_title(wave))
        .padded_to(indent + counts)
        .plain(count(wave.nodes, "node"));
    match &wave.groups[..] {
        [only] if wave.is_plain && !options.verbose => {
            let symbol = only.key.symbol();
            let line = line.padded_to(indent + names).styled(style_of(only.key), symbol);
            page.push(match whereabouts(&only.nodes, only.zones) {
                Whereabouts::Each(nodes)
                | Whereabouts::Ranges(nodes)
                | Whereabouts::Zones(nodes) => line.plain(' ').plain(nodes).plain(&wave.pace),
                Whereabouts::Unclear => line.plain(&wave.pace),
            });
        }
        groups => {
            page.push(line.plain(&wave.pace));
            group_lines(page, indent + 4, groups, &daemon_set.nodes, options);
        }
    }
}

/// A line for each group; with `--verbose`, a line for each of its nodes below it.
fn group_lines(
    page: &mut Page,
    indent: usize,
    groups: &[NodeGroup<'_>],
    nodes: &[NodeRow<'_>],
    options: TextOptions,
) {
    let described = nodes.iter().filter(|_| options.verbose);
    let by_name: BTreeMap<&str, &NodeRow<'_>> = described.map(|node| (node.name, node)).collect();
    let symbols = groups.iter().map(|group| group.key.symbol().len()).max().unwrap_or(0);
    let start = indent + symbols + usize::from(symbols > 0);
    let reasons = start + reason_column(groups);
    for group in groups {
        let action = group.key;
        let line = Line::at(indent).styled(style_of(action), action.symbol()).padded_to(start);
        group_line(page, line, group, reasons);
        for node in group.nodes.iter().filter_map(|name| by_name.get(name)) {
            let line = Line::at(indent + 4).plain(node.name);
            page.push(node.fates().fold(line, |line, fate| line.plain("   ").plain(fate)));
        }
    }
}
