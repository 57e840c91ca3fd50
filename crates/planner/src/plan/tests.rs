//! Tests of the whole planner on small clusters.

mod approvals;
mod base;
mod git_ops;
mod guards;
mod managed_by;
mod mass_eviction;
mod nodes;
mod ownership;
mod paused;
mod prune;
mod rolled;
mod stale;
mod status;
mod surge;
mod warnings;
mod windows;

use std::sync::Arc;

use serde_json::{Value, json};

use super::secrets::ShownValues;
use super::*;
use daemonset::controller::test_cluster::{Cluster, OTHERS, OURS, at, labels, node, object, taint};
use daemonset::model::{
    ContainerFailure, Coverage, DaemonSet, Lease, ManagedBy, NodeReadiness, PodPhase, PodReadiness,
    PodTarget, Service, Snapshot, TEMPLATE_GENERATION_ANNOTATION, TEMPLATE_GENERATION_LABEL,
};
use manifest::default_daemon_set;

/// A settled cluster of `count` nodes, every pod ready, at revision 1.
pub(super) fn settled(count: usize) -> Cluster {
    let mut cluster = Cluster::of(count);
    settle(&mut cluster);
    cluster
}

pub(super) fn settle(cluster: &mut Cluster) {
    for _ in 0..100 {
        let seen = cluster.sync();
        cluster.make_all_ready();
        if seen.counts() == (0, 0) {
            return;
        }
    }
    panic!("the cluster does not converge");
}

/// The manifest of a user as the server returns it, with all defaults.
fn raw(daemon_set: &DaemonSet) -> Value {
    default_daemon_set(object(daemon_set)).unwrap()
}

/// The object as the server returns it after an apply by `ds-apply`.
fn served(daemon_set: &DaemonSet) -> Value {
    let mut object = raw(daemon_set);
    let manifest = ssa::Manifest { applied: &object, defaulted: &object };
    let merged = ssa::apply(&ssa::DAEMON_SET, None, manifest, "ds-apply", at(0)).unwrap();
    object["metadata"]["managedFields"] = merged.managed_fields.to_value();
    object
}

/// The cluster as a server returns it, with the owners of fields.
pub(crate) fn snapshot(cluster: &Cluster) -> Snapshot {
    let mut snapshot = cluster.snapshot();
    for daemon_set in &mut snapshot.daemon_sets {
        daemon_set.raw = Arc::new(served(daemon_set));
    }
    snapshot
}

/// The manifest in git: the DaemonSet of `cluster`, with defaults.
pub(crate) fn desired(cluster: &Cluster) -> DesiredDaemonSet {
    let raw = Arc::new(raw(&cluster.daemon_set));
    DesiredDaemonSet { raw: Arc::clone(&raw), written: raw, ..cluster.desired() }
}

fn planned(snapshot: &Snapshot, desired: &[DesiredDaemonSet]) -> Plan {
    plan(Input::of(snapshot, desired))
}

/// The plan after `change` is made to the DaemonSet.
pub(super) fn after(cluster: &mut Cluster, change: impl FnOnce(&mut Cluster)) -> Plan {
    let before = snapshot(cluster);
    change(cluster);
    planned(&before, &[desired(cluster)])
}

/// Nodes as `NAME ACTION CODE,CODE`, in the plan's order.
fn lines(plan: &Plan) -> Vec<String> {
    let nodes = plan.daemon_sets.iter().flat_map(|daemon_set| &daemon_set.nodes);
    nodes
        .map(|node| {
            let codes: Vec<&str> = node.reasons.iter().map(|why| why.reason.code()).collect();
            let wave = node.wave.map(|wave| format!(" wave {wave}")).unwrap_or_default();
            format!("{} {} {}{wave}", node.name, node.action.symbol(), codes.join(","))
        })
        .collect()
}

#[test]
fn a_settled_cluster_has_nothing_to_do() {
    let mut cluster = settled(3);
    let plan = after(&mut cluster, |_| {});
    assert_eq!(lines(&plan), Vec::<String>::new());
    let one = &plan.daemon_sets[0];
    assert_eq!((one.change, one.revision.kind), (Change::None, RevisionKind::Unchanged));
    assert_eq!(plan.totals.actions.keep, 3);
    assert_eq!(one.status.map(|status| (status.desired, status.available)), Some((3, 3)));
}

#[test]
fn a_new_daemon_set_gets_a_pod_on_each_eligible_node() {
    let mut cluster = Cluster::of(2);
    cluster.nodes.push(node("node-9", &[], &["gpu:NoSchedule"]));
    let mut empty = snapshot(&cluster);
    empty.daemon_sets.clear();
    let plan = planned(&empty, &[desired(&cluster)]);
    assert_eq!(lines(&plan), ["node-0 + noPod", "node-1 + noPod"]);
    let one = &plan.daemon_sets[0];
    assert_eq!((one.change, one.revision.kind), (Change::Create, RevisionKind::New));
    assert_eq!(one.revision.target.number.0, 1);
    assert_eq!((one.status, one.uid.clone()), (None, None));
}

#[test]
fn a_new_template_replaces_every_pod_in_one_wave() {
    let plan = after(&mut settled(3), |cluster| cluster.set_image("foo/bar:2"));
    assert_eq!(
        lines(&plan),
        ["node-0 -/+ outdated wave 1", "node-1 -/+ outdated wave 1", "node-2 -/+ outdated wave 1"]
    );
    let one = &plan.daemon_sets[0];
    assert_eq!(one.changes.len(), 1);
    assert_eq!(one.changes[0].path, "spec.template.spec.containers[c].image");
    assert_eq!(one.revision.kind, RevisionKind::New);
    assert_eq!(one.revision.target.number.0, 2);
    assert_eq!(one.waves[0].nodes.len(), 3);
}

#[test]
fn rolling_back_reuses_the_earlier_revision_with_a_higher_number() {
    let mut cluster = settled(2);
    let first = cluster.revisions[0].name.clone();
    cluster.set_image("foo/bar:2");
    settle(&mut cluster);
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar"));
    let revision = &plan.daemon_sets[0].revision;
    assert_eq!(revision.kind, RevisionKind::Reused);
    assert_eq!((revision.target.name.clone(), revision.target.number.0), (Some(first), 3));
    assert_eq!(revision.current.as_ref().map(|current| current.number.0), Some(2));
}

#[test]
fn actions_of_the_controller_are_not_in_a_wave() {
    let mut cluster = settled(5);
    // node-0 gets a second pod, node-1's pod fails, node-2's completes, node-3 loses its pod.
    cluster.add_pods("node-0", OURS, 1);
    cluster.make_all_ready();
    let on = |cluster: &mut Cluster, name: &str, phase| {
        let found = cluster.pods.iter_mut().find(|pod| pod.node().is_some_and(|n| *n == *name));
        found.unwrap().phase = phase;
    };
    on(&mut cluster, "node-1", PodPhase::Failed);
    on(&mut cluster, "node-2", PodPhase::Succeeded);
    cluster.pods.retain(|pod| pod.node().is_none_or(|node| *node != *"node-3"));
    let plan = after(&mut cluster, |_| {});
    assert_eq!(
        lines(&plan),
        [
            "node-0 - surplus",
            "node-1 -/+ failed,mayBeDelayed",
            "node-2 -/+ succeeded",
            "node-3 + noPod"
        ]
    );
}

#[test]
fn a_node_that_may_not_keep_its_pod_loses_it() {
    let mut cluster = settled(3);
    cluster.nodes[1].taints = [taint("gpu:NoExecute")].into();
    cluster.nodes[2].taints = [taint("gpu:NoSchedule")].into();
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar:2"));
    assert_eq!(
        lines(&plan),
        [
            "node-0 -/+ outdated wave 1",
            "node-1 - notEligible",
            "node-2 - deletedNotRecreated wave 1"
        ]
    );
}

#[test]
fn terminating_pods_are_waited_for() {
    let mut cluster = settled(2);
    cluster.pods[0].terminating = true;
    let plan = after(&mut cluster, |_| {});
    assert_eq!(lines(&plan), ["node-0 ! terminating"]);
}

#[test]
fn under_on_delete_replacements_wait_and_the_rest_continues() {
    let mut cluster = settled(3);
    cluster.set_on_delete();
    settle(&mut cluster);
    cluster.add_pods("node-0", OURS, 1);
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar:2"));
    assert_eq!(
        lines(&plan),
        ["node-0 - surplus,onDelete", "node-1 ! onDelete", "node-2 ! onDelete"]
    );
    assert_eq!(plan.daemon_sets[0].waves, []);
    assert_eq!(plan.daemon_sets[0].strategy, Strategy::OnDelete);
    let kept: Vec<Fate> = plan.daemon_sets[0].nodes[0].pods.iter().map(|pod| pod.fate).collect();
    assert_eq!(kept, [Fate::Keep, Fate::Delete]);
}

#[test]
fn a_surge_brings_the_new_pod_first() {
    let mut cluster = settled(3);
    cluster.set_limits(&json!(0), &json!("50%"));
    settle(&mut cluster);
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar:2"));
    let one = &plan.daemon_sets[0];
    let half = Strategy::RollingUpdate { max_unavailable: 0, max_surge: 2, desired: 3 };
    assert_eq!(one.strategy, half);
    assert!(lines(&plan).iter().all(|line| line.ends_with("+/- outdated wave 1")), "{plan:#?}");
    // During the surge: one node has both pods.
    cluster.sync();
    let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
    assert_eq!(plan.totals.actions.surge, 3, "{:#?}", lines(&plan));
}

#[test]
fn a_not_ready_node_is_skipped() {
    let mut cluster = settled(3);
    let since = Some(at(400).into());
    cluster.nodes[1].readiness = NodeReadiness::Unknown { since };
    cluster.pods[1].readiness = PodReadiness::NotReady { since: None };
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar:2"));
    assert_eq!(lines(&plan)[1], "node-1 ! skippedUnreadyNode,outdated");
    let message = plan.daemon_sets[0].nodes[1].reasons[0].to_string();
    assert_eq!(
        message,
        "node NotReady for 10m: skipped; its pod is replaced when the node is Ready again"
    );
}

#[test]
fn unbound_pods_of_vanished_nodes_are_deleted() {
    let mut cluster = settled(3);
    cluster.nodes.truncate(1);
    cluster.pods[1].target = PodTarget::Aimed("node-1".into());
    let plan = after(&mut cluster, |_| {});
    assert_eq!(lines(&plan), ["node-1 - nodeVanished"]);
}

#[test]
fn adopted_and_released_pods_of_vanished_nodes_are_planned_too() {
    let mut cluster = settled(4);
    cluster.nodes.truncate(1);
    cluster.pods[1].controller = None;
    cluster.pods[2].labels = labels(OTHERS);
    cluster.pods[3].target = PodTarget::Aimed("node-2".into());
    let wanted = [desired(&cluster)];
    let snapshot = snapshot(&cluster);
    let all = Detail { all_nodes: true, show_values: ShownValues::None };
    let input = Input { detail: all, ..Input::of(&snapshot, &wanted) };
    let plan = plan(input);
    let want =
        ["node-0  upToDate", "node-1  leftToGarbageCollector,adopted", "node-2 - nodeVanished"];
    assert_eq!(lines(&plan), want);
    let pods = plan.daemon_sets[0].nodes[2].pods.iter();
    let pods: Vec<_> = pods.map(|pod| (pod.fate, pod.reason.reason.code())).collect();
    assert_eq!(pods, [(Fate::Delete, "nodeVanished"), (Fate::Keep, "released")]);
}

#[test]
fn orphans_are_adopted_and_other_pods_released() {
    let mut cluster = settled(2);
    cluster.pods[0].controller = None;
    cluster.pods[1].labels = labels(OTHERS);
    let plan = after(&mut cluster, |_| {});
    assert_eq!(lines(&plan), ["node-1 + noPod"]);
    let warnings: Vec<_> = plan.warnings.iter().map(|it| (&*it.code, &*it.message)).collect();
    let adopts = "default/foo adopts 1 pod that matches its selector and has no owner";
    let lets_go =
        "default/foo releases 1 pod that no longer matches its selector; it keeps running";
    assert_eq!(warnings, [("adoptsOrphans", adopts), ("releasesPods", lets_go)]);
    let released = &plan.daemon_sets[0].nodes[0].pods[0];
    assert_eq!((released.fate, released.reason.reason.code()), (Fate::Keep, "released"));
}

#[test]
fn pods_and_revisions_of_a_deleted_daemon_set_are_adopted() {
    let mut cluster = settled(2);
    for pod in &mut cluster.pods {
        pod.controller = None;
    }
    cluster.revisions[0].controller = None;
    let mut orphaned = snapshot(&cluster);
    orphaned.daemon_sets.clear();
    let plan = planned(&orphaned, &[desired(&cluster)]);
    let one = &plan.daemon_sets[0];
    assert_eq!((one.change, one.revision.kind), (Change::Create, RevisionKind::Unchanged));
    assert_eq!(lines(&plan), Vec::<String>::new());
    let Warning { code, message, .. } = &plan.warnings[0];
    assert_eq!(code, "adoptsOrphans");
    assert!(
        message.ends_with("adopts 2 pods that match its selector and have no owner"),
        "{message}"
    );
}

#[test]
fn a_daemon_set_that_is_being_deleted_is_not_changed() {
    let mut cluster = settled(2);
    cluster.daemon_set.terminating = true;
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar:2"));
    assert_eq!(lines(&plan), Vec::<String>::new());
    assert_eq!(plan.warnings[0].code, "daemonSetTerminating");
}

#[test]
fn the_digest_depends_on_decisions_only() {
    let mut cluster = settled(3);
    let before = snapshot(&cluster);
    cluster.set_image("foo/bar:2");
    let wanted = [desired(&cluster)];
    let plan = planned(&before, &wanted);

    let mut same = before.clone();
    same.cluster.name = Some("another name".into());
    same.cluster.file = Some("file".into());
    same.observed_at = at(1001);
    let mut later = Input {
        source: SourceInfo { paths: vec!["elsewhere".into()], ..SourceInfo::default() },
        created_at: at(5),
        detail: Detail { all_nodes: true, show_values: ShownValues::All },
        ..Input::of(&same, &wanted)
    };
    later.warnings = vec![Warning {
        code: "note".into(),
        message: String::new(),
        daemon_set: None,
        nodes: Vec::new(),
    }];
    assert_eq!(super::plan(later).digest, plan.digest);

    let mut other_pod = before.clone();
    other_pod.pods[0].uid = "another".into();
    let mut fewer = before.clone();
    fewer.nodes.pop();
    for (what, snapshot) in [("another pod", other_pod), ("a node less", fewer)] {
        assert_ne!(planned(&snapshot, &wanted).digest, plan.digest, "{what}");
    }
    cluster.set_image("foo/bar:3");
    assert_ne!(planned(&before, &[desired(&cluster)]).digest, plan.digest, "another template");
}

#[test]
fn secret_values_are_masked_and_shown_on_demand() {
    let env = |value: &str| json!([{"name": "PASSWORD", "value": value}]);
    let mut cluster = Cluster::of(1);
    cluster.edit(|spec| spec["template"]["spec"]["containers"][0]["env"] = env("old-secret"));
    settle(&mut cluster);
    let before = snapshot(&cluster);
    cluster.edit(|spec| spec["template"]["spec"]["containers"][0]["env"] = env("new-secret"));
    let wanted = [desired(&cluster)];
    let plan = planned(&before, &wanted);
    let change = &plan.daemon_sets[0].changes[0];
    assert!(change.masked);
    assert_eq!(change.path, "spec.template.spec.containers[c].env[PASSWORD].value");
    assert!(!serde_json::to_string(&plan).unwrap().contains("secret\""));
    assert!(!serde_json::to_string(&plan).unwrap().contains("-secret"));
}
