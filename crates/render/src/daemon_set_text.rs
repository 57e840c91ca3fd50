//! One DaemonSet of a plan: the object's change, the waves, and what happens outside of them.

use std::collections::BTreeMap;

use anstyle::Style;

use super::TextOptions;
use super::neutral;
use super::nodes::{Group, every_node, groups, names, reason_column, sentence};
use super::pace::{pace, stays_up};
use super::page::{ASIDE, CHANGE, GAIN, HALT, LOSS, Line, NAME, Page, count, style_of};
use super::plan_text::key;
use super::ranges::{fold, listed};
use super::values::field_change;
use daemonset::model::{Cascade, ManagedBy};
use planner::plan::{
    Action, BaseChange, Change, Coded, Counters, DaemonSetPlan, FieldOwner, NodePlan, Reason,
    RevisionKind, RevisionPlan, Strategy, Wave,
};

/// Indentation of the lines of a DaemonSet.
const INDENT: usize = 4;
/// Indentation of the lines below those.
const DEEPER: usize = 8;

/// Adds the block of one DaemonSet.
pub(super) fn block(page: &mut Page, daemon_set: &DaemonSetPlan, options: TextOptions) {
    let DaemonSetPlan {
        namespace: _,
        name: _,
        uid: _,
        generation: _,
        change,
        cascade,
        managed_by,
        policy,
        strategy,
        pause,
        live_template: _,
        target_template: _,
        revision,
        changes,
        base,
        leftovers,
        conflicts,
        forced_conflicts: _,
        waves,
        nodes,
        totals,
        status,
    } = daemon_set;
    let (symbol_style, symbol) = symbol(*change);
    let note = match change {
        Change::Create | Change::Update => String::new(),
        Change::Recreate => " (must be deleted and recreated)".to_owned(),
        Change::Delete => removal_words(*cascade, totals.delete),
        Change::None => " (unchanged)".to_owned(),
    };
    page.push(
        Line::at(0)
            .styled(symbol_style, symbol)
            .plain(" DaemonSet ")
            .styled(NAME, key(daemon_set))
            .plain(note)
            .plain(format!("   {}   {}", revision_words(revision), strategy_words(*strategy)))
            .plain(policy.as_ref().map(|name| format!("   policy {name}")).unwrap_or_default()),
    );
    if options.verbose {
        details(page, revision, status.as_ref());
    }
    if let Some(words) = managed_words(*managed_by) {
        page.push(Line::at(INDENT).styled(ASIDE, words));
    }
    if let Some(pause) = pause {
        page.push(Line::at(INDENT).styled(CHANGE, neutral::line(&pause.to_string())));
    }
    for change in changes {
        field_change(page, INDENT, change, options);
    }
    ownership(page, conflicts, leftovers);
    if let Some(base) = base {
        page.push(Line::at(INDENT).styled(ASIDE, base_words(base)));
    }
    nodes_in_order(page, daemon_set, waves, nodes, options);
}

/// The waves, then the nodes that change at once or wait.
fn nodes_in_order(
    page: &mut Page,
    daemon_set: &DaemonSetPlan,
    waves: &[Wave],
    nodes: &[NodePlan],
    options: TextOptions,
) {
    let columns = WaveColumns::of(waves);
    for wave in waves {
        wave_lines(page, wave, columns, daemon_set, options);
    }
    let at_once: Vec<&NodePlan> = nodes.iter().filter(|node| node.wave.is_none()).collect();
    let grouped = groups(at_once.iter().copied().map(as_grouped));
    group_lines(page, INDENT, &grouped, &at_once, options);
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

/// A note for a DaemonSet that no DaemonSet controller reconciles.
pub(super) fn managed_words(managed_by: ManagedBy) -> Option<&'static str> {
    match managed_by {
        ManagedBy::DaemonSetController => None,
        ManagedBy::DsApply => Some(
            "managed by ds-apply: a ConfigMap records the object; nodes that join or lose their \
             pod get one at the next run",
        ),
    }
}

/// The effect of deleting the DaemonSet: its pods are kept, or deleted and not recreated.
fn removal_words(cascade: Option<Cascade>, nodes: u32) -> String {
    match cascade {
        Some(Cascade::Orphan) => {
            " (deleted: no longer in the source; its pods are kept)".to_owned()
        }
        Some(Cascade::Background) | None => format!(
            " (deleted: no longer in the source; its pods on {} are deleted at once)",
            count(nodes, "node")
        ),
    }
}

/// Fields that conflict with other managers, and fields that are kept because of them.
fn ownership(page: &mut Page, conflicts: &[FieldOwner], leftovers: &[FieldOwner]) {
    for FieldOwner { path, manager } in conflicts {
        let owner = manager.as_deref().unwrap_or("no manager");
        let words = format!("{path} conflicts with {owner}: force conflicts to set it");
        page.push(Line::at(INDENT).styled(HALT, neutral::line(&words)));
    }
    for FieldOwner { path, manager } in leftovers {
        let owner = manager.as_deref().unwrap_or("no manager");
        let words = format!("{path} kept; not in git; owned by {owner}");
        page.push(Line::at(INDENT).styled(ASIDE, neutral::line(&words)));
    }
}

/// `revision 7 -> 8 (new)`.
pub(super) fn revision_words(revision: &RevisionPlan) -> String {
    let RevisionPlan { current, target, kind } = revision;
    let target = target.number;
    match (kind, current) {
        (RevisionKind::Unchanged, _) => format!("revision {target}"),
        (RevisionKind::New | RevisionKind::Reused, Some(current)) => {
            format!("revision {} -> {target} ({kind})", current.number)
        }
        (RevisionKind::New | RevisionKind::Reused, None) => format!("revision {target} ({kind})"),
    }
}

/// The part of the changes that the pull request itself makes.
fn base_words(base: &BaseChange) -> String {
    let BaseChange { change, changes } = base;
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    match change {
        Change::Create => "since the base: the whole DaemonSet".to_owned(),
        Change::None => "since the base: nothing; the differences are existing drift".to_owned(),
        Change::Update | Change::Recreate | Change::Delete => {
            format!("since the base: {}", paths.join(", "))
        }
    }
}

pub(super) fn strategy_words(strategy: Strategy) -> String {
    match strategy {
        Strategy::OnDelete => "OnDelete, a pod is replaced after it is deleted manually".to_owned(),
        Strategy::RollingUpdate { max_unavailable, max_surge: 0, desired } => {
            format!("RollingUpdate, at most {max_unavailable} of {desired} unavailable")
        }
        Strategy::RollingUpdate { max_unavailable: 0, max_surge, desired } => {
            format!(
                "RollingUpdate, new pod before old on at most {max_surge} of {desired} at a time"
            )
        }
        Strategy::RollingUpdate { max_unavailable, max_surge, desired } => format!(
            "RollingUpdate, new pod before old on at most {max_surge} of {desired} at a time, \
             at most {max_unavailable} unavailable"
        ),
    }
}

/// Details for `--verbose`: names of revisions, and the counters before any change.
fn details(page: &mut Page, revision: &RevisionPlan, status: Option<&Counters>) {
    let RevisionPlan { current, target, kind: _ } = revision;
    let names =
        [current.as_ref().map(|it| ("from", &it.name)), target.name.as_ref().map(|it| ("to", it))];
    let names: Vec<String> =
        names.into_iter().flatten().map(|(word, name)| format!("{word} {name}")).collect();
    if !names.is_empty() {
        page.push(
            Line::at(INDENT).styled(ASIDE, format!("ControllerRevision {}", names.join(" "))),
        );
    }
    if let Some(counters) = status {
        page.push(Line::at(INDENT).styled(ASIDE, counters_words(counters)));
    }
}

/// The counters of `kubectl get daemonsets` before any change.
pub(super) fn counters_words(counters: &Counters) -> String {
    let Counters { desired, current, ready, updated, available, unavailable, misscheduled } =
        counters;
    format!(
        "now {desired} desired, {current} current, {ready} ready, {updated} up to date, \
         {available} available, {unavailable} unavailable, {misscheduled} misscheduled"
    )
}

/// A node as [`groups`] takes it.
fn as_grouped(node: &NodePlan) -> (Action, &str, &[Coded<Reason>]) {
    let NodePlan { name, action, wave: _, pods: _, reasons } = node;
    (*action, name.as_ref(), reasons)
}

/// Columns that the lines of all waves share.
#[derive(Clone, Copy)]
struct WaveColumns {
    /// Whether waves are named; a single wave is not.
    named: bool,
    /// Column of the counts.
    counts: usize,
    /// Column of the nodes.
    nodes: usize,
}

impl WaveColumns {
    fn of(waves: &[Wave]) -> Self {
        let named = waves.len() > 1;
        let widest = |text: &dyn Fn(&Wave) -> String| {
            waves.iter().map(|wave| text(wave).chars().count() + 3).max().unwrap_or(0)
        };
        let counts = INDENT + widest(&|wave| wave_title(wave, named));
        Self { named, counts, nodes: counts + widest(&|wave| count(wave.nodes.len(), "node")) }
    }
}

fn wave_title(wave: &Wave, named: bool) -> String {
    if named {
        format!("wave {} {}", wave.index, neutral::line(&wave.name))
    } else {
        format!("wave {}", wave.index)
    }
}

fn wave_lines(
    page: &mut Page,
    wave: &Wave,
    columns: WaveColumns,
    daemon_set: &DaemonSetPlan,
    options: TextOptions,
) {
    let Wave { index, nodes, .. } = wave;
    let members: Vec<&NodePlan> =
        daemon_set.nodes.iter().filter(|node| node.wave == Some(*index)).collect();
    let grouped = groups(members.iter().copied().map(as_grouped));
    let line = Line::at(INDENT)
        .styled(NAME, wave_title(wave, columns.named))
        .padded_to(columns.counts)
        .plain(count(nodes.len(), "node"));
    let budget = format!("{}{}", pace(wave), stays_up(wave));
    match &grouped[..] {
        [only] if !options.verbose && only.why == runs_current(daemon_set) => {
            let names = listed(&fold(only.nodes.iter().copied()));
            let symbol = only.key.symbol();
            let line = line.padded_to(columns.nodes).styled(style_of(only.key), symbol);
            page.push(line.plain(' ').plain(names).plain(budget));
        }
        _ => {
            page.push(line.plain(budget));
            group_lines(page, DEEPER, &grouped, &members, options);
        }
    }
}

/// The reason of nearly every node of a rollout: it runs the current revision.
fn runs_current(daemon_set: &DaemonSetPlan) -> String {
    let current = daemon_set.revision.current.as_ref();
    sentence(&[Reason::Outdated { revision: current.map(|it| it.number) }.into()])
}

/// A line for each group; with `--verbose`, a line for each of its nodes below it.
fn group_lines(
    page: &mut Page,
    indent: usize,
    grouped: &[Group<'_, Action>],
    members: &[&NodePlan],
    options: TextOptions,
) {
    let symbols = grouped.iter().map(|group| group.key.symbol().len()).max().unwrap_or(0);
    let by_name: BTreeMap<&str, &NodePlan> =
        members.iter().map(|node| (node.name.as_ref(), *node)).collect();
    let start = indent + symbols + usize::from(symbols > 0);
    let reasons = start + reason_column(grouped);
    for Group { key, why, nodes } in grouped {
        let line = Line::at(indent).styled(style_of(*key), key.symbol()).padded_to(start);
        page.push(line.plain(names(nodes)).padded_to(reasons).plain("   ").plain(why));
        if options.verbose {
            every_node(
                page,
                indent + 4,
                nodes.iter().filter_map(|name| by_name.get(name).copied()),
            );
        }
    }
}
