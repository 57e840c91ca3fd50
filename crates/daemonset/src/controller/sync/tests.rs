//! Whole syncs: syncs without changes, the order of changes, and that repeated syncs end with one
//! updated pod on every eligible node, within the budget at all times.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::controller::history::Current;
use crate::controller::limits::Limits;
use crate::controller::reasons::DeleteReason;
use crate::controller::test_cluster::{Cluster, OURS, Seen, labels, pod, taint};
use crate::model::{NodeName, PodPhase, PodTarget, REVISION_HASH_LABEL};

#[test]
fn pod_is_not_deleted_by_daemonset_with_empty_label_selector() {
    let mut cluster = Cluster::of(1);
    cluster.edit(|spec| {
        spec["selector"] = json!({});
        spec["template"]["spec"]["nodeSelector"] = json!({"foo": "bar"});
    });
    cluster.pods.push(pod("unrelated", "node-0"));
    assert_eq!(cluster.sync(), Seen { events: 1, ..Seen::default() });
    assert!(cluster.revisions.is_empty());
}

#[test]
fn dont_do_anything_if_being_deleted() {
    let mut cluster = Cluster::of(5);
    cluster.daemon_set.terminating = true;
    cluster.pods.push(pod("orphan", "node-0"));
    assert_eq!(cluster.sync(), Seen::default());
    assert!(cluster.revisions.is_empty() && cluster.pods[0].controller.is_none());
    assert_eq!(cluster.daemon_set.status, DaemonSetStatus::default());
}

#[test]
fn simple_daemon_set_updates_status_after_launching_pods() {
    let mut cluster = Cluster::of(5);
    cluster.sync();
    cluster.sync();
    let status = cluster.daemon_set.status;
    assert_eq!(status.observed_generation, cluster.daemon_set.generation);
    assert_eq!(status.updated_number_scheduled, 5);
    cluster.with_effects(|effects| assert_eq!(effects.status, None, "nothing to write"));
}

#[test]
fn outstanding_expectations_change_no_pods() {
    let mut cluster = Cluster::of(3);
    cluster.daemon_set.status.observed_generation = 0;
    let fleet = Fleet::new(&cluster.nodes);
    let placements = crate::controller::placement::Judge::judge_all(
        &cluster.daemon_set.spec.template.placement,
        &cluster.nodes,
    );
    let pods = OwnerIndex::new(&cluster.pods);
    let outcome = sync(&Input {
        owner: Owner::from(&cluster.daemon_set),
        fleet: &fleet,
        placements: &placements,
        pods: &pods,
        revisions: &cluster.revisions,
        matching: Matching::Exact,
        expectations: Expectations::Outstanding,
        failed_pods: FailedPods::Unknown,
        now: cluster.now,
    });
    let Outcome::Synced(effects) = outcome else { panic!("{outcome:?}") };
    assert!(effects.changes.is_none());
    assert!(matches!(effects.history.current, Current::New(_)));
    let status = effects.status.unwrap();
    assert_eq!((status.desired_number_scheduled, status.observed_generation), (3, 0));
}

#[test]
fn rolling_waits_for_the_changes_of_manage() {
    let mut cluster = Cluster::of(3);
    cluster.sync();
    cluster.make_all_ready();
    cluster.set_image("foo2/bar2");
    cluster.pods.remove(0);
    cluster.with_effects(|effects| {
        let changes = effects.changes.unwrap();
        assert_eq!((changes.manage.create.len(), changes.rolling), (1, Rolling::AfterManage));
    });
}

#[test]
fn a_failed_update_prunes_nothing() {
    let mut cluster = Cluster::of(2);
    cluster.set_limits(&json!(0), &json!(1));
    cluster.edit(|spec| spec["revisionHistoryLimit"] = json!(0));
    for image in ["a", "b"] {
        cluster.set_image(image);
        cluster.sync_once();
    }
    let second = cluster.hash();
    cluster.pods.retain(|pod| pod.has_hash(&second));
    cluster.set_image("c");
    cluster.make_all_ready();
    let prune = |cluster: &Cluster| {
        cluster.with_effects(|effects| {
            let changes = effects.changes.unwrap();
            (changes.prune.len(), matches!(changes.rolling, Rolling::Failed(_)))
        })
    };
    assert_eq!(cluster.revisions.len(), 2);
    assert_eq!(prune(&cluster), (1, false), "of two, one is alive");
    let lost = cluster.add_pods("gone", OURS, 1);
    cluster.pods[lost].labels = labels(OURS);
    assert_eq!(prune(&cluster), (0, true));
}

#[test]
fn a_pod_that_has_ended_and_is_being_deleted_keeps_its_revision() {
    let mut cluster = Cluster::of(1);
    cluster.edit(|spec| spec["revisionHistoryLimit"] = json!(0));
    cluster.sync_once();
    cluster.pods[0].phase = PodPhase::Failed;
    cluster.pods[0].terminating = true;
    cluster.set_image("foo2/bar2");
    assert_eq!(cluster.sync_once().0.counts(), (1, 0), "it does not block its successor");
    assert_eq!(cluster.revisions.len(), 2);
    cluster.pods.retain(|pod| !pod.terminating);
    cluster.sync_once();
    assert_eq!(cluster.revisions.len(), 1);
}

#[test]
fn a_name_collision_costs_one_sync() {
    let mut cluster = Cluster::of(1);
    cluster.sync();
    cluster.pods.clear();
    let mut squatter = cluster.revisions.remove(0);
    squatter.data = Arc::new(json!({"spec": {"template": {}}}));
    Arc::make_mut(squatter.controller.as_mut().unwrap()).uid = "another".into();
    cluster.revisions.push(squatter);
    assert_eq!(cluster.sync_once().0.counts(), (0, 0));
    assert_eq!(cluster.daemon_set.status.collision_count, Some(1));
    assert_eq!(cluster.sync_once().0.counts(), (1, 0));
    assert_eq!(cluster.revisions.len(), 2);
}

#[test]
fn a_rollback_changes_no_pod_that_was_not_updated() {
    let mut cluster = Cluster::of(3);
    cluster.sync();
    cluster.make_all_ready();
    let first = cluster.revisions[0].name.clone();
    cluster.set_image("foo2/bar2");
    cluster.sync_once(); // one is deleted
    cluster.set_image("foo/bar");
    assert_eq!(cluster.sync_once().0.counts(), (1, 0));
    let numbers: Vec<_> = cluster.revisions.iter().map(|r| (r.name == first, r.number.0)).collect();
    assert!(numbers.contains(&(true, 3)) && numbers.contains(&(false, 2)), "{numbers:?}");
    cluster.make_all_ready();
    assert_eq!(cluster.sync_once().0.counts(), (0, 0));
}

/// Any cluster: nodes with and without taints, old and new pods, healthy and unhealthy ones.
fn any_cluster() -> impl Strategy<Value = Cluster> {
    let pods = prop::collection::vec((0..9_usize, 0..64_u8), 0..16);
    let limits = prop_oneof![
        (1..5_u32).prop_map(|n| (json!(n), json!(0))),
        (1..5_u32).prop_map(|n| (json!(0), json!(n))),
        Just((json!("30%"), json!(0))),
        Just((json!(0), json!("30%"))),
    ];
    let taints = prop::collection::vec(0..6_u8, 8);
    (pods, limits, taints).prop_map(|(pods, (max_unavailable, max_surge), taints)| {
        let mut cluster = Cluster::of(8);
        cluster.set_limits(&max_unavailable, &max_surge);
        for (node, taints) in cluster.nodes.iter_mut().zip(taints) {
            node.taints = match taints {
                0 => Box::new([taint("gpu:NoSchedule")]),
                1 => Box::new([taint("gpu:NoExecute")]),
                _ => Box::new([]),
            };
        }
        for (node, bits) in pods {
            let at = cluster.add_pods(&format!("node-{node}"), OURS, 1);
            let added = &mut cluster.pods[at];
            if bits & 1 != 0 {
                added.labels = labels(OURS).iter().chain([(REVISION_HASH_LABEL, "old")]).collect();
            }
            if bits & 2 != 0 {
                added.controller = None;
            }
            if bits & 4 != 0 {
                added.target = PodTarget::Aimed(format!("node-{node}").as_str().into());
            }
            added.phase = match bits >> 3 {
                0 => PodPhase::Failed,
                1 => PodPhase::Succeeded,
                2 => PodPhase::Pending,
                _ => PodPhase::Running,
            };
            if bits & 32 != 0 {
                cluster.make_ready(1, |pod| pod.phase == PodPhase::Running);
            }
        }
        cluster
    })
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("strategy", &self.daemon_set.spec.update_strategy)
            .field("nodes", &self.nodes)
            .field("pods", &self.pods)
            .finish_non_exhaustive()
    }
}

/// Nodes that should run a pod.
fn eligible(cluster: &Cluster) -> BTreeSet<NodeName> {
    let untainted = cluster.nodes.iter().filter(|node| node.taints.is_empty());
    untainted.map(|node| node.name.clone()).collect()
}

/// Nodes among `of` with a pod that is available.
fn available(cluster: &Cluster, of: &BTreeSet<NodeName>) -> BTreeSet<NodeName> {
    let available = cluster.pods.iter().filter(|pod| pod.serves(0, cluster.now));
    available.filter_map(|pod| pod.node()).filter(|node| of.contains(*node)).cloned().collect()
}

/// Syncs, with all pods healthy in between, until nothing changes.
fn settle(cluster: &mut Cluster, mut after_each: impl FnMut(&Cluster)) {
    for _ in 0..200 {
        cluster.make_all_ready();
        cluster.now = cluster.now.saturating_add(jiff::SignedDuration::from_mins(31)).unwrap();
        let (seen, _) = cluster.sync_once();
        after_each(cluster);
        // As the pod garbage collector does for bound pods of vanished nodes.
        let exists = |pod: &Pod| cluster.nodes.iter().any(|node| Some(&node.name) == pod.node());
        let kept: Vec<_> = cluster.pods.iter().filter(|pod| exists(pod)).cloned().collect();
        let collected = kept.len() < cluster.pods.len();
        cluster.pods = kept;
        if seen.counts() == (0, 0) && !collected {
            return;
        }
    }
    panic!("does not converge: {cluster:?}");
}

proptest! {
    #[test]
    fn syncing_on_ends_with_one_updated_pod_on_every_eligible_node(mut cluster in any_cluster()) {
        settle(&mut cluster, |_| ());
        let hash = cluster.hash();
        for node in &cluster.nodes {
            let pods: Vec<_> = cluster.pods.iter().filter(|p| p.node() == Some(&node.name)).collect();
            if node.taints.is_empty() {
                prop_assert_eq!(pods.len(), 1, "{}", node.name);
                prop_assert!(pods[0].has_hash(&hash));
            } else if node.taints[0].effect == crate::model::TaintEffect::NoExecute {
                prop_assert_eq!(pods.len(), 0, "{}", node.name);
            }
        }
    }

    /// In a healthy fleet, a new template never makes more nodes unavailable than allowed.
    #[test]
    fn a_healthy_rollout_stays_within_the_budget(mut cluster in any_cluster()) {
        settle(&mut cluster, |_| ());
        cluster.set_image("next");
        let eligible = eligible(&cluster);
        let desired = u32::try_from(eligible.len()).unwrap();
        let limits = Limits::of(&cluster.daemon_set.spec.update_strategy, desired).unwrap();
        settle(&mut cluster, |cluster| {
            let missing = eligible.len() - available(cluster, &eligible).len();
            assert!(missing <= limits.max_unavailable as usize, "{missing} of {limits:?}");
            let extra = cluster.pods.len().saturating_sub(cluster.nodes.len());
            assert!(extra <= limits.max_surge as usize, "{extra} of {limits:?}");
        });
    }

    /// In any cluster, rolling deletes no available pod beyond the budget.
    #[test]
    fn an_update_never_takes_available_pods_beyond_the_budget(mut cluster in any_cluster()) {
        cluster.sync_once();
        cluster.make_ready(5, |_| true);
        cluster.set_image("next");
        cluster.with_view(|view| {
            let Ok(Some(update)) = rolling_update(view) else { return };
            let chosen = update.delete.iter().filter(|deletion| match deletion.reason {
                DeleteReason::Outdated { .. } => true,
                DeleteReason::OutdatedNotAvailable => {
                    assert!(!view.is_available(deletion.pod));
                    false
                }
                _ => false,
            });
            let chosen = u32::try_from(chosen.count()).unwrap();
            if let rolling_update::Usage::Unavailable { nodes } = update.usage {
                let room = update.limits.max_unavailable.saturating_sub(nodes);
                assert!(chosen <= room, "{chosen} of {room}");
            }
        });
    }
}
