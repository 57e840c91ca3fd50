//! What `status` and `explain` show while `ds-apply` has paused a rollout: the live strategy is
//! `OnDelete`, so outdated pods stay.

use super::*;
use crate::annotations::ROLLOUT_ANNOTATION;
use crate::digest::template_digest;
use daemonset::model::{NodeName, REVISION_HASH_LABEL, RolloutPolicy, StepsNote};

/// Three nodes, and a rollout of `foo:2` that has updated node-0. No new pod may start on node-1.
/// Unless it is paused in its course, the template before it is live again.
fn paused(state: PauseState) -> Snapshot {
    let mut cluster = settled(3);
    cluster.set_on_delete();
    cluster.set_image("foo:2");
    cluster.sync_once();
    let template = template_digest(cluster.daemon_set.spec.template.raw());
    let hash = cluster.hash();
    let is_first =
        |pod: &&mut daemonset::model::Pod| pod.node().is_some_and(|it| it.as_str() == "node-0");
    let pod = cluster.pods.iter_mut().find(is_first).unwrap();
    pod.labels = OURS.into_iter().chain([(REVISION_HASH_LABEL, hash.as_str())]).collect();
    cluster.nodes[1].taints = [taint("gpu=a100:NoSchedule")].into();
    if state != PauseState::Paused {
        cluster.set_image("foo/bar");
        cluster.sync_once();
    }
    let pause = json!({
        "state": state, "planDigest": "sha256:6fd1", "since": at(1000),
        "declared": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    });
    cluster.daemon_set.annotations = labels([(ROLLOUT_ANNOTATION, &pause.to_string())]);
    cluster.now = at(1200);
    let mut snapshot = snapshot(&cluster);
    let note = StepsNote { template, started_at: Some(at(1000)), ..StepsNote::default() };
    snapshot.set_notes(&cluster.daemon_set.key, "", Some(note));
    snapshot
}

/// The action, the reasons, and what happens to the pod.
fn explained(snapshot: &Snapshot, node: &str) -> String {
    let key = &snapshot.daemon_sets[0].key;
    let shown = explain(snapshot, key, &node.into()).unwrap();
    let codes: Vec<&str> = shown.reasons.iter().map(|it| it.reason.code()).collect();
    let pods = shown.pods.iter().map(|pod| format!("{:?} {}", pod.fate, pod.reason.reason.code()));
    let pods: Vec<String> = pods.collect();
    format!("{:?} {}, pod {}", shown.action, codes.join(","), pods.join(" and "))
}

/// Where no new pod may start, too.
#[test]
fn no_pod_of_a_paused_rollout_has_the_status_deleted() {
    let status = status(&paused(PauseState::Paused), |_| true);
    let obstacles = status.daemon_sets[0].obstacles.iter();
    let shown = obstacles.map(|NodeObstacles { node, reasons }| {
        let reasons: Vec<String> = reasons.iter().map(Coded::to_string).collect();
        format!("{node}: {}", reasons.join("; "))
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "node-1: runs revision 1; its pod keeps running; a new pod may not start here: taint \
             gpu=a100:NoSchedule is not tolerated",
            "node-2: runs revision 1",
        ]
    );
}

/// A waiting rollout continues, so its own template is the target. An aborted one does not.
#[test]
fn no_pod_of_a_paused_rollout_is_explained_as_deleted() {
    let up_to_date = "Keep upToDate, pod Keep upToDate";
    let outdated = "Wait outdated, pod Keep outdated";
    let outdated_for_good = "Wait outdated,misscheduled, pod Keep outdated";
    for (state, want) in [
        (PauseState::Paused, [up_to_date, outdated_for_good, outdated]),
        (PauseState::Waiting, [up_to_date, outdated_for_good, outdated]),
        (
            PauseState::Aborted,
            [outdated, "Keep upToDate,misscheduled, pod Keep upToDate", up_to_date],
        ),
    ] {
        let snapshot = paused(state);
        let found = ["node-0", "node-1", "node-2"].map(|node| explained(&snapshot, node));
        assert_eq!(found, want, "{state}");
        let (key, node) = (&snapshot.daemon_sets[0].key, NodeName::from("node-0"));
        let shown = explain(&snapshot, key, &node).unwrap();
        assert_eq!(shown.pause.as_ref().map(|pause| pause.state), Some(state));
        assert_eq!(shown.waits_since.is_some(), state == PauseState::Waiting);
        let policy = RolloutPolicy::named("p");
        // Node-0 is up to date, unless it is the one of an aborted rollout.
        assert_eq!(explain_under(&snapshot, key, &node, &policy).unwrap(), shown, "{state}");
    }
}
