//! Tests of each class of drift on small clusters.

mod held;
mod rolled;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::annotations::ROLLOUT_ANNOTATION;
use crate::plan::PauseState;
use crate::plan::ShownValues;
use crate::plan::tests::{desired, settle, settled, snapshot};
use daemonset::controller::test_cluster::{Cluster, at, labels, node, taint};
use daemonset::model::{
    NodeReadiness, PodPhase, RevisionRef, Snapshot, TEMPLATE_GENERATION_ANNOTATION,
    TEMPLATE_GENERATION_LABEL, UpdateStrategy,
};

fn found(snapshot: &Snapshot, desired: &DesiredDaemonSet) -> Drift {
    drift(DriftInput {
        snapshot,
        desired: std::slice::from_ref(desired),
        source: SourceInfo::default(),
        warnings: Vec::new(),
        show_values: ShownValues::None,
    })
}

/// Deviations as `CLASS SENTENCE`.
fn lines(drift: &Drift) -> Vec<String> {
    let all = drift.daemon_sets.iter().flat_map(|one| &one.deviations);
    all.map(|it| format!("{} {}", it.class, it.deviation)).collect()
}

/// Deviations after `change` of a converged cluster, against the manifest from before.
fn after(change: impl FnOnce(&mut Cluster)) -> Vec<String> {
    let mut cluster = settled(3);
    let desired = desired(&cluster);
    change(&mut cluster);
    lines(&found(&snapshot(&cluster), &desired))
}

#[test]
fn a_settled_cluster_has_no_drift() {
    assert_eq!(after(|_| {}), Vec::<String>::new());
}

#[test]
fn the_object_differs() {
    let image = "spec spec.template.spec.containers[c].image differs from the source";
    for (rule, change, want) in [
        (
            "another image, rolled out",
            Box::new(|cluster: &mut Cluster| {
                cluster.set_image("foo2/bar2");
                settle(cluster);
            }) as Box<dyn Fn(&mut Cluster)>,
            vec![image],
        ),
        (
            "another image, rolling out",
            Box::new(|cluster| {
                cluster.set_image("foo2/bar2");
                cluster.sync_once();
            }),
            vec![
                image,
                "pod 1 node without a pod",
                "pod 2 nodes with a pod of another template",
                "rollout the live template, revision 2, runs on 0 of 3 nodes",
            ],
        ),
        (
            "another image that no controller has seen",
            Box::new(|cluster| {
                cluster.set_image("foo2/bar2");
                cluster.daemon_set.generation = 9;
                cluster.daemon_set.status.observed_generation = 8;
            }),
            vec![
                image,
                "pod 3 nodes with a pod of another template",
                "rollout the controller has observed generation 8, the object is at 9",
                "rollout the live template runs on 0 of 3 nodes",
            ],
        ),
        (
            "being deleted",
            Box::new(|cluster| cluster.daemon_set.terminating = true),
            vec!["spec it is being deleted"],
        ),
    ] {
        assert_eq!(after(change), want, "{rule}");
    }
}

#[test]
fn an_object_that_is_gone_leaves_revisions_behind() {
    let mut cluster = settled(2);
    let desired = desired(&cluster);
    cluster.revisions[0].controller = None;
    let name = cluster.revisions[0].name.clone();
    let mut snapshot = snapshot(&cluster);
    snapshot.daemon_sets.clear();
    assert_eq!(
        lines(&found(&snapshot, &desired)),
        [
            "spec it does not exist in the cluster".to_owned(),
            format!("history revision 1 ({name}) does not belong to an existing DaemonSet"),
        ]
    );
}

#[test]
fn pods_that_differ_from_the_object() {
    for (rule, change, want) in [
        (
            "missing",
            Box::new(|cluster: &mut Cluster| drop(cluster.pods.remove(0)))
                as Box<dyn Fn(&mut Cluster)>,
            vec!["pod 1 node without a pod"],
        ),
        (
            "terminating",
            Box::new(|cluster| cluster.pods[0].terminating = true),
            vec!["pod 1 node without a pod"],
        ),
        (
            "surplus",
            Box::new(|cluster| {
                let second = daemonset::model::Pod {
                    name: "second".into(),
                    uid: "uid-second".into(),
                    created: Some(at(900).into()),
                    ..cluster.pods[0].clone()
                };
                cluster.pods.push(second);
            }),
            vec!["pod 1 node with more than one pod"],
        ),
        (
            "failed",
            Box::new(|cluster| cluster.pods[0].phase = PodPhase::Failed),
            vec!["pod 1 node with a failed or completed pod"],
        ),
        (
            "misscheduled",
            Box::new(|cluster| cluster.nodes[0].taints = Box::new([taint("gpu:NoExecute")])),
            vec!["pod 1 node with a pod that may not run there"],
        ),
        (
            "it may stay where a new pod may not start",
            Box::new(|cluster| cluster.nodes[0].taints = Box::new([taint("gpu:NoSchedule")])),
            vec!["eligibility 1 node with a pod where a new pod may not start"],
        ),
        (
            "its node no longer exists",
            Box::new(|cluster| drop(cluster.nodes.remove(0))),
            vec!["pod 1 node with a pod that may not run there"],
        ),
        (
            "one more node",
            Box::new(|cluster| cluster.nodes.push(node("node-9", &[], &[]))),
            vec!["pod 1 node without a pod"],
        ),
    ] {
        assert_eq!(after(change), want, "{rule}");
    }
}

/// No new pod may start there now, but the pod is not at fault for that.
#[test]
fn an_outdated_pod_on_a_node_that_is_not_ready_is_not_misscheduled() {
    let lines = after(|cluster| {
        let node = &mut cluster.nodes[0];
        node.readiness = NodeReadiness::NotReady { since: Some(at(400).into()) };
        node.taints = Box::new([taint("node.kubernetes.io/not-ready:NoSchedule")]);
        cluster.set_image("foo2/bar2");
    });
    let of_pods: Vec<_> = lines.iter().filter(|line| line.starts_with("pod ")).collect();
    assert_eq!(of_pods, ["pod 3 nodes with a pod of another template"]);
}

#[test]
fn a_namespace_that_excludes_nodes() {
    let cluster = settled(2);
    let mut snapshot = snapshot(&cluster);
    let annotation = "scheduler.alpha.kubernetes.io/node-selector";
    snapshot.namespaces[0].annotations = labels([(annotation, "disk=ssd")]);
    assert_eq!(
        lines(&found(&snapshot, &desired(&cluster))),
        [format!(
            "eligibility {annotation} disk=ssd of the namespace excludes 2 nodes that the \
             DaemonSet selects"
        )]
    );
}

#[test]
fn revisions_that_the_controller_would_not_create() {
    let twin = |cluster: &mut Cluster, name: &str, number: i64| {
        let mut twin = cluster.revisions[0].clone();
        (twin.name, twin.number.0) = (name.into(), number);
        cluster.revisions.push(twin);
    };
    for (rule, change, want) in [
        (
            "missing",
            Box::new(|cluster: &mut Cluster| cluster.revisions.clear())
                as Box<dyn Fn(&mut Cluster)>,
            vec!["history no revision has the live template"],
        ),
        (
            "twice",
            Box::new(|cluster| twin(cluster, "twin", 7)),
            vec!["history revision 1 (NAME) has the same template as revision 7 (twin)"],
        ),
        (
            "two with one number",
            Box::new(|cluster| {
                twin(cluster, "other", 1);
                cluster.revisions[1].data = Arc::new(json!({}));
            }),
            vec!["history revision 1 exists more than once: NAME, other"],
        ),
        (
            "of a deleted DaemonSet",
            Box::new(|cluster| {
                twin(cluster, "orphan", 1);
                if let Some(controller) = &mut cluster.revisions[1].controller {
                    Arc::make_mut(controller).uid = "uid-of-an-earlier-one".into();
                }
            }),
            vec!["history revision 1 (orphan) does not belong to an existing DaemonSet"],
        ),
    ] {
        let mut cluster = settled(3);
        let name = cluster.revisions[0].name.to_string();
        let desired = desired(&cluster);
        change(&mut cluster);
        let lines: Vec<String> = lines(&found(&snapshot(&cluster), &desired))
            .into_iter()
            .map(|line| line.replace(&name, "NAME"))
            .collect();
        assert_eq!(lines, want, "{rule}");
    }
}

#[test]
fn a_revision_of_an_apply_in_two_steps() {
    let data = |image: &str, env: &[&str]| {
        let env: Vec<Value> = env.iter().map(|name| json!({"name": name, "value": "x"})).collect();
        let containers = json!([{"name": "c", "image": image, "env": env}]);
        Arc::new(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
    };
    let (old, new) = (data("v1", &["OLD"]), data("v2", &["NEW"]));
    let both = data("v2", &["NEW", "OLD"]);
    let other = data("v3", &["NEW", "OLD"]);
    for (rule, middle, seconds, want) in [
        ("the union, replaced at once", &both, 1, 1),
        ("the union, but it stayed", &both, 60, 0),
        ("a value of its own", &other, 1, 0),
        ("the newer one itself", &new, 1, 0),
    ] {
        let mut cluster = settled(1);
        let revision = cluster.revisions[0].clone();
        let with = |number: i64, data: &Arc<Value>, second: i64| daemonset::model::Revision {
            name: format!("r{number}").as_str().into(),
            number: daemonset::model::RevisionNumber(number),
            data: Arc::clone(data),
            created: Some(at(second)),
            ..revision.clone()
        };
        cluster.revisions =
            vec![with(1, &old, 0), with(2, middle, 100), with(3, &new, 100 + seconds)];
        let drift = found(&snapshot(&cluster), &desired(&cluster));
        let mixed = lines(&drift).into_iter().filter(|line| {
            line.ends_with(
                "r2) mixes revision 1 (r1) and revision 3 (r3): the manifest was applied in \
                 two steps",
            )
        });
        assert_eq!(mixed.count(), want, "{rule}");
    }
}

#[test]
fn pods_that_count_as_updated_by_their_generation() {
    // After an orphaning delete and a new object, the template generation starts at 1 again.
    let mut cluster = settled(2);
    cluster.set_on_delete();
    cluster.set_image("foo2/bar2");
    let desired = desired(&cluster);
    cluster.sync_once();
    cluster.daemon_set.annotations = labels([(TEMPLATE_GENERATION_ANNOTATION, "1")]);
    for pod in &mut cluster.pods {
        pod.labels = pod.labels.iter().chain([(TEMPLATE_GENERATION_LABEL, "1")]).collect();
    }
    assert_eq!(
        lines(&found(&snapshot(&cluster), &desired)),
        [
            "pod 2 nodes with a pod of another template",
            "rollout the live template, revision 2, runs on 0 of 2 nodes",
            "history the status counts 2 nodes as updated whose pods run another template",
        ]
    );
}

/// The annotation of a rollout from revision 1.
fn annotation(cluster: &Cluster, state: PauseState) -> String {
    let first = &cluster.revisions[0];
    let pause = PausedRollout {
        state,
        declared: json!({
            "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}
        }),
        plan_digest: "sha256:6fd1".into(),
        from: Some(RevisionRef { name: first.name.clone(), number: first.number }),
        since: at(500),
        commit: Some("4f2c9e1".into()),
        by: Some("ci".into()),
        failed: None,
        target: None,
        waits_for: Vec::new(),
        failed_gate: None,
    };
    serde_json::to_string(&pause).unwrap()
}

#[test]
fn a_paused_or_aborted_rollout_is_not_a_difference_of_the_object() {
    let held = "rollout paused by ci since 1970-01-01T00:08:20Z, commit 4f2c9e1, from revision 1";
    let aborted = held.replace("paused", "aborted");
    let image = "spec spec.template.spec.containers[c].image differs from the source";
    let strategy = "spec spec.updateStrategy.rollingUpdate differs from the source";
    let of_type = "spec spec.updateStrategy.type differs from the source";
    let unfinished = |revision: u32| {
        vec![
            "pod 2 nodes with a pod of another template".to_owned(),
            format!("rollout the live template, revision {revision}, runs on 0 of 2 nodes"),
        ]
    };
    // In git: foo2/bar2. Live: `image`, with OnDelete.
    let with = |state: PauseState, image: &str, annotated: bool| {
        let mut cluster = settled(2);
        let annotation = annotation(&cluster, state);
        cluster.set_image("foo2/bar2");
        let wanted = desired(&cluster);
        cluster.set_image(image);
        cluster.set_on_delete();
        if annotated {
            let kept = cluster.daemon_set.annotations.clone();
            cluster.daemon_set.annotations =
                kept.iter().chain([(ROLLOUT_ANNOTATION, annotation.as_str())]).collect();
        }
        cluster.sync_once();
        assert_eq!(cluster.daemon_set.spec.update_strategy, UpdateStrategy::OnDelete);
        let mut lines = lines(&found(&snapshot(&cluster), &wanted));
        lines.sort();
        lines
    };
    let sorted = |parts: Vec<Vec<String>>| {
        let mut all = parts.concat();
        all.sort();
        all
    };
    let text = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        with(PauseState::Paused, "foo2/bar2", true),
        sorted(vec![text(&[held]), unfinished(2)]),
        "paused"
    );
    assert_eq!(with(PauseState::Aborted, "foo/bar", true), text(&[&aborted]), "aborted");
    assert_eq!(
        with(PauseState::Paused, "foo3/bar3", true),
        sorted(vec![text(&[held, image]), unfinished(2)]),
        "edited by another client while paused"
    );
    assert_eq!(
        with(PauseState::Aborted, "foo3/bar3", true),
        sorted(vec![text(&[&aborted, image]), unfinished(2)]),
        "edited by another client while aborted"
    );
    assert_eq!(
        with(PauseState::Paused, "foo2/bar2", false),
        sorted(vec![text(&[strategy, of_type]), unfinished(2)]),
        "OnDelete without a pause is an edit by another client"
    );
}

#[test]
fn an_annotation_that_cannot_be_read_is_reported() {
    let mut cluster = settled(1);
    let wanted = desired(&cluster);
    cluster.set_on_delete();
    cluster.daemon_set.annotations = labels([(ROLLOUT_ANNOTATION, "{}")]);
    let lines = lines(&found(&snapshot(&cluster), &wanted));
    let want = format!("rollout annotation {ROLLOUT_ANNOTATION} cannot be read");
    assert!(lines.contains(&want), "{lines:?}");
}

#[test]
fn provenance_alone_is_not_drift() {
    let cluster = settled(1);
    let desired = desired(&cluster);
    let mut snapshot = snapshot(&cluster);
    let mut raw = snapshot.daemon_sets[0].raw.as_ref().clone();
    raw["metadata"]["annotations"] = json!({
        "ds-plan.dev/commit": "4f2c9e1", "kubernetes.io/change-cause": "a new image",
    });
    snapshot.daemon_sets[0].raw = Arc::new(raw);
    assert_eq!(lines(&found(&snapshot, &desired)), Vec::<String>::new());
}

#[test]
fn field_managers_are_named() {
    let mut cluster = settled(1);
    let desired = desired(&cluster);
    cluster.set_image("foo2/bar2");
    settle(&mut cluster);
    let mut snapshot = snapshot(&cluster);
    let mut raw = snapshot.daemon_sets[0].raw.as_ref().clone();
    raw["metadata"]["managedFields"] = json!([{
        "manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"c\"}": {"f:image": {}}}}}}},
    }]);
    snapshot.daemon_sets[0].raw = Arc::new(raw);
    let drift = found(&snapshot, &desired);
    let Deviation::FieldDiffers { writers, .. } =
        &drift.daemon_sets[0].deviations[0].deviation.reason
    else {
        panic!("{drift:?}")
    };
    let [writer] = writers.as_slice() else { panic!("{writers:?}") };
    assert_eq!(writer.manager, "kubectl-edit");
    assert!(drift.warnings.is_empty());

    snapshot.coverage.managed_fields = false;
    assert_eq!(found(&snapshot, &desired).warnings[0].code, "noManagedFields");
}
