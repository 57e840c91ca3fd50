//! A plan as text: the source and the cluster, then a block for each DaemonSet, then the totals.

use jiff::SignedDuration;

use super::TextOptions;
use super::daemon_set_text;
use super::nodes::names;
use super::page::{ASIDE, CHANGE, HALT, Line, NAME, Page, count};
use daemonset::model::short_commit;
use planner::plan::{
    Action, ActionTotals, Change, ClusterSummary, DaemonSetPlan, Forecast, Guard, Plan,
    RevisionKind, RevisionTotals, SourceInfo, Totals, Warning,
};

/// Maximum number of paths or names; the others are counted.
const MOST_NAMES: usize = 5;

/// The plan as text. The line that begins with `Plan:` keeps its form, for scripts.
pub fn plan_text(plan: &Plan, options: &TextOptions) -> String {
    let Plan {
        api_version: _,
        kind: _,
        created_at,
        tool_version,
        digest,
        source,
        cluster,
        daemon_sets,
        totals,
        forecast,
        guards,
        warnings,
    } = plan;
    let mut page = Page::default();
    let (shown, quiet): (Vec<_>, Vec<_>) =
        daemon_sets.iter().partition(|it| changes(it) || !it.nodes.is_empty());
    let nothing_to_do = !daemon_sets.iter().any(changes);
    let title = if nothing_to_do { "Plan: nothing to do. " } else { "ds-plan  " };
    page.push(
        Line::at(0)
            .styled(NAME, title)
            .plain(count(daemon_sets.len(), "DaemonSet"))
            .plain(source_words(source, *options))
            .plain("; ")
            .plain(cluster_words(cluster)),
    );
    if options.verbose {
        let made = format!("plan {digest}, made by ds-plan {tool_version} at {created_at}");
        page.push(Line::at(0).styled(ASIDE, made));
    }
    for daemon_set in &shown {
        page.gap();
        daemon_set_text::block(&mut page, daemon_set, *options);
    }
    if !shown.is_empty() && !quiet.is_empty() {
        page.gap();
        page.push(Line::at(0).styled(ASIDE, quiet_words(&quiet, *options)));
    }
    page.gap();
    for it in guards {
        guard(&mut page, it);
    }
    for it in warnings {
        warning(&mut page, it);
    }
    if !nothing_to_do {
        page.gap();
        page.push(Line::at(0).whole().styled(NAME, totals_words(totals)));
        if let Some(forecast) = forecast {
            page.push(Line::at(0).plain(forecast_words(*forecast)));
        }
    }
    page.write(*options)
}

/// `NAMESPACE/NAME` of each DaemonSet that changes, one per line.
pub fn plan_name(plan: &Plan) -> String {
    let mut page = Page::default();
    for daemon_set in plan.daemon_sets.iter().filter(|it| changes(it)) {
        page.push(Line::at(0).whole().plain(key(daemon_set)));
    }
    page.write(TextOptions::default())
}

/// `NAMESPACE/NAME`.
pub(super) fn key(daemon_set: &DaemonSetPlan) -> String {
    format!("{}/{}", daemon_set.namespace, daemon_set.name)
}

/// Whether the DaemonSet or its pods change.
pub(super) fn changes(daemon_set: &DaemonSetPlan) -> bool {
    daemon_set.change != Change::None
        || daemon_set.revision.kind != RevisionKind::Unchanged
        || daemon_set.nodes.iter().any(|node| node.action != Action::Keep)
}

/// ` at 4f2c9e1 in deploy/prod`.
pub(super) fn source_words(source: &SourceInfo, options: TextOptions) -> String {
    let SourceInfo {
        repository,
        commit,
        subject: _,
        base,
        paths,
        id: _,
        prune: _,
        prune_namespaces: _,
    } = source;
    let shortened = |id: &String| if options.verbose { id.clone() } else { short_commit(id) };
    let [commit, base] = [commit, base].map(|id| id.as_ref().map(shortened));
    let paths = (!paths.is_empty()).then(|| few(paths.iter().map(String::as_str), options));
    let repository = repository.clone().filter(|_| options.verbose);
    let words = [(" at ", commit), (" in ", paths), (" of ", repository), (", since ", base)];
    words.into_iter().filter_map(|(word, what)| what.map(|what| format!("{word}{what}"))).collect()
}

/// `cluster prod-eu v1.36.3, 412 nodes`.
pub(super) fn cluster_words(cluster: &ClusterSummary) -> String {
    let ClusterSummary { name, uid: _, version, observed_at, nodes, snapshot } = cluster;
    let recorded = snapshot.as_ref().map(|file| format!("as recorded in {file} at {observed_at}"));
    let words = [Some("cluster".to_owned()), name.clone(), version.clone()];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let parts = [Some(words.join(" ")), Some(count(*nodes, "node")), recorded];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn quiet_words(quiet: &[&DaemonSetPlan], options: TextOptions) -> String {
    let keys: Vec<String> = quiet.iter().map(|it| key(it)).collect();
    let others = count(quiet.len(), "other DaemonSet");
    format!("Nothing to do for {others}: {}", few(keys.iter().map(String::as_str), options))
}

/// The first of `names`, and the number of the others.
fn few<'a>(names: impl ExactSizeIterator<Item = &'a str>, options: TextOptions) -> String {
    let total = names.len();
    let most = if options.verbose || total == MOST_NAMES + 1 { total } else { MOST_NAMES };
    let shown: Vec<&str> = names.take(most).collect();
    match total - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn guard(page: &mut Page, guard: &Guard) {
    let Guard { code: _, message, allow_flag, daemon_set, nodes } = guard;
    let mut line = Line::at(0).styled(HALT, "Blocked: ");
    line = about(line, daemon_set.as_deref(), message, nodes.iter().map(AsRef::as_ref));
    if let Some(flag) = allow_flag {
        line = line.plain(". To allow it, pass ").styled(NAME, flag).plain('.');
    }
    page.push(line);
}

/// Adds a line for one warning.
pub(super) fn warning(page: &mut Page, warning: &Warning) {
    let Warning { code: _, message, daemon_set, nodes } = warning;
    let line = Line::at(0).styled(CHANGE, "Warning: ");
    page.push(about(line, daemon_set.as_deref(), message, nodes.iter().map(AsRef::as_ref)));
}

/// `logging/fluent-bit: MESSAGE (3 nodes: …)`.
fn about<'a>(
    line: Line,
    daemon_set: Option<&str>,
    message: &str,
    nodes: impl Iterator<Item = &'a str>,
) -> Line {
    let line = match daemon_set {
        Some(daemon_set) => line.styled(NAME, daemon_set).plain(": ").plain(message),
        None => line.plain(message),
    };
    let nodes: Vec<&str> = nodes.collect();
    if nodes.is_empty() { line } else { line.plain(format!(" ({})", names(&nodes))) }
}

fn totals_words(totals: &Totals) -> String {
    let Totals { actions, revisions } = totals;
    let ActionTotals { create, delete, replace, surge, wait, keep: _ } = actions;
    let RevisionTotals { new, reused, unchanged: _ } = revisions;
    format!(
        "Plan: {create} to create, {delete} to delete, {replace} to replace, {surge} to surge, \
         {wait} waiting. Revisions: {new} new, {reused} reused."
    )
}

/// `About 41m (from 1236 pod starts seen in this cluster).`
pub(super) fn forecast_words(forecast: Forecast) -> String {
    let Forecast { seconds, starts_seen, default_start_seconds } = forecast;
    let seen = (starts_seen > 0)
        .then(|| format!("from {} seen in this cluster", count(starts_seen, "pod start")));
    let assumed = default_start_seconds.map(|start| match seen {
        None => format!("assuming that pods start in {start}s"),
        Some(_) => format!("assuming {start}s for the others"),
    });
    let why: Vec<String> = seen.into_iter().chain(assumed).collect();
    format!("About {} ({}).", roughly(seconds), why.join("; "))
}

/// A duration, rounded to its precision.
fn roughly(seconds: u64) -> String {
    let rounded = match seconds {
        0..=59 => seconds,
        60..=599 => seconds.next_multiple_of(10),
        600..=7199 => seconds.next_multiple_of(60),
        _ => seconds.next_multiple_of(600),
    };
    let span = SignedDuration::from_secs(i64::try_from(rounded).unwrap_or(i64::MAX));
    format!("{span:#}")
}
