//! Upstream's sequences of syncs (`update_test.go`), the surge situations of
//! `daemon_controller_test.go`, and the counts of unhealthy fleets.

use serde_json::json;

use super::*;
use crate::controller::test_cluster::{Cluster, OURS, at, pod, taint};
use crate::model::{PodReadiness, PodTarget, REVISION_HASH_LABEL};

/// A cluster whose pods all run the first template.
fn deployed(nodes: usize) -> Cluster {
    let mut cluster = Cluster::of(nodes);
    assert_eq!(cluster.sync().counts(), (nodes, 0));
    cluster
}

/// As [`deployed`], with all pods ready.
fn healthy(nodes: usize) -> Cluster {
    let mut cluster = deployed(nodes);
    cluster.make_all_ready();
    cluster
}

/// Runs a sync for each pair of creates and deletes.
fn expect(cluster: &mut Cluster, name: &str, want: &[(usize, usize)]) {
    for (at, want) in want.iter().enumerate() {
        let seen = cluster.sync();
        assert_eq!(seen.counts(), *want, "{name}, sync {at}: {seen:?}");
    }
}

#[test]
fn daemon_set_updates_pods() {
    let mut cluster = healthy(5);
    cluster.set_image("foo2/bar2");
    cluster.set_limits(&json!(2), &json!(0));
    for wave in [&[(0, 2), (2, 0)], &[(0, 2), (2, 0)], &[(0, 1), (1, 0)]] {
        expect(&mut cluster, "TestDaemonSetUpdatesPods", wave);
        cluster.make_all_ready();
    }
    expect(&mut cluster, "TestDaemonSetUpdatesPods", &[(0, 0)]);
}

#[test]
fn daemon_set_updates_pods_with_max_surge() {
    let mut cluster = healthy(5);
    cluster.set_image("foo2/bar2");
    cluster.set_limits(&json!(0), &json!(2));
    for wave in [(2, 0), (2, 2), (1, 2), (0, 1)] {
        expect(&mut cluster, "TestDaemonSetUpdatesPodsWithMaxSurge", &[wave, (0, 0)]);
        cluster.make_all_ready();
    }
}

#[test]
fn daemon_set_updates_pods_not_match_taints_with_max_surge() {
    let mut cluster = Cluster::of(5);
    cluster.set_limits(&json!(0), &json!(1));
    let control_plane = "node-role.kubernetes.io/control-plane";
    cluster.edit(|spec| {
        let tolerations = json!([{"key": control_plane, "operator": "Exists"}]);
        spec["template"]["spec"]["tolerations"] = tolerations;
    });
    cluster.nodes[0].taints = Box::new([taint(&format!("{control_plane}:NoSchedule"))]);
    let name = "TestDaemonSetUpdatesPodsNotMatchTainstWithMaxSurge";
    expect(&mut cluster, name, &[(5, 0)]);
    cluster.make_all_ready();
    cluster.edit(|spec| spec["template"]["spec"]["tolerations"] = json!(null));
    for wave in [(1, 1), (1, 1), (1, 1), (1, 1), (0, 1)] {
        expect(&mut cluster, name, &[wave, (0, 0)]);
        cluster.make_all_ready();
    }
}

#[test]
fn daemon_set_updates_when_new_pod_is_not_ready() {
    let mut cluster = healthy(5);
    cluster.set_image("foo2/bar2");
    cluster.set_limits(&json!(3), &json!(0));
    let name = "TestDaemonSetUpdatesWhenNewPodIsNotReady";
    expect(&mut cluster, name, &[(0, 3), (3, 0), (0, 0)]);
}

#[test]
fn daemon_set_updates_some_old_pods_not_ready() {
    let mut cluster = healthy(5);
    cluster.set_limits(&json!(2), &json!(0));
    for image in ["foo2/bar2", "foo2/bar3"] {
        cluster.set_image(image);
        let name = "TestDaemonSetUpdatesSomeOldPodsNotReady";
        expect(&mut cluster, name, &[(0, 2), (2, 0), (0, 0)]);
    }
    assert_eq!(cluster.pods.iter().filter(|pod| pod.is_ready()).count(), 3);
}

#[test]
fn daemon_set_updates_save_old_healthy_pods() {
    let name = "TestDaemonSetUpdatesSaveOldHealthyPods";
    let mut cluster = healthy(20);
    cluster.set_image("foo2/bar2");
    cluster.set_limits(&json!(10), &json!(0));
    expect(&mut cluster, name, &[(0, 10), (10, 0), (0, 0)]);
    let ready = |cluster: &Cluster| -> Vec<_> {
        let ready = cluster.pods.iter().filter(|pod| pod.is_ready());
        ready.map(|pod| pod.name.clone()).collect()
    };
    let healthy = ready(&cluster);
    for budget in 0..10 {
        cluster.set_image(&format!("foo2/bar3-{budget}"));
        cluster.set_limits(&json!(budget), &json!(0));
        expect(&mut cluster, name, &[(0, 10), (10, 0), (0, 0)]);
        assert_eq!(ready(&cluster), healthy, "budget {budget}");
    }
    cluster.set_image("foo2/bar4");
    cluster.set_limits(&json!(11), &json!(0));
    expect(&mut cluster, name, &[(0, 11), (11, 0), (0, 0)]);
    assert_eq!(ready(&cluster).len(), 9);
}

#[test]
fn daemon_set_updates_all_old_not_ready_pods_and_new_not_ready_pods() {
    let name = "TestDaemonSetUpdatesAllOldNotReadyPodsAndNewNotReadyPods";
    let mut cluster = healthy(100);
    let old = cluster.hash();
    cluster.set_image("foo2/bar2");
    cluster.set_limits(&json!(10), &json!(0));
    for _ in 0..10 {
        expect(&mut cluster, name, &[(0, 10), (10, 0)]);
        cluster.make_all_ready();
    }
    expect(&mut cluster, name, &[(0, 0)]);
    for (at, pod) in cluster.pods.iter_mut().enumerate() {
        if at >= 10 {
            pod.readiness = PodReadiness::NotReady { since: None };
        }
        if at < 12 {
            let hash = [(REVISION_HASH_LABEL, old.as_str())];
            pod.labels = pod.labels.iter().chain(hash).collect();
        }
    }
    let unavailable_old: Vec<_> = cluster.pods[10..12].iter().map(|p| p.name.clone()).collect();
    expect(&mut cluster, name, &[(0, 2), (2, 0), (0, 0)]);
    assert!(!cluster.pods.iter().any(|pod| unavailable_old.contains(&pod.name)));
}

#[test]
fn daemon_set_updates_all_old_pods_not_ready() {
    let mut cluster = deployed(5);
    cluster.set_image("foo2/bar2");
    cluster.set_limits(&json!(3), &json!(0));
    expect(&mut cluster, "TestDaemonSetUpdatesAllOldPodsNotReady", &[(0, 5), (5, 0), (0, 0)]);
}

#[test]
fn daemon_set_updates_all_old_pods_not_ready_max_surge() {
    let mut cluster = deployed(5);
    cluster.set_image("foo2/bar2");
    cluster.set_limits(&json!(0), &json!(3));
    let expect_at = |cluster: &mut Cluster, second, want| {
        cluster.now = at(second);
        let seen = cluster.sync();
        assert_eq!(seen.counts(), want, "at {second}: {seen:?}");
    };
    expect_at(&mut cluster, 100, (5, 0));
    expect_at(&mut cluster, 200, (0, 5));
    cluster.make_all_ready();
    cluster.edit(|spec| spec["minReadySeconds"] = json!(15));
    cluster.set_image("foo3/bar3");
    expect_at(&mut cluster, 300, (3, 0));
    let hash = cluster.hash();
    cluster.make_ready(2, |pod| pod.has_hash(&hash));
    let surged: Vec<_> =
        cluster.pods.iter().filter(|p| p.has_hash(&hash)).map(|p| p.target.clone()).collect();
    let lonely = cluster.pods.iter_mut().find(|pod| !surged.contains(&pod.target));
    lonely.unwrap().readiness = PodReadiness::NotReady { since: None };
    expect_at(&mut cluster, 310, (1, 0));
    expect_at(&mut cluster, 320, (1, 3));
    cluster.make_ready(3, |pod| pod.has_hash(&hash));
    expect_at(&mut cluster, 340, (0, 2));
    expect_at(&mut cluster, 350, (0, 0));
}

#[test]
fn daemon_set_updates_no_template_changed() {
    let mut cluster = deployed(5);
    cluster.set_limits(&json!(3), &json!(0));
    expect(&mut cluster, "TestDaemonSetUpdatesNoTemplateChanged", &[(0, 0)]);
}

#[test]
fn on_delete_never_rolls() {
    let mut cluster = healthy(5);
    cluster.set_on_delete();
    cluster.set_image("foo2/bar2");
    expect(&mut cluster, "OnDelete", &[(0, 0)]);
    let lost = cluster.pods.remove(0);
    expect(&mut cluster, "OnDelete", &[(1, 0)]);
    let new = cluster.pods.iter().find(|pod| pod.node() == lost.node()).unwrap();
    assert!(new.has_hash(&cluster.hash()), "a new pod has the current template");
}

/// Ten nodes with an available outdated pod each.
fn outdated() -> Cluster {
    let mut cluster = healthy(10);
    cluster.set_image("foo2/bar2");
    cluster
}

fn step(cluster: &Cluster) -> (usize, usize, Usage) {
    cluster.with_view(|view| {
        let step = rolling_update(view).unwrap().unwrap();
        (step.create.len(), step.delete.len(), step.usage)
    })
}

/// Counters at a moment, in seconds after [`BEGIN`]: pods, available, updated.
type Moment = (i64, usize, u32, u32);

/// The second at which the example begins.
const BEGIN: i64 = 1_000;

/// Syncs at each of these seconds until nothing changes; new pods are ready at once.
fn moments(cluster: &mut Cluster, seconds: &[i64]) -> Vec<Moment> {
    let moment = |cluster: &mut Cluster, second: &i64| {
        cluster.now = at(BEGIN + *second);
        for _ in 0..10 {
            let (seen, _) = cluster.sync_once();
            cluster.make_all_ready();
            if seen.counts() == (0, 0) {
                let status = cluster.daemon_set.status;
                let updated = status.updated_number_scheduled;
                return (*second, cluster.pods.len(), status.number_available, updated);
            }
        }
        panic!("does not converge at {second}");
    };
    seconds.iter().map(|second| moment(cluster, second)).collect()
}

#[test]
fn the_worked_example() {
    let deployed_long_ago = || {
        let mut cluster = outdated();
        cluster.edit(|spec| spec["minReadySeconds"] = json!(12));
        for pod in &mut cluster.pods {
            pod.created = Some(at(BEGIN - 200).into());
            pod.readiness = PodReadiness::Ready { since: Some(at(BEGIN - 100).into()) };
        }
        cluster
    };
    let mut cluster = deployed_long_ago();
    cluster.set_limits(&json!("25%"), &json!(0));
    let seen = moments(&mut cluster, &[0, 11, 12, 23, 24, 36, 48]);
    let want = [
        (0, 10, 7, 3),
        (11, 10, 7, 3), // the boundary of minReadySeconds is inclusive: not before 12
        (12, 10, 7, 6),
        (23, 10, 7, 6),
        (24, 10, 7, 9),
        (36, 10, 9, 10),
        (48, 10, 10, 10),
    ];
    assert_eq!(seen, want, "maxUnavailable 25%");

    let mut cluster = deployed_long_ago();
    cluster.set_limits(&json!(0), &json!("25%"));
    let seen = moments(&mut cluster, &[0, 13, 26, 39, 52]);
    let want =
        [(0, 13, 10, 0), (13, 13, 10, 3), (26, 13, 10, 6), (39, 11, 10, 9), (52, 10, 10, 10)];
    assert_eq!(seen, want, "maxSurge 25%");
}

#[test]
fn unhealthy_fleets() {
    for (name, old_unavailable, new_unavailable, deletes, unavailable) in [
        ("healthy", 0, 0, 3, 0),
        ("1 old unavailable: it and 2 candidates", 1, 0, 3, 1),
        ("2 old and 1 new unavailable: only the 2", 2, 1, 2, 3),
        ("5 old unavailable: all 5", 5, 0, 5, 5),
        ("3 new unavailable: none", 0, 3, 0, 3),
    ] {
        let mut cluster = outdated();
        cluster.set_limits(&json!("25%"), &json!(0));
        let hash = cluster.hash();
        for (at, pod) in cluster.pods.iter_mut().enumerate() {
            if at < old_unavailable + new_unavailable {
                pod.readiness = PodReadiness::NotReady { since: None };
            }
            if at < new_unavailable {
                let new = [(REVISION_HASH_LABEL, hash.as_str())];
                pod.labels = pod.labels.iter().chain(new).collect();
            }
        }
        let want = (0, deletes, Usage::Unavailable { nodes: unavailable });
        assert_eq!(step(&cluster), want, "{name}");
    }
}

#[test]
fn a_terminating_pod_counts_as_unavailable() {
    let mut cluster = outdated();
    cluster.set_limits(&json!(3), &json!(0));
    cluster.pods[0].terminating = true;
    assert_eq!(step(&cluster), (0, 2, Usage::Unavailable { nodes: 1 }));
}

#[test]
fn a_vanished_node_counts_as_unavailable() {
    let mut cluster = outdated();
    cluster.set_limits(&json!(3), &json!(0));
    cluster.pods[0].readiness = PodReadiness::NotReady { since: None };
    cluster.pods[0].target = PodTarget::Bound("gone".into());
    // The unavailable pod is deleted outside the budget; node-0 is empty now.
    assert_eq!(step(&cluster), (0, 2, Usage::Unavailable { nodes: 2 }));
}

#[test]
fn surge_next_to_unavailable_pods_is_outside_the_budget() {
    let mut cluster = outdated();
    cluster.set_limits(&json!(0), &json!(3));
    for pod in &mut cluster.pods[..2] {
        pod.readiness = PodReadiness::NotReady { since: None };
    }
    assert_eq!(step(&cluster), (5, 0, Usage::Surge { surging: 0, available: 8 }));
}

#[test]
fn sunset_pods_are_deleted_when_enough_others_are_available() {
    for (unavailable, want) in [(0, (3, 2)), (1, (4, 1)), (2, (5, 0)), (3, (6, 0))] {
        let mut cluster = outdated();
        cluster.set_limits(&json!(0), &json!(3));
        for node in &mut cluster.nodes[..2] {
            node.taints = Box::new([taint("gpu:NoSchedule")]);
        }
        for pod in &mut cluster.pods[5..5 + unavailable] {
            pod.readiness = PodReadiness::NotReady { since: None };
        }
        let (creates, deletes, _) = step(&cluster);
        assert_eq!((creates, deletes), want, "{unavailable} of 8 desired unavailable");
    }
}

#[test]
fn an_unavailable_pod_is_deleted_where_no_new_one_may_start() {
    let mut cluster = outdated();
    cluster.set_limits(&json!(0), &json!(3));
    cluster.nodes[0].taints = Box::new([taint("gpu:NoSchedule")]);
    cluster.pods[0].readiness = PodReadiness::NotReady { since: None };
    cluster.with_view(|view| {
        let step = rolling_update(view).unwrap().unwrap();
        let reason = &step.delete[0].reason;
        assert!(matches!(reason, DeleteReason::NotAvailableAndMayNotStart { .. }), "{reason:?}");
        assert_eq!((step.create.len(), step.delete.len()), (3, 1));
    });
}

#[test]
fn with_surge_an_old_pod_on_a_vanished_node_fails_the_step() {
    let mut cluster = outdated();
    cluster.set_limits(&json!(0), &json!(3));
    cluster.pods[0].target = PodTarget::Bound("gone".into());
    cluster.with_view(|view| {
        let want = Error::VanishedNode { node: "gone".into() };
        assert_eq!(rolling_update(view), Err(want));
    });
}

#[test]
fn nodes_with_two_of_a_kind_use_the_budget() {
    let mut cluster = outdated();
    let extra = Pod {
        controller: Some(cluster.reference()),
        readiness: PodReadiness::Ready { since: None },
        ..pod("extra", "node-0")
    };
    cluster.pods.push(extra);
    cluster.set_limits(&json!(3), &json!(0));
    assert_eq!(step(&cluster), (0, 2, Usage::Unavailable { nodes: 1 }));
    cluster.set_limits(&json!(0), &json!(3));
    assert_eq!(step(&cluster), (2, 0, Usage::Surge { surging: 1, available: 9 }));
}

#[test]
fn the_reason_contains_the_numbers_of_the_decision() {
    let mut cluster = outdated();
    cluster.set_limits(&json!("25%"), &json!(0));
    cluster.with_view(|view| {
        let step = rolling_update(view).unwrap().unwrap();
        let deleted = step.delete.iter().map(|deletion| deletion.node.as_str());
        assert_eq!(deleted.collect::<Vec<_>>(), ["node-0", "node-1", "node-2"]);
        assert_eq!(step.delete[0].reason.to_string(), "outdated; 0 unavailable, at most 3 allowed");
        assert_eq!(step.waiting.len(), 7);
        assert_eq!(
            step.waiting[0].reason.to_string(),
            "outdated; 3 unavailable, at most 3 allowed"
        );
    });
}

#[test]
fn the_old_pod_decides_whether_a_surging_node_is_available() {
    // Two nodes surge, one of them with an old pod that became unready; one node must be left.
    for (unready, want) in [(false, 1), (true, 0)] {
        let mut cluster = outdated();
        cluster.set_limits(&json!(0), &json!(3));
        cluster.nodes[0].taints = Box::new([taint("gpu:NoSchedule")]);
        let new = cluster.add_pods("node-1", OURS, 1);
        cluster.add_pods("node-2", OURS, 1);
        let old = cluster.pods.iter_mut().find(|pod| pod.node() == Some(&"node-1".into()));
        if unready {
            old.unwrap().readiness = PodReadiness::NotReady { since: None };
        }
        assert!(!cluster.pods[new].is_ready());
        let (_, deletes, usage) = step(&cluster);
        let available = if unready { 9 } else { 10 };
        assert_eq!((deletes, usage), (want, Usage::Surge { surging: 2, available }));
    }
}

#[test]
fn surge_keeps_two_pods_until_the_new_one_is_available() {
    let mut cluster = Cluster::of(1);
    cluster.set_limits(&json!(0), &json!(1));
    cluster.add_pods("node-0", OURS, 1);
    cluster.make_all_ready();
    cluster.set_image("foo2/bar2");
    expect(&mut cluster, "surge", &[(1, 0), (0, 0)]);
    cluster.make_all_ready();
    expect(&mut cluster, "surge", &[(0, 1), (0, 0)]);
}
