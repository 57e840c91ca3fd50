//! Plans that are blocked by a guard, or that cannot finish.

use super::*;
use crate::annotations::ROLLOUT_ANNOTATION;
use crate::digest::template_digest;
use daemonset::model::{StepsNote, UpdateStrategy};

/// A cluster of three nodes whose first new pod has this failure.
pub(super) fn with_failed_pod(reason: &str) -> Cluster {
    let mut cluster = settled(3);
    cluster.set_image("foo/bar:2");
    cluster.sync();
    cluster.sync();
    let container_failure =
        ContainerFailure { container: "c".into(), reason: reason.into(), message: "".into() };
    let new = cluster.pods.iter_mut().find(|pod| !pod.is_ready());
    new.unwrap().container_failure = Some(Box::new(container_failure));
    cluster
}

/// The rollout waits for such a pod too.
#[test]
fn a_container_that_ended_once_does_not_use_up_the_budget() {
    for reason in ["Error", "OOMKilled", "RunContainerError"] {
        let cluster = with_failed_pod(reason);
        let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
        assert_eq!(plan.totals.actions.replace, 2, "{reason}: {:#?}", lines(&plan));
        assert_eq!(plan.guards, [], "{reason}");
    }
}

#[test]
fn a_new_pod_that_failed_permanently_uses_up_the_budget() {
    let mut cluster = with_failed_pod("ImagePullBackOff");
    let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
    let waiting =
        lines(&plan).iter().filter(|line| line.contains("! maxUnavailableReached")).count();
    assert_eq!((waiting, plan.totals.actions.replace), (2, 0), "{:#?}", lines(&plan));
    // Rolling back is always possible: the failed pod is outdated then and needs no budget.
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar"));
    assert_eq!(plan.totals.actions.replace, 1, "{:#?}", lines(&plan));
}

#[test]
fn a_failed_pod_on_a_not_ready_node_does_not_block() {
    let mut cluster = settled(3);
    cluster.set_image("foo/bar:2");
    cluster.sync();
    cluster.sync();
    cluster.now = at(100_000);
    let new = cluster.pods.iter().find(|pod| !pod.is_ready()).unwrap();
    let node = new.node().unwrap().clone();
    let dead = cluster.nodes.iter_mut().find(|it| it.name == node).unwrap();
    dead.readiness = NodeReadiness::NotReady { since: Some(at(99_000).into()) };
    let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
    assert_eq!((plan.totals.actions.replace, plan.guards.len()), (2, 0), "{:#?}", lines(&plan));
}

#[test]
fn a_plan_that_cannot_finish_is_guarded() {
    let mut cluster = settled(4);
    cluster.set_image("foo/bar:2");
    cluster.sync();
    cluster.sync();
    cluster.now = at(100_000);
    let stuck = cluster.pods.iter().find(|pod| !pod.is_ready()).unwrap().node().unwrap().clone();
    let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
    let [guard] = &plan.guards[..] else { panic!("{:#?}", plan.guards) };
    assert_eq!((guard.code, guard.nodes.as_slice()), (GuardCode::Deadlock, &[stuck][..]));
    assert_eq!(guard.allow_flag.as_deref(), Some("--allow-deadlock"));
    assert_eq!(
        guard.message,
        "the plan cannot finish: 1 already unavailable, at most 1 allowed, and the plan does not \
         fix them (pod is not Ready: node-0); 3 outdated pods wait indefinitely. Fix these nodes \
         first, or roll back to a template that works on them"
    );
}

#[test]
fn an_eviction_larger_than_the_budget_is_guarded_under_any_strategy() {
    for (strategy, evicted, guarded) in [
        (json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}), 2, false),
        (json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}), 3, true),
        (
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}),
            1,
            false,
        ),
        (json!({"type": "OnDelete"}), 1, false),
        (json!({"type": "OnDelete"}), 2, true),
    ] {
        let mut cluster = settled(6);
        for node in cluster.nodes.iter_mut().skip(evicted) {
            node.labels = labels([("disk", "ssd")]);
        }
        cluster.edit(|spec| spec["updateStrategy"] = strategy.clone());
        let plan = after(&mut cluster, |cluster| {
            cluster.edit(|spec| {
                spec["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
            });
        });
        let codes: Vec<GuardCode> = plan.guards.iter().map(|guard| guard.code).collect();
        let want = if guarded { vec![GuardCode::MassEviction] } else { vec![] };
        assert_eq!(codes, want, "{strategy} {evicted}: {:#?}", lines(&plan));
        if let [guard] = &plan.guards[..] {
            assert_eq!(guard.nodes.len(), evicted);
            assert_eq!(guard.allow_flag.as_deref(), Some("--allow-mass-eviction"));
        }
    }
    // Nodes that changed by themselves are not caused by the manifest.
    let mut cluster = settled(6);
    for node in &mut cluster.nodes {
        node.taints = [taint("gpu=a100:NoExecute")].into();
    }
    let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
    assert_eq!((plan.totals.actions.delete, plan.guards), (6, vec![]));
}

/// Seed 36218: two pods were missing when the plan was made, and there when it was written.
#[test]
fn a_pod_that_is_still_to_come_counts_as_evicted() {
    let two = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    // Node 0 has a pod and is to lose it; nodes 1 and 2 have none, or a terminating one.
    for (missing, leaving, tainted, nodes) in
        [(&[1, 2][..], None, None, 3), (&[1], Some(2), None, 3), (&[1, 2], None, Some(2), 2)]
    {
        let mut cluster = settled(6);
        let is_on = |pod: &daemonset::model::Pod, at: usize| {
            pod.node().is_some_and(|node| *node == *format!("node-{at}"))
        };
        cluster.pods.retain(|pod| !missing.iter().any(|at| is_on(pod, *at)));
        for pod in &mut cluster.pods {
            pod.terminating = leaving.is_some_and(|at| is_on(pod, at));
        }
        for node in cluster.nodes.iter_mut().skip(3) {
            node.labels = labels([("disk", "ssd")]);
        }
        if let Some(at) = tainted {
            cluster.nodes[at].taints = [taint("gpu=a100:NoSchedule")].into();
        }
        cluster.edit(|spec| spec["updateStrategy"] = two.clone());
        let plan = after(&mut cluster, |cluster| {
            cluster.edit(|spec| {
                spec["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
            });
        });
        let guards: Vec<_> = plan.guards.iter().map(|it| (it.nodes.len(), &*it.message)).collect();
        let message = "3 nodes are no longer eligible, and the controller deletes their pods all \
                       at once, regardless of the update strategy (2 of them have no pod yet); at \
                       most 2 may be unavailable";
        let want = if nodes > 2 { vec![(nodes, message)] } else { vec![] };
        assert_eq!(guards, want, "{missing:?} {leaving:?} {tainted:?}");
    }
}

#[test]
fn a_selector_change_is_blocked_and_no_action_is_planned() {
    let mut cluster = settled(2);
    let plan = after(&mut cluster, |cluster| {
        cluster.edit(|spec| {
            spec["selector"] = json!({"matchLabels": {"name": "other"}});
            spec["template"]["metadata"]["labels"] = json!({"name": "other"});
        });
    });
    assert_eq!(plan.daemon_sets[0].change, Change::Recreate);
    assert_eq!(lines(&plan), Vec::<String>::new());
    assert_eq!(plan.guards[0].code, GuardCode::SelectorChange);
}

/// The plan of a new template under a policy with these fields in its `spec`.
pub(super) fn paced(cluster: &mut Cluster, spec: &Value) -> Plan {
    paced_with(cluster, spec, |_| {})
}

/// The same, after this change of the cluster.
fn paced_with(cluster: &mut Cluster, spec: &Value, change: impl FnOnce(&mut Snapshot)) -> Plan {
    let mut policy = json!({
        "apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy", "metadata": {"name": "p"},
        "spec": {"selects": {"names": ["default/foo"]}},
    });
    policy["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let mut before = snapshot(cluster);
    change(&mut before);
    cluster.set_image("foo/bar:2");
    let mut wanted = desired(cluster);
    wanted.policy = Some(Arc::new(serde_json::from_value(policy).unwrap()));
    planned(&before, &[wanted])
}

#[test]
fn a_policy_makes_the_budget_stricter_and_never_looser() {
    for (limit, want) in [(json!(2), 2), (json!("10%"), 1), (json!(9), 3), (json!(0), 1)] {
        let mut cluster = settled(6);
        cluster.set_limits(&json!(3), &json!(0));
        settle(&mut cluster);
        let plan = paced(&mut cluster, &json!({"maxUnavailable": limit}));
        let one = &plan.daemon_sets[0];
        assert_eq!((one.waves[0].max_unavailable, one.policy.as_deref()), (want, Some("p")));
    }
}

/// One domain at once: while a later one is disturbed, only that one continues. The linter, which checks
/// this plan, finds more of them.
#[test]
fn only_a_disturbed_domain_comes_next() {
    let mut cluster = settled(6);
    for (at, node) in cluster.nodes.iter_mut().enumerate() {
        node.labels = labels([("zone", ["a", "b"][at % 2])]);
    }
    settle(&mut cluster);
    let is_on = |pod: &&mut daemonset::model::Pod| {
        pod.node().is_some_and(|node| *node.as_str() == *"node-1")
    };
    cluster.pods.iter_mut().find(is_on).unwrap().readiness = PodReadiness::NotReady { since: None };
    let plan = paced(&mut cluster, &json!({"domains": {"key": "zone"}}));
    let DaemonSetPlan { waves, next_waves, .. } = &plan.daemon_sets[0];
    let next = waves.iter().filter(|wave| next_waves.contains(&wave.index));
    let next: Vec<&str> = next.filter_map(|wave| wave.domain.as_deref()).collect();
    assert_eq!(next, ["b"], "{waves:#?}");
}

/// The pods of later steps are replaced later: until then they count.
#[test]
fn unavailable_pods_of_later_steps_that_use_up_a_step_are_guarded() {
    let step = |nodes: Value, more: Value| {
        let mut step = json!({"name": "canary", "nodes": nodes});
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"steps": [step]})
    };
    let names = |all: &[&str]| json!({"names": all});
    let limit = |limit: u32| json!({"maxUnavailable": limit});
    let shared = |nodes: u32| {
        let mut policy = step(names(&["node-0"]), json!({}));
        policy["sharedBudget"] = nodes.into();
        policy
    };
    // Seconds since node-2 has no Ready pod.
    for (policy, unready_for, limit) in [
        (step(names(&["node-0"]), limit(1)), 3_600, Some("maxUnavailable")),
        (shared(1), 3_600, Some("sharedBudget")),
        (shared(2), 3_600, None),
        // It may recover.
        (step(names(&["node-0"]), limit(1)), 60, None),
        // The step replaces it, or has room beside it.
        (step(names(&["node-0", "node-2"]), limit(1)), 3_600, None),
        (step(names(&["node-0"]), limit(2)), 3_600, None),
        (step(names(&["node-0"]), json!({})), 3_600, None),
        (json!({}), 3_600, None),
    ] {
        let mut cluster = settled(5);
        cluster.set_limits(&json!(2), &json!(0));
        settle(&mut cluster);
        cluster.now = at(100_000);
        let is_on = |pod: &&mut daemonset::model::Pod| {
            pod.node().is_some_and(|node| *node.as_str() == *"node-2")
        };
        let pod = cluster.pods.iter_mut().find(is_on).unwrap();
        pod.readiness = PodReadiness::NotReady { since: Some(at(100_000 - unready_for).into()) };
        let plan = paced(&mut cluster, &policy);
        let guards: Vec<_> = plan.guards.iter().map(|it| (it.code, it.message.as_str())).collect();
        let message = |limit| {
            format!(
                "step canary cannot finish: 1 already unavailable, at most 1 allowed in it \
                 ({limit}), and the step does not fix them (pod is not Ready: node-2); 1 outdated \
                 pod waits indefinitely. Fix these nodes first, or select them in this step or an \
                 earlier one"
            )
        };
        let want = limit.map(message);
        let want = want.as_deref().map(|message| (GuardCode::Deadlock, message));
        assert_eq!(guards, Vec::from_iter(want), "{policy} {unready_for}");
        assert_eq!(plan.totals.actions.replace, 5, "{policy}");
    }
}

/// A plan that was made without `after` keeps its digest.
#[test]
fn what_comes_before_is_part_of_the_plan_and_of_its_digest() {
    let plan = |spec: Value| {
        let plan = paced(&mut settled(3), &spec);
        (plan.daemon_sets[0].after.clone(), plan.digest)
    };
    let (none, digest) = plan(json!({}));
    assert!(none.is_empty());
    assert_eq!(plan(json!({"after": []})), (none, digest.clone()));
    let (after, other) = plan(json!({"after": ["net/cni"]}));
    assert_eq!(after, ["net/cni"]);
    assert_ne!(other, digest);
}

#[test]
fn a_policy_sets_how_many_unready_nodes_are_skipped() {
    for (max, skipped) in [(json!("5%"), 1), (json!(2), 2), (json!("100%"), 3)] {
        let mut cluster = settled(6);
        for node in &mut cluster.nodes[..3] {
            node.readiness = NodeReadiness::NotReady { since: None };
        }
        let plan = paced(&mut cluster, &json!({"skipUnreadyNodes": {"max": max}}));
        let lines = lines(&plan);
        let found = lines.iter().filter(|line| line.contains("skippedUnreadyNode")).count();
        assert_eq!(found, skipped, "{max}: {lines:#?}");
    }
}

#[test]
fn a_failed_template_in_the_lease_is_guarded_until_it_is_live_everywhere() {
    let mut cluster = settled(3);
    let before = snapshot(&cluster);
    cluster.set_image("foo/bar:2");
    let ours = desired(&cluster);
    let digest = template_digest(ours.spec.template.raw());
    let lease = |name: &str, failed: &str| Lease {
        namespace: "default".into(),
        name: name.into(),
        failed: ["sha256:other", failed].map(Box::from).into(),
        steps: None,
        holder: None,
    };
    let begun = snapshot(&cluster);
    settle(&mut cluster);
    let whole = snapshot(&cluster);
    for (rule, live, lease, guarded) in [
        ("it failed", &before, lease("ds-plan-foo", &digest), true),
        ("another failed", &before, lease("ds-plan-foo", "sha256:1"), false),
        ("another DaemonSet failed", &before, lease("ds-plan-bar", &digest), false),
        ("it is live, but not on most pods", &begun, lease("ds-plan-foo", &digest), true),
        ("it was rolled out since", &whole, lease("ds-plan-foo", &digest), false),
    ] {
        let mut live = live.clone();
        live.leases = vec![lease];
        let plan = planned(&live, std::slice::from_ref(&ours));
        let codes: Vec<GuardCode> = plan.guards.iter().map(|guard| guard.code).collect();
        let want = if guarded { vec![GuardCode::FailedTemplate] } else { vec![] };
        assert_eq!(codes, want, "{rule}");
    }
}

/// There are no waves then, although outdated pods are left.
#[test]
fn a_failed_template_is_guarded_also_while_its_pods_use_up_the_budget() {
    let mut cluster = settled(4);
    cluster.set_image("foo/bar:2");
    cluster.sync();
    cluster.sync();
    cluster.now = at(100_000);
    let ours = desired(&cluster);
    let digest = template_digest(ours.spec.template.raw());
    let mut live = snapshot(&cluster);
    for (failed, want) in [
        (digest.as_str(), &[GuardCode::Deadlock, GuardCode::FailedTemplate][..]),
        ("sha256:other", &[GuardCode::Deadlock]),
    ] {
        live.set_notes(&ours.key, failed, None);
        let plan = planned(&live, std::slice::from_ref(&ours));
        assert!(plan.daemon_sets[0].waves.is_empty(), "{:#?}", lines(&plan));
        let codes: Vec<GuardCode> = plan.guards.iter().map(|guard| guard.code).collect();
        assert_eq!(codes, want, "{failed}");
    }
}

/// The nodes of a step may leave when the rollout has begun: then its run waits for one, or its gates fail.
#[test]
fn a_step_whose_nodes_have_left_blocks_no_rollout_that_is_under_way() {
    let mut cluster = settled(4);
    let steps = json!({"steps": [{"name": "named", "nodes": {"names": ["node-9"]}}]});
    let template = paced(&mut cluster, &steps).daemon_sets[0].target_template.clone();
    let guards = |change: &dyn Fn(&mut Snapshot)| {
        let plan = paced_with(&mut settled(4), &steps, change);
        plan.guards.iter().map(|guard| guard.code).collect::<Vec<_>>()
    };
    let noted = |template: &str, started_at| {
        let (template, waits_since) = (template.to_owned(), Some(at(5)));
        let note = StepsNote { template, started_at, waits_since, ..StepsNote::default() };
        guards(&|live| live.set_notes(&cluster.daemon_set.key, "", Some(note.clone())))
    };
    let blocked = [GuardCode::EmptyStep];
    assert_eq!(guards(&|_| {}), blocked);
    assert_eq!(noted(&template, None), blocked, "it only waits to begin");
    assert_eq!(noted("sha256:other", Some(at(5))), blocked);
    assert_eq!(noted(&template, Some(at(5))), []);
    // While it waits, the last good template is live.
    let waiting = json!({
        "state": "waiting", "planDigest": "sha256:1", "since": at(500), "target": template,
        "declared": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
    });
    let paused = guards(&|live| {
        let live = &mut live.daemon_sets[0];
        let annotation = waiting.to_string();
        live.annotations = [(ROLLOUT_ANNOTATION, annotation.as_str())].into_iter().collect();
        live.spec.update_strategy = UpdateStrategy::OnDelete;
        let raw = Arc::make_mut(&mut live.raw);
        raw["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        raw["metadata"]["annotations"] = json!({ROLLOUT_ANNOTATION: annotation});
    });
    assert_eq!(paused, []);
}
