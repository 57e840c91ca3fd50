//! Checks that the plan has a reason for each delete: the plan of the live cluster at that moment.

use daemonset::model::{
    ClusterInfo, Coverage, DaemonSet, DesiredDaemonSet, NamespaceName, Node, Pod, Snapshot,
};
use embedded::{Kind, Store};
use jiff::Timestamp;
use planner::digest::template_digest;
use planner::plan::{self, Detail, Input, ShownValues};

use crate::cluster::NAMESPACE;
use crate::objects::pods;

/// The codes of the plan's reasons to delete a pod.
const REASONS: [&str; 7] = [
    "outdated",
    "deletedNotRecreated",
    "notEligible",
    "surplus",
    "superseded",
    "failed",
    "adopted",
];

/// The code that the plan gives a pod if it is not a reason to delete it; `None` if it is one.
/// `pod` is the pod before its deletion, with its node as the program may still see it, if that has
/// changed.
pub(crate) fn none(
    (pod, former): (&Pod, Option<&Node>),
    live: &DaemonSet,
    manifests: &[DesiredDaemonSet],
    store: &Store,
    now: Timestamp,
) -> Option<&'static str> {
    let digest = template_digest(live.spec.template.raw());
    let is_live = |it: &&DesiredDaemonSet| {
        it.key == live.key && template_digest(it.spec.template.raw()) == digest
    };
    // The template of another client is in no manifest.
    let desired = manifests.iter().find(is_live)?.clone();
    let mut snapshot = snapshot(pod, live, store, now);
    let found = other(pod, &snapshot, &desired)?;
    if let Some(former) = former {
        snapshot.nodes.retain(|node| node.name != former.name);
        snapshot.nodes.push(former.clone());
        snapshot.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        other(pod, &snapshot, &desired)?;
    }
    Some(found)
}

/// The code that the plan of this cluster gives a pod, if it is not a reason to delete it.
fn other(pod: &Pod, snapshot: &Snapshot, desired: &DesiredDaemonSet) -> Option<&'static str> {
    let input = Input {
        detail: Detail { all_nodes: true, show_values: ShownValues::None },
        ..Input::of(snapshot, std::slice::from_ref(desired))
    };
    let plan = plan::plan(input);
    let nodes = plan.daemon_sets.iter().flat_map(|one| &one.nodes);
    let planned = nodes.flat_map(|node| &node.pods).find(|it| it.uid == pod.uid);
    let code = planned.map_or("not there", |it| it.reason.reason.code());
    (!REASONS.contains(&code)).then_some(code)
}

fn snapshot(pod: &Pod, live: &DaemonSet, store: &Store, now: Timestamp) -> Snapshot {
    let of = |kind| store.objects(kind, Some(NAMESPACE));
    let others = pods(store).filter(|it| it.uid != pod.uid).cloned();
    let mut pods: Vec<Pod> = others.chain([pod.clone()]).collect();
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    let mut nodes: Vec<_> =
        store.objects(Kind::Node, None).filter_map(|it| it.node()).cloned().collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Snapshot {
        unreadable: Vec::new(),
        cluster: ClusterInfo::default(),
        observed_at: now,
        nodes,
        pods,
        daemon_sets: vec![live.clone()],
        revisions: of(Kind::ControllerRevision).filter_map(|it| it.revision()).cloned().collect(),
        namespaces: Vec::new(),
        services: Vec::new(),
        leases: Vec::new(),
        priority_classes: std::collections::BTreeMap::new(),
        approvals: std::collections::BTreeMap::new(),
        records_beside: std::collections::BTreeSet::new(),
        coverage: Coverage {
            scope: Some([NamespaceName::from(NAMESPACE)].into()),
            managed_fields: true,
            namespaces: false,
            services: false,
            leases: false,
            records: true,
            masked: None,
        },
    }
}
