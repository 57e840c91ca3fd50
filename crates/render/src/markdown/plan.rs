//! A plan as a comment on a pull request: the effect of merging in one line, a row for each
//! DaemonSet, and details, collapsed.

use std::collections::BTreeMap;

use super::daemon_set::{change_words, keys, object_words, variants};
use super::fit::{LengthVariants, fit};
use super::nodes::{node_words, summed};
use super::{MARKDOWN_LIMIT, MarkdownOptions, Table, code, document, few, folded, items, prose};
use crate::daemon_set_text::{revision_words, strategy_words};
use crate::page::count;
use crate::plan_text::{changes, forecast_words, key};
use daemonset::model::{Cascade, short_commit};
use planner::plan::{
    ActionTotals, Change, ClusterSummary, DaemonSetPlan, Guard, GuardCode, Plan, SourceInfo,
    Warning,
};

/// Maximum length of the table, so that there is room for details.
const TABLE: usize = 20_000;
/// Length reserved for the summary of DaemonSets whose details are left out.
const LEFT_OUT: usize = 8_000;
/// Maximum number of names; the others are counted.
const MOST_NAMES: usize = 5;
/// Maximum number of guards or warnings; the others are counted.
const MOST_TOLD: usize = 40;

/// The plan as GitHub-flavoured Markdown, at most [`MARKDOWN_LIMIT`] bytes of it.
pub fn plan_markdown(plan: &Plan, options: &MarkdownOptions) -> String {
    let Plan {
        api_version: _,
        kind: _,
        created_at: _,
        tool_version: _,
        digest: _,
        source: _,
        cluster: _,
        daemon_sets,
        totals: _,
        forecast,
        guards,
        warnings,
    } = plan;
    let (shown, quiet): (Vec<_>, Vec<_>) =
        daemon_sets.iter().partition(|it| changes(it) || !it.nodes.is_empty());
    let mut blocks = vec![headline(plan)];
    if shown.is_empty() && guards.is_empty() && warnings.is_empty() {
        return document(&blocks, &options.comment);
    }
    if !shown.is_empty() {
        blocks.push(table(&shown, guards, shown.iter().any(|it| it.base.is_some())));
    }
    if !shown.is_empty() && !quiet.is_empty() {
        let others = count(quiet.len(), "other DaemonSet");
        blocks.push(format!("Nothing to do for {others}: {}.", keys(&quiet, MOST_NAMES)));
    }
    blocks.extend(forecast.map(forecast_words));
    let footer = footer(plan);
    let used: usize = blocks.iter().map(|block| block.len() + 2).sum();
    let room = MARKDOWN_LIMIT.saturating_sub(used + footer.len() + LEFT_OUT);
    blocks.extend(details(&shown, guards, warnings, room, options));
    blocks.push(footer);
    document(&blocks, &options.comment)
}

/// The collapsed details, as far as there is room, and a summary of those left out.
fn details(
    shown: &[&DaemonSetPlan],
    guards: &[Guard],
    warnings: &[Warning],
    room: usize,
    options: &MarkdownOptions,
) -> Vec<String> {
    let mut parts: Vec<LengthVariants> = vec![reported_guards(guards), reported_warnings(warnings)];
    let messages = parts.len();
    parts.extend(shown.iter().map(|daemon_set| variants(daemon_set, options)));
    let chosen = fit(&parts, room);
    let left_out: Vec<&DaemonSetPlan> = shown
        .iter()
        .zip(&chosen[messages..])
        .filter_map(|(daemon_set, telling)| telling.is_none().then_some(*daemon_set))
        .collect();
    let mut blocks: Vec<String> =
        chosen.into_iter().flatten().filter(|it| !it.is_empty()).map(str::to_owned).collect();
    if !left_out.is_empty() {
        let sums = summed(&left_out, options);
        let what = format!("Details left out for length: {}", count(left_out.len(), "DaemonSet"));
        let names = keys(&left_out, MOST_NAMES);
        blocks.push(folded(&what, &format!("{names}\n\n{}", items(&sums, sums.len(), "sums"))));
    }
    blocks
}

/// The effect of merging, in one line.
fn headline(plan: &Plan) -> String {
    let Plan { source, daemon_sets, guards, .. } = plan;
    let what = source.commit.as_deref().map_or("this".to_owned(), |id| code(short_commit(id)));
    if !daemon_sets.iter().any(changes) {
        let checked = count(daemon_sets.len(), "DaemonSet");
        return format!("**Merging {what} changes nothing**: {checked} checked.");
    }
    let asked =
        |it: &&&DaemonSetPlan| it.base.as_ref().is_none_or(|base| base.change != Change::None);
    let changing: Vec<&DaemonSetPlan> = daemon_sets.iter().filter(|it| changes(it)).collect();
    let (own, older): (Vec<&DaemonSetPlan>, Vec<&DaemonSetPlan>) =
        changing.iter().partition(|it| asked(it));
    let mut line = match own.as_slice() {
        [] => format!("**Merging {what} itself changes nothing.**"),
        own => format!("**Merging {what} {}.**", effect(own)),
    };
    if !older.is_empty() {
        let differ = if older.len() == 1 { "differs" } else { "differ" };
        let older_sets = count(older.len(), "DaemonSet");
        line = format!(
            "{line} {older_sets} {differ} from git already; applying the rest of git {}.",
            effect(&older)
        );
    }
    if !guards.is_empty() {
        line = format!("{line} Blocked by {}.", count(guards.len(), "guard"));
    }
    line
}

/// `replaces 409 pods in 2 DaemonSets; deletes 1 DaemonSet with its pods`.
pub(crate) fn effect(daemon_sets: &[&DaemonSetPlan]) -> String {
    let (gone, stay): (Vec<&DaemonSetPlan>, Vec<&DaemonSetPlan>) =
        daemon_sets.iter().partition(|it| it.change == Change::Delete);
    let staying = (!stay.is_empty()).then(|| effect_on_pods(&stay));
    let going = gone.first().map(|one| {
        let sets = count(gone.len(), "DaemonSet");
        match one.cascade {
            Some(Cascade::Orphan) => format!("deletes {sets} and keeps the pods"),
            Some(Cascade::Background) | None => format!("deletes {sets} with all pods"),
        }
    });
    staying.into_iter().chain(going).collect::<Vec<_>>().join("; ")
}

/// `replaces 409 pods, creates 1 and deletes 1 in 1 DaemonSet; 1 node waits`.
fn effect_on_pods(daemon_sets: &[&DaemonSetPlan]) -> String {
    let mut totals = ActionTotals::default();
    for daemon_set in daemon_sets {
        totals += daemon_set.totals;
    }
    let ActionTotals { create, delete, replace, surge, wait, keep: _ } = totals;
    let verbs =
        [("replaces", replace), ("surges", surge), ("creates", create), ("deletes", delete)];
    let mut done = verbs.into_iter().filter(|(_, pods)| *pods > 0);
    let sets = count(daemon_sets.len(), "DaemonSet");
    let mut words = match done.next() {
        None => {
            let recreated = daemon_sets.iter().all(|it| it.change == Change::Recreate);
            let verb = if recreated { "cannot update" } else { "updates" };
            format!("{verb} {sets} and touches no pod")
        }
        Some((verb, pods)) => {
            let rest: Vec<String> = done.map(|(verb, pods)| format!("{verb} {pods}")).collect();
            let rest = match rest.split_last() {
                None => String::new(),
                Some((last, [])) => format!(" and {last}"),
                Some((last, others)) => format!(", {} and {last}", others.join(", ")),
            };
            format!("{verb} {}{rest} in {sets}", count(pods, "pod"))
        }
    };
    if wait > 0 {
        let waits = if wait == 1 { "waits" } else { "wait" };
        words = format!("{words}; {} {waits}", count(wait, "node"));
    }
    words
}

fn table(shown: &[&DaemonSetPlan], guards: &[Guard], base: bool) -> String {
    let mut header = vec!["DaemonSet", "Object", "Revision", "Nodes", "Pace"];
    if base {
        header.push("By this pull request");
    }
    let is_guarded = guards.iter().any(|guard| guard.daemon_set.is_some());
    if is_guarded {
        header.push("Blocked");
    }
    let mut refused: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
    for guard in guards {
        if let Some(key) = &guard.daemon_set {
            refused.entry(key).or_default().push(guard_words(guard.code));
        }
    }
    let mut table = Table::new(&header);
    for (nth, daemon_set) in shown.iter().enumerate() {
        let mut cells = cells(daemon_set);
        if base {
            cells.push(asked_words(daemon_set));
        }
        if is_guarded {
            let words = refused.get(key(daemon_set).as_str());
            cells.push(words.map_or_else(String::new, |words| words.join(", ")));
        }
        if !table.row(&cells, TABLE) {
            return format!("{table}\n\n{}", rest_of_table(&shown[nth..]));
        }
    }
    table.to_string()
}

fn cells(daemon_set: &DaemonSetPlan) -> Vec<String> {
    let nodes = node_words(&daemon_set.totals);
    vec![
        code(key(daemon_set)),
        object_words(daemon_set).to_owned(),
        revision_words(&daemon_set.revision),
        if nodes.is_empty() { "none".to_owned() } else { nodes },
        strategy_words(daemon_set.strategy),
    ]
}

/// The changes of a row that the pull request itself makes.
fn asked_words(daemon_set: &DaemonSetPlan) -> String {
    match &daemon_set.base {
        None => String::new(),
        Some(base) => match base.change {
            Change::None => "nothing (existing drift)".to_owned(),
            Change::Create => "all of it".to_owned(),
            Change::Update | Change::Recreate | Change::Delete => {
                count(base.changes.len(), "field")
            }
        },
    }
}

/// A summary of the rows that are left out for length.
fn rest_of_table(rest: &[&DaemonSetPlan]) -> String {
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

fn guard_words(code: GuardCode) -> &'static str {
    match code {
        GuardCode::SelectorChange => "another selector",
        GuardCode::MassEviction => "evicts too many at once",
        GuardCode::ForceConflicts => "forces conflicts",
        GuardCode::GitOps => "applied by a GitOps controller",
        GuardCode::FailedTemplate => "failed before",
        GuardCode::Deadlock => "cannot finish",
        GuardCode::MassDeletion => "deletes more than half of the source",
        GuardCode::ManagedBy => "managed by another controller",
        GuardCode::OtherSource => "was applied from another source",
        GuardCode::PolicyChange => "loosens its policy",
    }
}

fn reported_guards(guards: &[Guard]) -> LengthVariants {
    let lines: Vec<String> = guards
        .iter()
        .map(|guard| {
            let Guard { code: kind, message, allow_flag, daemon_set, nodes } = guard;
            let message = about(daemon_set.as_deref(), message, nodes);
            let way_out = match allow_flag {
                Some(flag) => format!("To allow it, pass {}", code(flag)),
                None => "No flag allows it".to_owned(),
            };
            format!("{message}. **{}**. {way_out}.", capitalized(guard_words(*kind)))
        })
        .collect();
    let refused = format!("Blocked by {}", count(guards.len(), "guard"));
    let mut by_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for guard in guards {
        *by_kind.entry(guard_words(guard.code)).or_default() += 1;
    }
    messages(&refused, &lines, &by_kind)
}

fn capitalized(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// Warnings, collapsed.
pub(super) fn reported_warnings(warnings: &[Warning]) -> LengthVariants {
    let lines: Vec<String> = warnings
        .iter()
        .map(|Warning { code: _, message, daemon_set, nodes }| {
            about(daemon_set.as_deref(), message, nodes)
        })
        .collect();
    let mut by_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for warning in warnings {
        *by_kind.entry(&warning.code).or_default() += 1;
    }
    messages(&count(warnings.len(), "warning"), &lines, &by_kind)
}

/// Variants with all messages, then with fewer, finally only the number of each kind.
fn messages(summary: &str, lines: &[String], by_kind: &BTreeMap<&str, usize>) -> LengthVariants {
    if lines.is_empty() {
        return vec![String::new()];
    }
    let mut reported: LengthVariants = [lines.len(), MOST_TOLD, MOST_TOLD / 8]
        .into_iter()
        .map(|most| folded(summary, &items(lines, most, "of them")))
        .collect();
    let kinds: Vec<String> = by_kind
        .iter()
        .take(MOST_TOLD)
        .map(|(kind, count)| format!("{} {count}", prose(kind)))
        .collect();
    reported.push(folded(summary, &items(&kinds, MOST_TOLD, "kinds")));
    reported
}

/// `logging/fluent-bit: MESSAGE (3 nodes: …)`.
fn about(daemon_set: Option<&str>, message: &str, nodes: &[daemonset::model::NodeName]) -> String {
    let subject = daemon_set.map(|key| format!("{}: ", code(key))).unwrap_or_default();
    let sentence = prose(message.trim_end_matches('.'));
    if nodes.is_empty() {
        return format!("{subject}{sentence}");
    }
    let names = few(nodes.iter(), MOST_NAMES);
    format!("{subject}{sentence} ({}: {names})", count(nodes.len(), "node"))
}

/// The source, the cluster, and the version of the program.
fn footer(plan: &Plan) -> String {
    let Plan { tool_version, digest, source, cluster, .. } = plan;
    let version = code(format!("ds-plan {tool_version}"));
    format!("{}; {}. Plan {}, made by {version}.", from(source), seen(cluster), code(digest))
}

/// `` `4f2c9e1` in `deploy/prod` ``.
pub(super) fn from(source: &SourceInfo) -> String {
    let SourceInfo {
        repository: _,
        commit,
        subject: _,
        base,
        paths,
        id: _,
        prune: _,
        prune_namespaces: _,
    } = source;
    let commit = commit.as_deref().map_or("Plain files".to_owned(), |id| code(short_commit(id)));
    let base = base.as_deref().map(|id| format!(", since {}", code(short_commit(id))));
    let paths = match paths.as_slice() {
        [] => String::new(),
        paths => format!(" in {}", few(paths.iter(), MOST_NAMES)),
    };
    format!("{commit}{paths}{}", base.unwrap_or_default())
}

/// `` cluster `prod-eu` `v1.36.3`, 412 nodes ``.
pub(super) fn seen(cluster: &ClusterSummary) -> String {
    let ClusterSummary { name, uid: _, version, observed_at, nodes, snapshot } = cluster;
    let names = [name, version].into_iter().flatten().map(|text| format!(" {}", code(text)));
    let recorded = snapshot.as_ref().map(|file| format!(", as recorded in {}", code(file)));
    format!(
        "cluster{}, {}{} at {}",
        names.collect::<String>(),
        count(*nodes, "node"),
        recorded.unwrap_or_default(),
        code(observed_at)
    )
}
