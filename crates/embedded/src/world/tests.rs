//! A snapshot that is loaded and read back with `ds-plan`'s own reader is unchanged.

use proptest::prelude::*;

use super::*;
use crate::controllers::Chance;
use crate::{Kind, on_virtual_time};
use cluster::{self, Scope};
use daemonset::model::{
    ContainerFailure, NodeReadiness, Pod, PodPhase, PodReadiness, PodTarget, Taint, TaintEffect,
};

fn fleet() -> Snapshot {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fleet/cluster.json");
    cluster::read_recorded(&path).unwrap()
}

/// The snapshot as the program reads it from its embedded cluster.
fn read_back(snapshot: &Snapshot) -> Snapshot {
    let read = on_virtual_time(async {
        let world = World::begin(snapshot, Rehearsal::default()).unwrap();
        world.cluster().snapshot(&Scope::All, Timestamp::UNIX_EPOCH).await.unwrap()
    });
    read.unwrap()
}

fn assert_same(read: &Snapshot, was: &Snapshot) {
    assert_eq!(read.observed_at, was.observed_at);
    assert_eq!(read.cluster.uid, was.cluster.uid);
    assert_eq!(read.nodes, was.nodes);
    assert_eq!(read.daemon_sets, was.daemon_sets);
    assert_eq!(read.revisions, was.revisions);
    assert_eq!(read.namespaces, was.namespaces);
    assert_eq!(read.services, was.services);
    assert_eq!(read.leases, was.leases);
    assert_eq!(read.pods.len(), was.pods.len());
    for (read, was) in read.pods.iter().zip(&was.pods) {
        // The reason why a pod is not Ready is not part of a snapshot.
        let reported = |pod: &Pod| Pod { unready: None, ..pod.clone() };
        assert_eq!(reported(read), reported(was));
    }
}

#[test]
fn the_example_fleet_is_unchanged() {
    let fleet = fleet();
    assert_same(&read_back(&fleet), &fleet);
}

/// Defaults that are added later would change the spec of a pod, which the server rejects.
#[test]
fn an_orphan_of_the_snapshot_is_adopted() {
    let mut fleet = fleet();
    let pod = fleet.pods.iter_mut().find(|it| it.revision_hash().is_some()).unwrap();
    let was = pod.controller.take();
    let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
    let after = on_virtual_time(async {
        let world = World::begin(&fleet, Rehearsal::default()).unwrap();
        tokio::time::sleep(Duration::from_mins(1)).await;
        let store = world.server().store();
        let object = store.get(Kind::Pod, namespace.as_str(), name.as_str()).cloned();
        object.and_then(|it| it.pod().cloned()).unwrap().controller
    });
    assert!(was.is_some());
    assert_eq!(after.unwrap(), was);
}

/// A recording has no tolerations of pods. Daemon pods tolerate that their node is not Ready,
/// whatever their template says.
#[test]
fn no_daemon_pod_is_evicted_from_a_node_that_is_not_ready() {
    let fleet = fleet();
    let unready = |node: &&daemonset::model::Node| {
        node.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
    };
    let node = &fleet.nodes.iter().find(unready).expect("one node of the fleet is lost").name;
    let after = on_virtual_time(async {
        let world = World::begin(&fleet, Rehearsal::default()).unwrap();
        tokio::time::sleep(Duration::from_mins(1)).await;
        world.cluster().snapshot(&Scope::All, Timestamp::UNIX_EPOCH).await.unwrap()
    });
    let running = |snapshot: &Snapshot| {
        let here = snapshot.pods.iter().filter(|pod| pod.node() == Some(node) && !pod.terminating);
        here.filter(|pod| pod.controller.is_some()).count()
    };
    assert_eq!(running(&after.unwrap()), running(&fleet));
    assert_eq!(running(&fleet), 4);
}

/// A part of the fleet with randomly changed fields.
fn muddled(fleet: &Snapshot, seed: u64) -> Snapshot {
    let chance = Chance::new(seed);
    let dice = |sides: u32, words: &[&str]| -> u32 {
        let share = chance.share(words) * f64::from(sides);
        (1..sides).map(|side| u32::from(share >= f64::from(side))).sum()
    };
    let mut snapshot = fleet.clone();
    snapshot.nodes.retain(|node| dice(5, &["keep", node.name.as_str()]) == 0);
    snapshot.pods.retain(|pod| dice(4, &["keep", pod.name.as_str()]) == 0);
    let since = Some((fleet.observed_at - Duration::from_mins(1)).into());
    for node in &mut snapshot.nodes {
        let name = node.name.to_string();
        let (readiness, status, since) = match dice(6, &["ready", &name]) {
            0 => (NodeReadiness::NotReady { since }, "False", since),
            1 => (NodeReadiness::Unknown { since }, "Unknown", since),
            2 => (NodeReadiness::Unknown { since: None }, "Unknown", None),
            _ => (NodeReadiness::Ready, "True", node.created),
        };
        node.readiness = readiness;
        for ready in node.conditions.iter_mut().filter(|it| *it.kind == *"Ready") {
            (ready.status, ready.since) = (status.into(), since);
        }
        node.unschedulable = dice(4, &["cordon", &name]) == 0;
        if dice(3, &["taint", &name]) == 0 {
            let taint = Taint { key: "a".into(), value: "".into(), effect: TaintEffect::NoExecute };
            node.taints = [taint].into();
        }
    }
    for pod in &mut snapshot.pods {
        let name = pod.name.to_string();
        let phases = [
            PodPhase::Pending,
            PodPhase::Succeeded,
            PodPhase::Failed,
            PodPhase::Unknown,
            PodPhase::Running,
        ];
        pod.phase = phases[dice(5, &["phase", &name]) as usize];
        pod.readiness = match dice(4, &["ready", &name]) {
            0 => PodReadiness::NotReady { since: None },
            1 => PodReadiness::NotReady { since },
            2 => PodReadiness::Ready { since: None },
            _ => PodReadiness::Ready { since },
        };
        pod.terminating = dice(4, &["end", &name]) == 0;
        pod.restarts = dice(4, &["restarts", &name]);
        let container_failure = |container: &str, reason: &str| {
            let (container, reason) = (container.into(), reason.into());
            Some(Box::new(ContainerFailure { container, reason, message: "why".into() }))
        };
        pod.container_failure = match dice(6, &["container_failure", &name]) {
            0 => container_failure("", "Unschedulable"),
            1 => container_failure("", "Evicted"),
            2 => container_failure("main", "CrashLoopBackOff"),
            _ => None,
        };
        // A waiting container does not show its previous state.
        let shown = pod.container_failure.as_ref().is_none_or(|it| it.container.is_empty());
        pod.containers_changed = since.filter(|_| shown && dice(2, &["changed", &name]) == 0);
        if dice(6, &["target", &name]) == 0
            && let PodTarget::Bound(node) = &pod.target
        {
            pod.target = PodTarget::Aimed(node.clone());
        }
        if dice(6, &["orphan", &name]) == 0 {
            pod.controller = None;
        }
    }
    snapshot
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// So every plan of it is unchanged, too.
    #[test]
    fn any_cluster_is_unchanged(seed in any::<u64>()) {
        let muddled = muddled(&fleet(), seed);
        assert_same(&read_back(&muddled), &muddled);
    }
}
