//! The status of DaemonSets: kubectl's table, then details that the table does not show.

use jiff::Timestamp;

use super::nodes::{group_line, reason_column};
use super::notices;
use super::page::{ASIDE, CHANGE, Line, NAME, Page, TextOptions};
use crate::neutral;
use crate::view::{Notice, groups};
use daemonset::model::NodeName;
use planner::plan::{
    Age, Counters, DaemonSetStatusReport, NodeObstacles, PauseState, PausedRollout, PolicyProgress,
    StatusReport, StepPlan, StepState, Zones,
};
use planner::words::{agree, count};

/// Spaces between columns (upstream: `tabwriterPadding` of cli-runtime).
const PADDING: usize = 3;
/// Minimum width of a column, padding included (upstream: `tabwriterMinWidth`).
const NARROWEST: usize = 6;
const INDENT: usize = 4;

/// The status as text: the table of `kubectl get daemonsets` (with a column for the namespace if
/// that is wanted, or there is more than one), then differing counters and the nodes that need attention.
pub fn status_text(status: &StatusReport, options: &TextOptions) -> String {
    let StatusReport { api_version: _, kind: _, cluster, daemon_sets, warnings } = status;
    let zones = &cluster.zones;
    let mut page = Page::default();
    if daemon_sets.is_empty() {
        page.push(Line::at(0).plain("No DaemonSets found."));
    } else {
        table(&mut page, daemon_sets, options.namespaces);
    }
    for status in daemon_sets {
        details(&mut page, status, zones, *options);
    }
    page.gap();
    notices::warnings(&mut page, &Notice::of_warnings(warnings, zones));
    page.write(*options)
}

/// `NAMESPACE/NAME` of each DaemonSet, one per line.
pub fn status_name(status: &StatusReport) -> String {
    Page::of_names(status.daemon_sets.iter().map(key))
}

fn key(status: &DaemonSetStatusReport) -> String {
    format!("{}/{}", status.namespace, status.name)
}

fn table(page: &mut Page, daemon_sets: &[DaemonSetStatusReport], namespaces: bool) {
    let first = daemon_sets.first().map(|status| &status.namespace);
    let namespaces =
        namespaces || daemon_sets.iter().any(|status| Some(&status.namespace) != first);
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(daemon_sets.iter().map(cells));
    let skipped = usize::from(!namespaces);
    let rows: Vec<&[String]> = rows.iter().map(|row| &row[skipped..]).collect();
    page.table(&rows, PADDING, NARROWEST);
}

/// The columns of `kubectl get daemonsets -A`.
/// Number of pulling nodes that are named.
const MOST_PULLING: usize = 10;

const HEADER: [&str; 9] = [
    "NAMESPACE",
    "NAME",
    "DESIRED",
    "CURRENT",
    "READY",
    "UP-TO-DATE",
    "AVAILABLE",
    "NODE SELECTOR",
    "AGE",
];

/// The rows of the table one by one, for a status that is watched: the columns keep their widths.
#[derive(Clone, Copy, Debug)]
pub struct StatusRows {
    widths: [usize; 9],
    namespaces: bool,
}

impl StatusRows {
    /// The widths that the table of this status has.
    pub fn of(status: &StatusReport, namespaces: bool) -> Self {
        let rows: Vec<[String; 9]> = status.daemon_sets.iter().map(cells).collect();
        let width = |at: usize| {
            let widest = rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
            (widest.max(HEADER[at].len()) + PADDING).max(NARROWEST)
        };
        Self { widths: std::array::from_fn(width), namespaces }
    }

    /// The header, as a line.
    pub fn header(&self) -> String {
        self.line(&HEADER.map(str::to_owned))
    }

    /// The row of a DaemonSet, as a line.
    pub fn row(&self, status: &DaemonSetStatusReport) -> String {
        self.line(&cells(status))
    }

    fn line(&self, cells: &[String; 9]) -> String {
        let shown = cells.iter().zip(self.widths).skip(usize::from(!self.namespaces));
        let padded = shown.map(|(cell, width)| {
            let fill = width.saturating_sub(cell.chars().count());
            format!("{cell}{:fill$}", "")
        });
        format!("{}\n", padded.collect::<String>().trim_end())
    }
}

/// The cells of one row (upstream: `printDaemonSet`).
fn cells(status: &DaemonSetStatusReport) -> [String; 9] {
    let Counters { desired, current, ready, updated, available, unavailable: _, misscheduled: _ } =
        status.reported;
    let age = status.age_seconds.map_or("<unknown>".to_owned(), |age| Age(age).to_string());
    let texts = [status.namespace.as_ref(), status.name.as_ref(), &status.node_selector];
    let [namespace, name, selector] = texts.map(|text| neutral::line(text).into_owned());
    let [desired, current, ready, updated, available] =
        [desired, current, ready, updated, available].map(|number| number.to_string());
    [namespace, name, desired, current, ready, updated, available, selector, age]
}

/// Details that kubectl's row does not show; none for a healthy DaemonSet.
fn details(page: &mut Page, status: &DaemonSetStatusReport, zones: &Zones, options: TextOptions) {
    let DaemonSetStatusReport {
        namespace: _,
        name: _,
        generation,
        observed_generation,
        reported,
        counted,
        node_selector: _,
        age_seconds: _,
        pause,
        waits_since,
        pulling,
        progress,
        lock,
        obstacles,
    } = status;
    let mut remarks = differences(*reported, *counted);
    if observed_generation < generation {
        remarks.insert(
            0,
            format!(
                "the status is of generation {observed_generation}, the object is at {generation}: \
             the controller has not observed it yet"
            ),
        );
    }
    remarks.extend(pause.as_ref().map(|pause| pause_words(pause, *waits_since)));
    remarks.extend((!pulling.is_empty()).then(|| pulling_words(pulling)));
    remarks.extend(progress.as_ref().into_iter().flat_map(by_policy));
    remarks.extend(lock.as_ref().map(ToString::to_string));
    if remarks.is_empty() && obstacles.is_empty() {
        return;
    }
    page.gap();
    let title = Line::at(0).styled(NAME, key(status));
    page.push(match obstacles.len() {
        0 => title,
        nodes => {
            let verb = agree(nodes, "needs", "need");
            title.plain(format!("   {} {verb} attention", count(nodes, "node")))
        }
    });
    for remark in remarks {
        page.push(Line::at(INDENT).styled(CHANGE, remark));
    }
    obstacle_lines(page, obstacles, zones, options);
}

/// `pulling images: a-01, a-02 and 3 more`.
fn pulling_words(nodes: &[NodeName]) -> String {
    let named = nodes.iter().take(MOST_PULLING).map(NodeName::to_string).collect::<Vec<_>>();
    let more = nodes.len().saturating_sub(MOST_PULLING);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("pulling images: {}{more}", neutral::line(&named.join(", ")))
}

/// How far the rollout is by its policy; nothing if there is nothing to do.
fn by_policy(progress: &PolicyProgress) -> Vec<String> {
    let PolicyProgress { policy, roll_since, steps, waits_for, approvals, next_opening } = progress;
    let step = |step: &StepPlan| {
        let StepPlan { name, nodes, updated, state, .. } = step;
        let state = match state {
            StepState::Pending => "not begun",
            StepState::InProgress => "in progress",
            StepState::Soaking => "soaking",
            StepState::Done => "done",
        };
        format!("step {name}: {state}, {updated} of {} updated", count(*nodes, "node"))
    };
    let steps = steps.iter().map(step);
    let waits = waits_for.iter().map(|wait| format!("waiting: {wait}"));
    let approvals = approvals.iter().map(|it| format!("step {}: {}", it.step, it.message));
    let opening = next_opening.map(|at| format!("the next window opens at {at}"));
    let lines: Vec<String> = steps.chain(waits).chain(approvals).chain(opening).collect();
    if lines.is_empty() {
        return lines;
    }
    let begun = roll_since.map(|since| {
        format!(", begun by `ds-apply roll` at {since}, which continues when it runs again")
    });
    let head = format!("by policy {policy}{}:", begun.unwrap_or_default());
    [head].into_iter().chain(lines).collect()
}

/// A paused or aborted rollout, and what can be done about it.
pub(super) fn pause_words(pause: &PausedRollout, waits_since: Option<Timestamp>) -> String {
    let waits = waits_since.map(|since| format!(", waiting since {since}")).unwrap_or_default();
    format!("{pause}{waits}: {}", ways_on(pause.state))
}

/// What can be done about a paused or aborted rollout.
fn ways_on(state: PauseState) -> &'static str {
    match state {
        PauseState::Paused => "`ds-apply` resumes, `ds-apply undo` rolls back",
        PauseState::Waiting => "the next `ds-apply` continues, `ds-apply undo` rolls back",
        PauseState::Aborted => {
            "`ds-apply undo` rolls back; `ds-apply --retry` resumes when the cause is fixed"
        }
    }
}

/// The counters whose reported value differs from the counted value, with a likely cause.
fn differences(reported: Counters, counted: Counters) -> Vec<String> {
    let stale = "the controller's number is stale";
    let rows = [
        ("DESIRED", reported.desired, counted.desired, stale),
        ("CURRENT", reported.current, counted.current, stale),
        ("READY", reported.ready, counted.ready, stale),
        ("UP-TO-DATE", reported.updated, counted.updated, "only a pod's hash label counts here"),
        (
            "AVAILABLE",
            reported.available,
            counted.available,
            "pods that terminate, or are Ready for too short a time, do not count here",
        ),
        ("misscheduled", reported.misscheduled, counted.misscheduled, stale),
    ];
    let differing = rows.into_iter().filter(|(_, reported, counted, _)| reported != counted);
    differing
        .map(|(name, reported, counted, why)| {
            format!("{name} is {reported} in the status, ds-plan counts {counted}: {why}")
        })
        .collect()
}

fn obstacle_lines(
    page: &mut Page,
    obstacles: &[NodeObstacles],
    zones: &Zones,
    options: TextOptions,
) {
    let nodes = obstacles.iter();
    let nodes = nodes.map(|NodeObstacles { node, reasons }| ((), node.as_ref(), &reasons[..]));
    let grouped = groups(nodes, zones);
    let column = INDENT + reason_column(&grouped);
    for group in &grouped {
        group_line(page, Line::at(INDENT), group, column);
        let nodes = &group.nodes;
        // Details of pods are shown for one node of a group, or for each with `--verbose`.
        let several = nodes.len() > 1;
        let shown = if options.verbose { nodes.len() } else { 1 };
        for node in nodes.iter().take(shown) {
            let said = said_of(node, obstacles);
            if several && (options.verbose || !said.is_empty()) {
                page.push(Line::at(2 * INDENT).styled(ASIDE, node));
            }
            let indent = if several { 3 * INDENT } else { 2 * INDENT };
            for detail in said {
                page.push(Line::at(indent).styled(ASIDE, detail));
            }
        }
    }
}

/// Messages of the kubelet and the scheduler about the pod on a node.
fn said_of(node: &str, obstacles: &[NodeObstacles]) -> Vec<String> {
    let of_node = obstacles.iter().filter(|one| one.node.as_ref() == node);
    let reasons = of_node.flat_map(|NodeObstacles { node: _, reasons }| reasons);
    reasons.flat_map(|coded| coded.reason.details()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use planner::plan::{LockStatus, PodNotReady, Reason};
    use serde_json::json;

    #[test]
    fn the_table_is_kubectls_with_details_below() {
        insta::assert_snapshot!(status_text(&examples::status(), &TextOptions::default()), @r"
            NAME                             DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   NODE SELECTOR                     AGE
            fluent-bit                       40        40        40      40           40          <none>                            41d
            node-exporter-with-a-long-name   40        40        40      40           40          disk=ssd,kubernetes.io/os=linux   41d

            logging/node-exporter-with-a-long-name   13 nodes need attention
                the status is of generation 9, the object is at 10: the controller has not observed it yet
                UP-TO-DATE is 40 in the status, ds-plan counts 0: only a pod's hash label counts here
                AVAILABLE is 40 in the status, ds-plan counts 37: pods that terminate, or are Ready for too short a time, do not count here
                12 nodes: edge-a-01 … edge-a-12   strategy OnDelete: replaced by `ds-apply roll`, or after it is deleted
                edge-b-07                         pod is terminating
            ");
    }

    #[test]
    fn messages_about_a_pod_are_below_its_node() {
        let unready = |node: &str, detail: Option<&str>, warning: Option<&str>| {
            let pod = PodNotReady {
                container: Some("agent".to_owned()),
                container_failure: Some("ContainerCreating".to_owned()),
                detail: detail.map(str::to_owned),
                warning: warning.map(str::to_owned),
                restarts: 0,
            };
            let reason = Reason::PodNotReady(pod.into());
            NodeObstacles { node: node.into(), reasons: vec![reason.into()] }
        };
        let mut status = examples::status();
        status.daemon_sets.truncate(1);
        status.daemon_sets[0].obstacles = vec![
            unready("n-1", Some("no sandbox"), Some("FailedMount: no \u{1b}[2Jsuch\nvolume")),
            unready("n-2", None, Some("FailedMount: another")),
            unready("n-3", None, None),
        ];
        let text =
            |verbose| status_text(&status, &TextOptions { verbose, ..TextOptions::default() });
        insta::assert_snapshot!(text(false).split_once("\n\n").unwrap().1, @r"
            logging/fluent-bit   3 nodes need attention
                3 nodes: n-1 … n-3   pod is not Ready: ContainerCreating in container agent
                    n-1
                        no sandbox
                        last warning: FailedMount: no \u{1b}[2Jsuch\nvolume
            ");
        insta::assert_snapshot!(text(true).split_once("\n\n").unwrap().1, @r"
            logging/fluent-bit   3 nodes need attention
                3 nodes: n-1 … n-3   pod is not Ready: ContainerCreating in container agent
                    n-1
                        no sandbox
                        last warning: FailedMount: no \u{1b}[2Jsuch\nvolume
                    n-2
                        last warning: FailedMount: another
                    n-3
            ");
    }

    #[test]
    fn several_namespaces_have_a_column() {
        let mut status = examples::status();
        status.daemon_sets.truncate(1);
        let mut other = status.daemon_sets[0].clone();
        (other.namespace, other.age_seconds) = ("kube-system".into(), None);
        status.daemon_sets.push(other);
        status.warnings = examples::guarded().warnings;
        insta::assert_snapshot!(status_text(&status, &TextOptions::default()), @r"
            NAMESPACE     NAME         DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   NODE SELECTOR   AGE
            logging       fluent-bit   40        40        40      40           40          <none>          41d
            kube-system   fluent-bit   40        40        40      40           40          <none>          <unknown>

            Warning: the snapshot has no managed fields: leftovers and conflicts are undecided
            ");
        assert_eq!(status_name(&status), "logging/fluent-bit\nkube-system/fluent-bit\n");
    }

    #[test]
    fn a_lock_is_shown() {
        let lock = |ago| LockStatus {
            holder: "alice on build-7 (process 5)".to_owned(),
            since: Some("2026-08-01T11:00:00Z".parse().unwrap()),
            renewed_seconds_ago: Some(ago),
            lease_seconds: 15,
            live: ago < 15,
        };
        let mut status = examples::status();
        status.daemon_sets.truncate(1);
        status.daemon_sets[0].lock = Some(lock(4));
        let mut gone = status.daemon_sets[0].clone();
        (gone.name, gone.lock) = ("left".into(), Some(lock(600)));
        status.daemon_sets.push(gone);
        insta::assert_snapshot!(status_text(&status, &TextOptions::default()), @r"
            NAME         DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   NODE SELECTOR   AGE
            fluent-bit   40        40        40      40           40          <none>          41d
            left         40        40        40      40           40          <none>          41d

            logging/fluent-bit
                locked by alice on build-7 (process 5) since 2026-08-01T11:00:00Z, renewed 4s ago: the run is in progress

            logging/left
                locked by alice on build-7 (process 5) since 2026-08-01T11:00:00Z, renewed 10m ago: the 15s lease has expired; the next run acquires it
            ");
    }

    /// No pause says so.
    #[test]
    fn a_roll_is_shown_with_its_steps() {
        let mut status = examples::status();
        status.daemon_sets.truncate(1);
        let steps = json!([{"name": "canary", "nodes": 1, "updated": 1, "state": "soaking"}]);
        let mut progress = json!({
            "policy": "p", "rollSince": "2026-08-01T11:00:00Z", "steps": steps,
            "waitsFor": [{"kind": "soak", "step": "canary", "until": "2026-08-01T12:00:00Z"}],
        });
        let mut text = |progress: &serde_json::Value| {
            status.daemon_sets[0].progress = serde_json::from_value(progress.clone()).unwrap();
            status_text(&status, &TextOptions::default())
        };
        insta::assert_snapshot!(text(&progress).split_once("\n\n").unwrap().1, @r"
            logging/fluent-bit
                by policy p, begun by `ds-apply roll` at 2026-08-01T11:00:00Z, which continues when it runs again:
                step canary: soaking, 1 of 1 node updated
                waiting: step canary soaks until 2026-08-01T12:00:00Z
            ");
        progress["rollSince"] = serde_json::Value::Null;
        assert!(text(&progress).contains("by policy p:\n"), "{progress}");
    }

    #[test]
    fn a_cluster_without_daemon_sets() {
        let none = StatusReport { daemon_sets: vec![], ..examples::status() };
        assert_eq!(status_text(&none, &TextOptions::default()), "No DaemonSets found.\n");
    }

    #[test]
    fn verbose_lists_every_node() {
        let options = TextOptions { verbose: true, ..TextOptions::default() };
        let text = status_text(&examples::status(), &options);
        assert!((1..=12).all(|n| text.contains(&format!("\n        edge-a-{n:02}\n"))), "{text}");
    }
}
