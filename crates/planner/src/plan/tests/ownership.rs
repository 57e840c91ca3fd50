//! Fields of other managers, and rollouts in progress.

use std::collections::BTreeSet;

use super::*;
use crate::annotations::ROLLOUT_ANNOTATION;
use crate::digest::template_digest;
use crate::plan::{FieldOwner, PauseState, PausedRollout};
use daemonset::model::RolloutPolicy;

/// The live object with `manager` as its only field manager.
pub(super) fn owned_by(snapshot: &mut Snapshot, manager: &str, operation: &str) {
    let live = Arc::make_mut(&mut snapshot.daemon_sets[0].raw);
    let entries = live["metadata"]["managedFields"].as_array_mut().unwrap();
    for entry in entries {
        entry["manager"] = json!(manager);
        entry["operation"] = json!(operation);
    }
}

fn planned_with(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    force_conflicts: &[&str],
) -> DaemonSetPlanAndGuards {
    let force_conflicts: BTreeSet<String> =
        force_conflicts.iter().map(|&name| name.to_owned()).collect();
    let mut plan = plan(Input {
        force_conflicts: &force_conflicts,
        ..Input::of(snapshot, std::slice::from_ref(desired))
    });
    (plan.daemon_sets.remove(0), plan.guards)
}

type DaemonSetPlanAndGuards = (DaemonSetPlan, Vec<Guard>);

pub(super) fn paths(plan: &DaemonSetPlan) -> Vec<&str> {
    plan.changes.iter().map(|change| change.path.as_str()).collect()
}

/// The live object has an env var and a priority class that are not in git, and another image.
fn edited() -> (Snapshot, DesiredDaemonSet) {
    let mut cluster = settled(2);
    let template = |cluster: &mut Cluster, change: fn(&mut Value)| {
        cluster.edit(|spec| change(&mut spec["template"]["spec"]));
    };
    template(&mut cluster, |pod| {
        pod["containers"][0]["env"] = json!([{"name": "DEBUG", "value": "1"}]);
        pod["priorityClassName"] = json!("system-node-critical");
    });
    settle(&mut cluster);
    let before = snapshot(&cluster);
    template(&mut cluster, |pod| {
        let fields = pod.as_object_mut().unwrap();
        fields.remove("priorityClassName");
        fields["containers"][0].as_object_mut().unwrap().remove("env");
        fields["containers"][0]["image"] = json!("foo/bar:2");
    });
    (before, desired(&cluster))
}

pub(super) const IMAGE: &str = "spec.template.spec.containers[c].image";
pub(super) const ENV: &str = "spec.template.spec.containers[c].env";
const PRIORITY: &str = "spec.template.spec.priorityClassName";

#[test]
fn applied_fields_that_are_not_in_git_are_removed() {
    let (before, wanted) = edited();
    let (plan, guards) = planned_with(&before, &wanted, &[]);
    assert_eq!(paths(&plan), [ENV, IMAGE, PRIORITY]);
    assert_eq!((plan.leftovers, plan.conflicts, guards), (vec![], vec![], vec![]));
}

#[test]
fn further_applies_keep_the_target_and_an_emptied_field_is_warned_about() {
    let context = |value: Value| {
        move |spec: &mut Value| {
            spec["template"]["spec"]["containers"][0]["securityContext"] = value.clone();
        }
    };
    for (live, owner, warned) in [
        (json!({"runAsUser": 1}), "ds-apply", true),
        (json!({"runAsUser": 1}), "helm", true),
        (json!({}), "ds-apply", false),
    ] {
        let mut cluster = settled(2);
        cluster.edit(context(live.clone()));
        settle(&mut cluster);
        let mut before = snapshot(&cluster);
        owned_by(&mut before, owner, "Apply");
        cluster.edit(context(json!({})));
        let wanted = desired(&cluster);
        let force_conflicts: BTreeSet<String> = [owner.to_owned()].into();
        let plan = plan(Input {
            force_conflicts: &force_conflicts,
            ..Input::of(&before, std::slice::from_ref(&wanted))
        });
        let target = &plan.daemon_sets[0].target_template;
        assert_eq!(*target, template_digest(wanted.spec.template.raw()), "{live} of {owner}");
        let codes: Vec<&str> = plan.warnings.iter().map(|it| it.code.as_str()).collect();
        assert_eq!(codes.contains(&"emptiedFields"), warned, "{live} of {owner}: {codes:?}");
    }
}

#[test]
fn conflicts_with_a_manager_are_forced_and_it_must_be_named() {
    let (mut before, wanted) = edited();
    owned_by(&mut before, "helm", "Apply");
    let (plan, guards) = planned_with(&before, &wanted, &[]);
    assert_eq!(paths(&plan), [ENV, IMAGE, PRIORITY]);
    let owner = |path: &str| FieldOwner { path: path.into(), manager: Some("helm".into()) };
    assert_eq!(plan.conflicts, [owner(IMAGE)]);
    assert_eq!(plan.forced_conflicts, ["helm"]);
    let [guard] = &guards[..] else { panic!("{guards:#?}") };
    assert_eq!(guard.code, GuardCode::ForceConflicts);
    assert_eq!(guard.allow_flag.as_deref(), Some("--force-conflicts=helm"));
    let (named, guards) = planned_with(&before, &wanted, &["helm"]);
    assert_eq!((named.forced_conflicts, guards), (plan.forced_conflicts, vec![]));
}

#[test]
fn fields_of_other_managers_are_kept_until_the_managers_are_named() {
    let (mut before, mut wanted) = edited();
    owned_by(&mut before, "kubectl-edit", "Update");
    let same_image = |raw: &mut Arc<Value>| {
        let image = Arc::make_mut(raw).pointer_mut("/spec/template/spec/containers/0/image");
        *image.unwrap() = json!("foo/bar");
    };
    same_image(&mut wanted.raw);
    same_image(&mut wanted.written);
    let (plan, guards) = planned_with(&before, &wanted, &[]);
    let stays = |path: &str| FieldOwner { path: path.into(), manager: Some("kubectl-edit".into()) };
    assert_eq!(
        plan.leftovers,
        [stays("spec.template.spec.containers[c].env[DEBUG]"), stays(PRIORITY)]
    );
    assert_eq!((plan.change, guards), (Change::None, vec![]));
    let (plan, guards) = planned_with(&before, &wanted, &["kubectl-edit"]);
    assert_eq!(paths(&plan), [ENV, PRIORITY]);
    assert_eq!((plan.leftovers, guards), (vec![], vec![]));
}

#[test]
fn without_managed_fields_the_manifest_decides_and_the_plan_warns() {
    let (mut before, wanted) = edited();
    before.coverage.managed_fields = false;
    let plan = planned(&before, &[wanted]);
    assert_eq!(paths(&plan.daemon_sets[0]), [ENV, IMAGE, PRIORITY]);
    let codes: Vec<&str> = plan.warnings.iter().map(|it| it.code.as_str()).collect();
    assert_eq!(codes, ["noManagedFields"]);
}

#[test]
fn a_merge_that_the_server_would_reject_is_warned_about() {
    let mut cluster = settled(1);
    let volume = |source: Value| {
        let mut volume = json!({"name": "data"});
        volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        json!([volume])
    };
    cluster.edit(|spec| {
        spec["template"]["spec"]["volumes"] = volume(json!({"emptyDir": {}}));
    });
    settle(&mut cluster);
    let mut before = snapshot(&cluster);
    owned_by(&mut before, "kubectl-edit", "Update");
    cluster.edit(|spec| {
        spec["template"]["spec"]["volumes"] =
            volume(json!({"hostPath": {"path": "/data", "type": ""}}));
    });
    let plan = planned(&before, &[desired(&cluster)]);
    let [warning] = &plan.warnings[..] else { panic!("{:#?}", plan.warnings) };
    assert_eq!(warning.code, "applyRefused");
    assert_eq!(
        warning.message,
        "the server would reject a server-side apply: \
         spec.template.spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"
    );
}

/// A snapshot in which the DaemonSet is paused or aborted.
pub(super) fn held(cluster: &Cluster, state: PauseState, failed: Option<String>) -> Snapshot {
    let pause = PausedRollout {
        state,
        declared: json!({
            "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}
        }),
        plan_digest: "sha256:6fd1".into(),
        from: None,
        since: at(500),
        commit: None,
        by: None,
        failed,
        target: None,
        waits_for: Vec::new(),
        failed_gate: None,
    };
    let mut snapshot = snapshot(cluster);
    let live = &mut snapshot.daemon_sets[0];
    let annotation = (ROLLOUT_ANNOTATION, serde_json::to_string(&pause).unwrap());
    live.annotations = [(annotation.0, annotation.1.as_str())].into_iter().collect();
    live.spec.update_strategy = daemonset::model::UpdateStrategy::OnDelete;
    let raw = Arc::make_mut(&mut live.raw);
    raw["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    raw["metadata"]["annotations"] = json!({annotation.0: annotation.1});
    snapshot
}

#[test]
fn the_status_of_a_paused_rollout_is_that_of_the_declared_strategy() {
    let mut cluster = settled(3);
    cluster.set_image("foo/bar:2");
    cluster.sync();
    let before = held(&cluster, PauseState::Aborted, None);
    let status = status(&before, |_| true);
    let one = &status.daemon_sets[0];
    assert_eq!(one.pause.as_ref().map(|pause| pause.state), Some(PauseState::Aborted));
    let explained = explain(&before, &cluster.daemon_set.key, &one.obstacles[0].node).unwrap();
    for reasons in [&one.obstacles[0].reasons, &explained.reasons] {
        assert!(!reasons.contains(&Reason::OnDelete.into()), "{reasons:?}");
    }
}

#[test]
fn a_paused_rollout_resumes_under_the_declared_strategy() {
    let mut cluster = settled(3);
    cluster.set_image("foo/bar:2");
    cluster.sync();
    let before = held(&cluster, PauseState::Paused, None);
    let plan = planned(&before, &[desired(&cluster)]);
    let one = &plan.daemon_sets[0];
    assert_eq!((one.change, paths(one)), (Change::None, vec![]), "the strategy is only paused");
    assert_eq!(one.pause.as_ref().map(|pause| pause.state), Some(PauseState::Paused));
    assert_eq!(
        one.strategy,
        Strategy::RollingUpdate { max_unavailable: 1, max_surge: 0, desired: 3 }
    );
    assert_eq!(plan.totals.actions.replace, 2, "{:#?}", lines(&plan));
}

#[test]
fn after_a_pause_with_nothing_left_to_replace_the_strategy_is_restored() {
    let cluster = settled(3);
    let plan = planned(&held(&cluster, PauseState::Paused, None), &[desired(&cluster)]);
    assert_eq!(plan.daemon_sets[0].change, Change::None);
    assert!(plan.has_changes());
}

#[test]
fn a_rollout_in_progress_resumes_regardless_of_pod_failures() {
    let mut cluster = settled(4);
    cluster.set_image("foo/bar:2");
    cluster.sync();
    cluster.sync();
    cluster.now = at(100_000);
    let plan = |before| planned(&before, &[desired(&cluster)]);
    let codes = |plan: &Plan| plan.guards.iter().map(|it| it.code).collect::<Vec<_>>();
    assert_eq!(codes(&plan(snapshot(&cluster))), [GuardCode::Deadlock]);
    assert_eq!(codes(&plan(held(&cluster, PauseState::Paused, None))), []);
}

#[test]
fn a_template_that_failed_is_blocked_and_another_is_not() {
    let mut cluster = settled(2);
    let good = cluster.daemon_set.spec.template.clone();
    cluster.set_image("foo/bar:broken");
    let failed = template_digest(cluster.daemon_set.spec.template.raw());
    let mut before = held(&cluster, PauseState::Aborted, Some(failed));
    let live = &mut before.daemon_sets[0];
    Arc::make_mut(&mut live.raw)["spec"]["template"] = good.raw().clone();
    live.spec.template = good;
    let codes = |cluster: &Cluster| -> Vec<GuardCode> {
        planned(&before, &[desired(cluster)]).guards.iter().map(|it| it.code).collect()
    };
    assert_eq!(codes(&cluster), [GuardCode::FailedTemplate]);
    cluster.set_image("foo/bar:fixed");
    assert_eq!(codes(&cluster), []);
}

/// Also if a run of it was killed, which leaves it paused.
#[test]
fn the_way_back_after_an_abort_keeps_only_the_budgets() {
    let mut cluster = Cluster::of(4);
    cluster.set_image("foo/bar:1");
    settle(&mut cluster);
    cluster.set_image("foo/bar:broken");
    let failed = Some(template_digest(cluster.daemon_set.spec.template.raw()));
    cluster.sync();
    cluster.sync();
    cluster.set_image("foo/bar:1");
    let mut policy = RolloutPolicy::named("p");
    let steps = json!([{"name": "canary", "nodes": 1, "approve": true}]);
    policy.spec.steps = serde_json::from_value(steps).unwrap();
    let policy = Some(Arc::new(policy));
    let wanted =
        |cluster: &Cluster| DesiredDaemonSet { policy: policy.clone(), ..desired(cluster) };
    let steps_of = |plan: &Plan| plan.daemon_sets[0].steps.len();
    let is_said = |plan: &Plan| plan.warnings.iter().any(|it| it.code == WAY_BACK);
    for (state, failed, steps) in [
        (PauseState::Aborted, &failed, 0),
        (PauseState::Paused, &failed, 0),
        (PauseState::Waiting, &failed, 0),
        (PauseState::Paused, &None, 2),
    ] {
        let before = held(&cluster, state, failed.clone());
        let plan = planned(&before, &[wanted(&cluster)]);
        assert_eq!(plan.totals.actions.replace, 1, "{:#?}", lines(&plan));
        assert_eq!((steps_of(&plan), is_said(&plan)), (steps, steps == 0), "{state:?} {failed:?}");
    }
    let before = held(&cluster, PauseState::Aborted, failed);
    cluster.set_image("foo/bar:2");
    let other = planned(&before, &[wanted(&cluster)]);
    assert_eq!((steps_of(&other), is_said(&other)), (2, false), "another template");
}

#[test]
fn an_unreadable_pause_is_warned_about() {
    let cluster = settled(1);
    let mut before = held(&cluster, PauseState::Paused, None);
    before.daemon_sets[0].annotations = [(ROLLOUT_ANNOTATION, "{")].into_iter().collect();
    let plan = planned(&before, &[desired(&cluster)]);
    assert_eq!(plan.warnings[0].code, "pauseUnreadable");
    assert_eq!(
        paths(&plan.daemon_sets[0]),
        ["spec.updateStrategy.rollingUpdate", "spec.updateStrategy.type"]
    );
}

#[test]
fn a_daemon_set_of_a_git_ops_controller_is_guarded() {
    let label = |snapshot: &mut Snapshot| {
        let key = "kustomize.toolkit.fluxcd.io/name";
        snapshot.daemon_sets[0].labels = [(key, "apps")].into_iter().collect();
    };
    let annotation = |snapshot: &mut Snapshot| {
        let key = "argocd.argoproj.io/tracking-id";
        snapshot.daemon_sets[0].annotations = [(key, "x")].into_iter().collect();
    };
    for (rule, mark, want) in [
        ("no controller", (|_| {}) as fn(&mut Snapshot), None),
        ("a label", label, Some("Flux manages this DaemonSet (label kustomize.toolkit")),
        ("an annotation", annotation, Some("Argo CD manages this DaemonSet (annotation argocd")),
        (
            "a manager",
            |snapshot| owned_by(snapshot, "helm-controller", "Apply"),
            Some("Flux manages this DaemonSet (field manager helm-controller)"),
        ),
    ] {
        let (mut before, wanted) = edited();
        mark(&mut before);
        let guards = planned(&before, &[wanted]).guards;
        let found = guards.iter().find(|guard| guard.code == GuardCode::GitOps);
        let starts = found.map(|guard| guard.message.starts_with(want.unwrap_or("nothing")));
        assert_eq!(starts, want.map(|_| true), "{rule}: {found:?}");
    }
    let cluster = settled(2);
    let mut before = snapshot(&cluster);
    label(&mut before);
    assert_eq!(planned(&before, &[desired(&cluster)]).guards, [], "nothing is applied");

    // It has left the object, which only its field manager remembers: the user takes that over.
    let (mut before, wanted) = edited();
    owned_by(&mut before, "kustomize-controller", "Apply");
    let flags = |before: &Snapshot, taken: &[&str]| {
        let guards = planned_with(before, &wanted, taken).1.into_iter();
        let found = guards.filter(|guard| guard.code == GuardCode::GitOps);
        found.map(|guard| guard.allow_flag).collect::<Vec<_>>()
    };
    let flag = "--force-conflicts=kustomize-controller";
    assert_eq!(flags(&before, &[]), [Some(flag.to_owned())]);
    assert_eq!(flags(&before, &["kustomize-controller"]), []);
    // It has not left.
    label(&mut before);
    assert_eq!(flags(&before, &["kustomize-controller"]), [None]);
}
