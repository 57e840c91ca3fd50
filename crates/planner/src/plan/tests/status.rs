//! The status of DaemonSets, and the explanation of a node.

use super::*;
use daemonset::model::{RolloutPolicy, StepsNote};

#[test]
fn a_node_is_explained_rule_by_rule() {
    let mut cluster = settled(2);
    cluster.nodes[1].taints = [taint("gpu=a100:NoSchedule")].into();
    let snapshot = snapshot(&cluster);
    let key = &cluster.daemon_set.key;
    let shown = explain(&snapshot, key, &"node-1".into()).unwrap();
    assert_eq!((shown.may_start, shown.may_stay, shown.action), (false, true, Action::Keep));
    let last = shown.rules.last().unwrap();
    assert_eq!(
        (last.rule.as_str(), last.outcome),
        ("taint gpu=a100:NoSchedule", RuleResult::StayOnly)
    );
    assert_eq!(shown.pods.len(), 1);
    let missing = explain(&snapshot, key, &"node-7".into());
    assert_eq!(missing, Err(NotFound::Node("node-7".into())));
}

#[test]
fn status_counts_by_both_rules() {
    let mut cluster = settled(3);
    cluster.pods[0].terminating = true;
    cluster.now += jiff::SignedDuration::from_secs(10);
    let status = status(&snapshot(&cluster), |_| true);
    let one = &status.daemon_sets[0];
    assert_eq!((one.reported.available, one.counted.available), (3, 2));
    assert_eq!(one.obstacles.len(), 1);
    assert_eq!(one.node_selector, "<none>");
    assert!(super::super::status(&snapshot(&cluster), |_| false).daemon_sets.is_empty());
}

#[test]
fn status_shows_failures_of_pods_without_an_action() {
    let mut cluster = settled(6);
    cluster.edit(|spec| spec["minReadySeconds"] = json!(30));
    settle(&mut cluster);
    cluster.now = at(100_000);
    cluster.nodes[0].taints = [taint("gpu=a100:NoSchedule")].into();
    cluster.nodes[1].taints = [taint("gpu=a100:NoSchedule")].into();
    cluster.nodes[2].readiness = NodeReadiness::Unknown { since: Some(at(99_400).into()) };
    for at in [0, 2, 3, 4] {
        cluster.pods[at].readiness = PodReadiness::NotReady { since: None };
    }
    for at in [0, 3] {
        cluster.pods[at].container_failure = Some(Box::new(ContainerFailure {
            container: "c".into(),
            reason: "CrashLoopBackOff".into(),
            message: "back-off 5m0s".into(),
        }));
    }
    cluster.pods[5].containers_changed = Some(at(99_990).into());
    let status = status(&snapshot(&cluster), |_| true);
    let shown = |node: &NodeObstacles| {
        let sentences: Vec<String> = node.reasons.iter().map(Coded::to_string).collect();
        format!("{}: {}", node.node, sentences.join("; "))
    };
    let shown: Vec<String> = status.daemon_sets[0].obstacles.iter().map(shown).collect();
    assert_eq!(
        shown,
        [
            "node-0: its pod keeps running; a new pod may not start here: taint \
             gpu=a100:NoSchedule is not tolerated; pod is not Ready: CrashLoopBackOff in container c",
            "node-1: its pod keeps running; a new pod may not start here: taint \
             gpu=a100:NoSchedule is not tolerated",
            "node-2: node NotReady for 10m; pod is not Ready",
            "node-3: pod is not Ready: CrashLoopBackOff in container c",
            "node-4: pod is not Ready",
            "node-5: pod Ready for less than 30s (`minReadySeconds`)",
        ]
    );
}

/// Nothing of such a rollout is live: only the note says that it waits, and for what.
#[test]
fn status_shows_the_check_that_holds_the_first_node_back() {
    let cluster = settled(2);
    let key = &cluster.daemon_set.key;
    let policy = json!({
        "apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy", "metadata": {"name": "p"},
        "spec": {"selects": {"names": ["default/foo"]}},
    });
    let policy: Arc<RolloutPolicy> = Arc::new(serde_json::from_value(policy).unwrap());
    let wait = json!({
        "kind": "precondition", "step": "rest",
        "check": {"check": "quiet", "since": at(60), "reason": {"code": "empty"}},
    });
    let waits = |waits_since| {
        let note = StepsNote {
            template: "sha256:next".to_owned(),
            waits_since,
            held_by: vec![wait.clone(), json!("of a newer version")],
            ..StepsNote::default()
        };
        let mut snapshot = snapshot(&cluster);
        snapshot.set_notes(key, "", Some(note));
        let mut status = status_under(&snapshot, |_| true, |_| Some(Arc::clone(&policy)));
        let progress = status.daemon_sets.remove(0).progress.unwrap();
        progress.waits_for.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let held_since = "step rest waits for a precondition since 1970-01-01T00:01:00Z: check quiet: the \
                      query has no series";
    assert_eq!(waits(Some(at(60))), [held_since]);
    assert!(waits(None).is_empty());
}
