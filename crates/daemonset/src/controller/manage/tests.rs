//! The cases of upstream's `daemon_controller_test.go` that `manage` decides.

use serde_json::json;

use super::*;
use crate::controller::test_cluster::{Cluster, OTHERS, OURS, at, labels, node, pod, taint};
use crate::model::{
    PodReadiness, REVISION_HASH_LABEL, TEMPLATE_GENERATION_ANNOTATION, TEMPLATE_GENERATION_LABEL,
};

/// Runs the case under both strategies, as upstream's tests do.
fn under_both_strategies(check: impl Fn(Cluster)) {
    for on_delete in [true, false] {
        let mut cluster = Cluster::of(0);
        if on_delete {
            cluster.set_on_delete();
        }
        check(cluster);
    }
}

/// `count` nodes without labels, then `coloured` ones labelled `color=blue`.
fn add_nodes(cluster: &mut Cluster, count: usize, coloured: usize) {
    cluster.nodes = (0..count + coloured)
        .map(|at| {
            let blue: &[_] = if at < count { &[] } else { &[("color", "blue")] };
            node(&format!("node-{at}"), blue, &[])
        })
        .collect();
}

#[test]
fn missing_pods_are_created() {
    for (name, plain, coloured, template, want) in [
        ("TestSimpleDaemonSetLaunchesPods", 5, 0, json!({}), 5),
        ("TestOneNodeDaemonLaunchesPod", 1, 0, json!({}), 1),
        ("TestNoNodesDoesNothing", 0, 0, json!({}), 0),
        ("TestSelectorDaemonLaunchesPods", 4, 3, json!({"nodeSelector": {"color": "blue"}}), 3),
        ("TestBadSelectorDaemonDoesNothing", 4, 3, json!({"nodeSelector": {"color": "red"}}), 0),
        ("TestNameDaemonSetLaunchesPods", 5, 0, json!({"nodeName": "node-0"}), 1),
        ("TestBadNameDaemonSetDoesNothing", 5, 0, json!({"nodeName": "node-10"}), 0),
        (
            "TestNameAndSelectorDaemonSetLaunchesPods",
            4,
            3,
            json!({"nodeSelector": {"color": "blue"}, "nodeName": "node-6"}),
            1,
        ),
        (
            "TestInconsistentNameSelectorDaemonSetDoesNothing",
            4,
            3,
            json!({"nodeSelector": {"color": "blue"}, "nodeName": "node-0"}),
            0,
        ),
        (
            "TestNodeAffinityDaemonLaunchesPods",
            4,
            3,
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "color", "operator": "In", "values": ["blue"]}]},
                ]},
            }}}),
            3,
        ),
        (
            "TestDaemonSetWithNodeSelectorLaunchesPods (label term or name term)",
            2,
            2,
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "color", "operator": "In", "values": ["blue"]}]},
                    {"matchFields":
                        [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]},
                ]},
            }}}),
            3,
        ),
    ] {
        under_both_strategies(|mut cluster| {
            add_nodes(&mut cluster, plain, coloured);
            cluster.edit(|spec| spec["template"]["spec"] = template.clone());
            assert_eq!(cluster.sync().counts(), (want, 0), "{name}");
            assert_eq!(cluster.sync().counts(), (0, 0), "{name}, a second time");
        });
    }
}

#[test]
fn taints_decide_about_new_pods() {
    let tolerated = json!([{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]);
    for (name, taints, tolerations, host_network, want) in [
        (
            "TestTaintedNodeDaemonDoesNotLaunchIntolerantPod",
            &["dedicated=user1:NoSchedule"][..],
            json!([]),
            false,
            0,
        ),
        (
            "TestTaintedNodeDaemonLaunchesToleratePod",
            &["dedicated=user1:NoSchedule"],
            tolerated.clone(),
            false,
            1,
        ),
        ("TestNodeDaemonLaunchesToleratePod", &[], tolerated, false, 1),
        (
            "TestNotReadyNodeDaemonLaunchesPod",
            &["node.kubernetes.io/not-ready:NoExecute"],
            json!([]),
            false,
            1,
        ),
        (
            "TestUnreachableNodeDaemonLaunchesPod",
            &["node.kubernetes.io/unreachable:NoExecute"],
            json!([]),
            false,
            1,
        ),
        (
            "TestTaintPressureNodeDaemonLaunchesPod",
            &[
                "node.kubernetes.io/disk-pressure:NoSchedule",
                "node.kubernetes.io/memory-pressure:NoSchedule",
                "node.kubernetes.io/pid-pressure:NoSchedule",
            ],
            json!([]),
            false,
            1,
        ),
        (
            "TestUnschedulableNodeDaemonDoesLaunchPod, host network",
            &[
                "node.kubernetes.io/unschedulable:NoSchedule",
                "node.kubernetes.io/network-unavailable:NoSchedule",
            ],
            json!([]),
            true,
            1,
        ),
        (
            "network-unavailable without host network",
            &["node.kubernetes.io/network-unavailable:NoSchedule"],
            json!([]),
            false,
            0,
        ),
    ] {
        under_both_strategies(|mut cluster| {
            cluster.nodes = vec![node("tainted", &[], taints)];
            cluster.edit(|spec| {
                spec["template"]["spec"]["tolerations"] = tolerations.clone();
                spec["template"]["spec"]["hostNetwork"] = json!(host_network);
            });
            assert_eq!(cluster.sync().counts(), (want, 0), "{name}");
        });
    }
}

#[test]
fn taints_decide_about_running_pods() {
    for (name, taint_text, want) in [
        ("TestNoScheduleTaintedDoesntEvicitRunningIntolerantPod", "dedicated=u:NoSchedule", (0, 0)),
        ("TestNoExecuteTaintedDoesEvicitRunningIntolerantPod", "dedicated=u:NoExecute", (0, 1)),
    ] {
        under_both_strategies(|mut cluster| {
            cluster.nodes = vec![node("tainted", &[], &[taint_text])];
            cluster.add_pods("tainted", OURS, 1);
            assert_eq!(cluster.sync().counts(), want, "{name}");
        });
    }
}

#[test]
fn existing_pods() {
    for (name, selector, pods, want) in [
        (
            "TestDealsWithExistingPods",
            json!(null),
            &[("node-1", OURS, 1), ("node-2", OURS, 2), ("node-3", OURS, 5), ("node-4", OTHERS, 2)]
                [..],
            (2, 5),
        ),
        (
            "TestSelectorDaemonDeletesUnselectedPods",
            json!({"color": "blue"}),
            &[
                ("node-0", OTHERS, 2),
                ("node-1", OURS, 3),
                ("node-1", OTHERS, 1),
                ("node-4", OURS, 1),
            ],
            (5, 4),
        ),
        (
            "TestSelectorDaemonDealsWithExistingPods",
            json!({"color": "blue"}),
            &[
                ("node-0", OURS, 1),
                ("node-1", OURS, 3),
                ("node-1", OTHERS, 2),
                ("node-2", OURS, 4),
                ("node-6", OURS, 13),
                ("node-7", OTHERS, 4),
                ("node-9", OURS, 1),
                ("node-9", OTHERS, 1),
            ],
            (3, 20),
        ),
    ] {
        under_both_strategies(|mut cluster| {
            let nodes = if selector.is_null() { (5, 0) } else { (5, 5) };
            add_nodes(&mut cluster, nodes.0, nodes.1);
            cluster.edit(|spec| spec["template"]["spec"]["nodeSelector"] = selector.clone());
            for &(node, pairs, count) in pods {
                cluster.add_pods(node, pairs, count);
            }
            assert_eq!(cluster.sync().counts(), want, "{name}");
        });
    }
}

#[test]
fn surge_deals_with_existing_pods() {
    let mut cluster = Cluster::of(5);
    cluster.set_limits(&json!(0), &json!(1));
    for (node, pairs, count) in
        [("node-1", OURS, 1), ("node-2", OURS, 2), ("node-3", OURS, 5), ("node-4", OTHERS, 2)]
    {
        cluster.add_pods(node, pairs, count);
    }
    assert_eq!(cluster.sync().counts(), (2, 5), "TestSurgeDealsWithExistingPods");
}

/// Makes a pod that was added with the current hash an outdated one.
fn make_old(pod: &mut Pod, created: i64, readiness: PodReadiness) {
    pod.labels = labels(OURS);
    pod.created = Some(at(created).into());
    pod.readiness = readiness;
}

const READY: PodReadiness = PodReadiness::Ready { since: None };

/// One new and two old pods on node-1, one new on node-2, nothing on three others.
fn surging(new_ready_since: Option<i64>, oldest: PodReadiness) -> Cluster {
    let mut cluster = Cluster::of(5);
    cluster.set_limits(&json!(0), &json!(1));
    let new = cluster.add_pods("node-1", OURS, 3);
    cluster.pods[new].created = Some(at(100).into());
    if let Some(since) = new_ready_since {
        cluster.pods[new].readiness = PodReadiness::Ready { since: Some(at(since).into()) };
    }
    make_old(&mut cluster.pods[new + 1], 50, oldest);
    make_old(&mut cluster.pods[new + 2], 60, READY);
    cluster.add_pods("node-2", OURS, 1);
    cluster
}

#[test]
fn surge_keeps_an_old_pod_while_it_is_needed() {
    for (name, min_ready, now, new_ready_since, oldest, want, deleted) in [
        ("TestSurgePreservesReadyOldPods", 0, 1000, None, READY, (3, 1), &["-003"][..]),
        (
            "TestSurgeDeletesUnreadyOldPods",
            0,
            1000,
            None,
            PodReadiness::NotReady { since: None },
            (3, 2),
            &["-003", "-002"],
        ),
        (
            "TestSurgePreservesOldReadyWithUnsatisfiedMinReady",
            15,
            60,
            Some(50),
            READY,
            (3, 1),
            &["-003"],
        ),
        (
            "TestSurgeDeletesOldReadyWithUnsatisfiedMinReady",
            15,
            70,
            Some(50),
            READY,
            (3, 2),
            &["-003", "-002"],
        ),
    ] {
        let mut cluster = surging(new_ready_since, oldest);
        cluster.edit(|spec| spec["minReadySeconds"] = json!(min_ready));
        cluster.now = at(now);
        let seen = cluster.sync();
        assert_eq!(seen.counts(), want, "{name}");
        let suffixes: Vec<_> = seen.deleted.iter().map(|pod| &pod[pod.len() - 4..]).collect();
        assert_eq!(suffixes, deleted, "{name}");
    }
}

#[test]
fn surge_creates_new_pod_when_at_max_surge_and_old_pod_deleted() {
    let mut cluster = Cluster::of(5);
    cluster.set_limits(&json!(0), &json!(1));
    let new = cluster.add_pods("node-0", OURS, 2);
    cluster.pods[new].created = Some(at(100).into());
    make_old(&mut cluster.pods[new + 1], 50, READY);
    for at in 1..5 {
        let old = cluster.add_pods(&format!("node-{at}"), OURS, 1);
        make_old(&mut cluster.pods[old], 1, READY);
        cluster.pods[old].terminating = at == 4;
    }
    let seen = cluster.sync();
    assert_eq!((seen.created, seen.deleted), (vec!["node-4".to_owned()], vec![]));
}

#[test]
fn two_pods_on_a_node_are_distinguished_by_hash_not_by_generation() {
    let mut cluster = Cluster::of(1);
    cluster.set_limits(&json!(0), &json!(1));
    cluster.daemon_set.annotations = labels([(TEMPLATE_GENERATION_ANNOTATION, "7")]);
    let pods = cluster.add_pods("node-0", OURS, 2);
    for (created, pod) in [(100, pods), (50, pods + 1)] {
        cluster.pods[pod].created = Some(at(created).into());
        cluster.pods[pod].readiness = READY;
    }
    // By its generation it would count as updated, and so as surplus.
    let generation = [(TEMPLATE_GENERATION_LABEL, "7")];
    cluster.pods[pods + 1].labels = OURS.into_iter().chain(generation).collect();
    cluster.with_view(|view| {
        let plan = manage(view, FailedPods::Unknown);
        let by = view.pods.at(0)[1].name.clone();
        assert_eq!(plan.delete[0].reason, DeleteReason::Replaced { by });
    });
}

#[test]
fn daemon_kill_failed_pods() {
    for (failed, normal, creates, deletes, events) in
        [(0, 1, 0, 0, 0), (0, 0, 1, 0, 0), (1, 0, 0, 1, 1), (1, 3, 0, 3, 1)]
    {
        under_both_strategies(|mut cluster| {
            add_nodes(&mut cluster, 1, 0);
            let first = cluster.add_pods("node-0", OURS, failed);
            for pod in &mut cluster.pods[first..] {
                pod.phase = PodPhase::Failed;
            }
            cluster.add_pods("node-0", OURS, normal);
            let seen = cluster.sync();
            let got = (seen.created.len(), seen.deleted.len(), seen.events);
            assert_eq!(got, (creates, deletes, events), "{failed} failed, {normal} normal");
        });
    }
}

#[test]
fn daemon_kill_failed_pods_backoff() {
    under_both_strategies(|mut cluster| {
        add_nodes(&mut cluster, 1, 0);
        let fail_again = |cluster: &mut Cluster| {
            cluster.pods.clear();
            let failed = cluster.add_pods("node-0", OURS, 1);
            cluster.pods[failed].phase = PodPhase::Failed;
        };
        cluster.now = at(0);
        fail_again(&mut cluster);
        // The first sync observes the generation, which is part of the key.
        cluster.daemon_set.status.observed_generation = cluster.daemon_set.generation;
        for (millisecond, deletes) in
            [(0, 1), (999, 0), (1000, 1), (2999, 0), (3000, 1), (6999, 0), (7000, 1)]
        {
            cluster.now = Timestamp::from_millisecond(millisecond).unwrap();
            fail_again(&mut cluster);
            assert_eq!(cluster.sync().counts(), (0, deletes), "at {millisecond} ms");
        }
    });
}

#[test]
fn one_failed_pod_per_node_is_deleted_at_a_time() {
    let mut cluster = Cluster::of(1);
    for failed in [0, 1] {
        cluster.add_pods("node-0", OURS, 1);
        cluster.pods[failed].phase = PodPhase::Failed;
    }
    cluster.with_view(|view| {
        let plan = manage(view, FailedPods::Unknown);
        assert_eq!((plan.delete.len(), plan.create.len()), (1, 0));
        assert_eq!(plan.waiting[0].reason, WaitReason::BackOff { seconds: 1 });
    });
}

#[test]
fn surge_creates_next_to_failed_pods() {
    let mut cluster = Cluster::of(1);
    cluster.set_limits(&json!(0), &json!(1));
    cluster.add_pods("node-0", OURS, 1);
    cluster.pods[0].phase = PodPhase::Failed;
    assert_eq!(cluster.sync().counts(), (1, 1));
}

#[test]
fn succeeded_pods_are_deleted_without_back_off() {
    under_both_strategies(|mut cluster| {
        add_nodes(&mut cluster, 1, 0);
        for _ in 0..2 {
            cluster.pods.clear();
            cluster.add_pods("node-0", OURS, 1);
            cluster.pods[0].phase = PodPhase::Succeeded;
            let seen = cluster.sync();
            assert_eq!((seen.counts(), seen.events), ((0, 1), 1));
        }
        assert_eq!(cluster.sync().counts(), (1, 0), "TestSimpleDaemonSetRestartsPods…");
    });
}

#[test]
fn daemon_set_respects_termination() {
    under_both_strategies(|mut cluster| {
        add_nodes(&mut cluster, 1, 0);
        cluster.add_pods("node-0", OURS, 1);
        cluster.pods[0].terminating = true;
        assert_eq!(cluster.sync().counts(), (0, 0));
        cluster.with_view(|view| {
            let plan = manage(view, FailedPods::Unknown);
            assert_eq!(plan.waiting[0].reason, WaitReason::Terminating);
        });
        // …unless it has also ended.
        cluster.pods[0].phase = PodPhase::Failed;
        assert_eq!(cluster.sync().counts(), (1, 0));
    });
}

#[test]
fn delete_unscheduled_pod_for_not_existing_node() {
    under_both_strategies(|mut cluster| {
        add_nodes(&mut cluster, 1, 0);
        cluster.add_pods("node-0", OURS, 1);
        cluster.add_pods("node-1", OURS, 1);
        let aimed = cluster.add_pods("node-2", OURS, 1);
        cluster.pods[aimed].target = PodTarget::Aimed("node-2".into());
        let seen = cluster.sync();
        assert_eq!((seen.created.len(), seen.deleted), (0, vec!["foo-node-2-003".to_owned()]));
    });
}

#[test]
fn pods_of_a_deleted_daemon_set_are_kept_in_service() {
    let mut cluster = Cluster::of(2);
    cluster.pods.push(pod("left-behind", "node-0"));
    assert_eq!(cluster.sync_once().0.created, ["node-1"]);
    assert_eq!(cluster.pods[0].controller, Some(cluster.reference()));
}

#[test]
fn misplaced_pods_are_deleted_with_the_rule_as_reason() {
    let mut cluster = Cluster::of(2);
    cluster.edit(|spec| spec["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"}));
    cluster.nodes[1] = node("node-1", &[("disk", "hdd")], &[]);
    cluster.add_pods("node-1", OURS, 2);
    cluster.pods[1].terminating = true;
    cluster.with_view(|view| {
        let plan = manage(view, FailedPods::Unknown);
        let reasons: Vec<_> = plan.delete.iter().map(|d| d.reason.to_string()).collect();
        assert_eq!(reasons, ["nodeSelector disk=ssd does not match (node has disk=hdd)"]);
    });
}

#[test]
fn the_oldest_pod_is_kept() {
    let mut cluster = Cluster::of(1);
    cluster.add_pods("node-0", OURS, 4);
    for (pod, created) in cluster.pods.iter_mut().zip([40, 30, 30, 10]) {
        pod.created = Some(at(created).into());
    }
    cluster.pods[3].target = PodTarget::Aimed("node-0".into()); // older, but not bound
    cluster.pods[1].labels = labels([(REVISION_HASH_LABEL, "another")]);
    cluster.pods[1].labels = cluster.pods[1].labels.iter().chain(OURS).collect();
    cluster.with_view(|view| {
        let plan = manage(view, FailedPods::Unknown);
        let gone: Vec<_> = plan.delete.iter().map(|d| d.pod.name.as_str()).collect();
        assert_eq!(gone, ["foo-node-0-003", "foo-node-0-001", "foo-node-0-004"]);
        let keeps = DeleteReason::Surplus { keeps: "foo-node-0-002".into() };
        assert!(plan.delete.iter().all(|deletion| deletion.reason == keeps));
    });
}

#[test]
fn an_untolerated_no_schedule_taint_keeps_surplus_rules() {
    let mut cluster = Cluster::of(1);
    cluster.nodes[0].taints = Box::new([taint("gpu:NoSchedule")]);
    cluster.add_pods("node-0", OURS, 2);
    assert_eq!(cluster.sync().counts(), (0, 1), "surplus is deleted");
    cluster.pods[0].phase = PodPhase::Failed;
    assert_eq!(cluster.sync().counts(), (0, 1), "failed is deleted");
    assert_eq!(cluster.sync().counts(), (0, 0), "and not recreated");
}
