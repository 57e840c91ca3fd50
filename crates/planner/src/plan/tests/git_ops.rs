//! DaemonSets that Flux or Argo CD applies under `OnDelete`, and whose pods `ds-apply roll` replaces:
//! a preview shows what will be written, and an apply is refused.

use std::collections::BTreeSet;

use super::ownership::{ENV, IMAGE, held, owned_by, paths};
use super::*;
use daemonset::model::UpdateStrategy;

/// The label of Flux.
const LABEL: &str = "kustomize.toolkit.fluxcd.io/name";

const AFFINITY: &str = "spec.template.spec.affinity";

const GUARD: &str = "Flux manages this DaemonSet (label kustomize.toolkit.fluxcd.io/name)";

/// A settled cluster of three nodes. The DaemonSet is `OnDelete`, has an environment variable, and
/// runs on the first node only.
fn on_delete() -> Cluster {
    let mut cluster = Cluster::of(3);
    cluster.nodes[0].labels = labels([("disk", "ssd")]);
    cluster.edit(|spec| {
        let pod = &mut spec["template"]["spec"];
        pod["containers"][0]["env"] = json!([{"name": "DEBUG", "value": "1"}]);
        pod["affinity"]["nodeAffinity"] = json!({
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
            ]},
        });
    });
    cluster.set_on_delete();
    settle(&mut cluster);
    cluster
}

/// Removes the environment variable and the affinity, and changes nothing else.
fn remove_fields(cluster: &mut Cluster) {
    cluster.edit(|spec| {
        let pod = spec["template"]["spec"].as_object_mut().unwrap();
        pod.remove("affinity");
        pod["containers"][0].as_object_mut().unwrap().remove("env");
    });
}

/// The cluster after Flux has applied the DaemonSet, with the label that git does not have.
fn by_flux(cluster: &Cluster) -> Snapshot {
    let mut snapshot = snapshot(cluster);
    owned_by(&mut snapshot, "kustomize-controller", "Apply");
    mark(&mut snapshot);
    let raw = Arc::make_mut(&mut snapshot.daemon_sets[0].raw);
    let label = format!("f:{LABEL}");
    raw["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:labels"][label] = json!({});
    snapshot
}

fn mark(snapshot: &mut Snapshot) {
    let live = &mut snapshot.daemon_sets[0];
    live.labels = labels([(LABEL, "apps")]);
    Arc::make_mut(&mut live.raw)["metadata"]["labels"] = json!({LABEL: "apps"});
}

fn planned_for(intent: Intent, before: &Snapshot, cluster: &Cluster) -> Plan {
    plan(Input { intent, ..Input::of(before, &[desired(cluster)]) })
}

fn guards(plan: &Plan) -> Vec<GuardCode> {
    plan.guards.iter().map(|guard| guard.code).collect()
}

fn git_ops_warnings(plan: &Plan) -> Vec<&str> {
    let warnings = plan.warnings.iter().filter(|it| it.code == "gitOps");
    warnings.map(|it| it.message.as_str()).collect()
}

#[test]
fn a_preview_of_a_new_image_is_a_warning_and_not_a_guard() {
    let mut cluster = on_delete();
    let before = by_flux(&cluster);
    cluster.set_image("foo/bar:2");
    let plan = planned_for(Intent::Preview, &before, &cluster);
    assert_eq!(plan.guards, []);
    let one = &plan.daemon_sets[0];
    assert_eq!(paths(one), [IMAGE], "the label of Flux stays");
    assert!(one.conflicts.is_empty() && one.leftovers.is_empty(), "{one:#?}");
    assert_eq!(one.forced_conflicts, [""; 0]);
    assert_eq!(
        git_ops_warnings(&plan),
        [
            "Flux applies this DaemonSet (label kustomize.toolkit.fluxcd.io/name): the plan shows what \
          it will write under OnDelete; replace the pods with `ds-apply roll`"
        ]
    );
}

#[test]
fn an_apply_of_a_new_image_is_refused() {
    let mut cluster = on_delete();
    let before = by_flux(&cluster);
    cluster.set_image("foo/bar:2");
    let plan = planned_for(Intent::Apply, &before, &cluster);
    assert_eq!(guards(&plan), [GuardCode::ForceConflicts, GuardCode::GitOps]);
    assert_eq!(plan.daemon_sets[0].forced_conflicts, ["kustomize-controller"]);
    let guard = &plan.guards[1];
    let message = format!("{GUARD}, and applies it. Replace its pods with `ds-apply roll`");
    assert_eq!((&guard.message, &guard.allow_flag), (&message, &None));
    assert_eq!(git_ops_warnings(&plan), [""; 0]);
    assert_eq!(planned(&before, &[desired(&cluster)]), plan, "an apply is the default");
}

/// No field is in conflict: the manifest sets none to another value.
#[test]
fn a_preview_shows_fields_that_are_removed_from_git() {
    let mut cluster = on_delete();
    let live = snapshot(&cluster);
    remove_fields(&mut cluster);
    for (manager, operation) in [
        ("kustomize-controller", "Apply"),
        ("helm-controller", "Apply"),
        ("helm-controller", "Update"),
        ("argocd-controller", "Apply"),
        ("argocd-controller", "Update"),
    ] {
        let mut before = live.clone();
        owned_by(&mut before, manager, operation);
        let plan = planned_for(Intent::Preview, &before, &cluster);
        let one = &plan.daemon_sets[0];
        assert_eq!(paths(one), [AFFINITY, ENV], "{manager} {operation}");
        assert!(one.conflicts.is_empty() && one.leftovers.is_empty(), "{one:#?}");
        assert_eq!(plan.totals.actions.create, 2, "{:#?}", lines(&plan));
        assert_eq!(plan.guards, [], "{manager} {operation}");
        assert_eq!(git_ops_warnings(&plan).len(), 1, "{manager} {operation}");

        // An apply removes only what ds-apply owns.
        let plan = planned_for(Intent::Apply, &before, &cluster);
        let one = &plan.daemon_sets[0];
        assert_eq!((one.change, one.leftovers.len()), (Change::None, 2), "{manager} {operation}");
        assert_eq!(plan.guards, [], "{manager} {operation}");
    }
}

#[test]
fn a_diff_and_an_explanation_show_the_same_removal() {
    let mut cluster = on_delete();
    let before = by_flux(&cluster);
    remove_fields(&mut cluster);
    let wanted = [desired(&cluster)];
    let found = diff(DiffInput {
        snapshot: &before,
        desired: &wanted,
        force_conflicts: &BTreeSet::new(),
        source: SourceInfo::default(),
        warnings: Vec::new(),
        show_values: ShownValues::None,
    });
    let paths: Vec<&str> =
        found.daemon_sets[0].changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, [AFFINITY, ENV]);
    let input = Input { intent: Intent::Preview, ..Input::of(&before, &wanted) };
    let explained = explain_planned(input, &cluster.daemon_set.key, &"node-1".into()).unwrap();
    assert_eq!((explained.may_start, explained.action), (true, Action::Create));
}

#[test]
fn nothing_to_write_is_no_warning() {
    let cluster = on_delete();
    let plan = planned_for(Intent::Preview, &by_flux(&cluster), &cluster);
    assert_eq!(plan.daemon_sets[0].change, Change::None);
    assert_eq!((plan.guards, plan.warnings), (vec![], vec![]));
}

fn rolling() -> Cluster {
    let mut cluster = on_delete();
    cluster.set_limits(&json!(1), &json!(0));
    cluster
}

/// The commit that takes the pods from the DaemonSet controller: the strategy is written together with
/// the template.
#[test]
fn a_preview_of_the_change_to_on_delete_is_no_guard() {
    let (before, mut git) = (by_flux(&rolling()), on_delete());
    git.set_image("foo/bar:2");
    let plan = planned_for(Intent::Preview, &before, &git);
    assert_eq!((plan.guards.len(), git_ops_warnings(&plan).len()), (0, 1), "{:?}", plan.guards);
    assert_eq!(plan.totals.actions.replace, 0, "{:#?}", lines(&plan));
    let plan = planned_for(Intent::Apply, &before, &git);
    assert_eq!(guards(&plan), [GuardCode::ForceConflicts, GuardCode::GitOps]);
}

#[test]
fn a_preview_is_that_of_an_apply_unless_on_delete_is_declared() {
    for (rule, live, mut git) in
        [("neither", rolling(), rolling()), ("only live", on_delete(), rolling())]
    {
        let before = by_flux(&live);
        git.set_image("foo/bar:2");
        let plan = planned_for(Intent::Preview, &before, &git);
        assert_eq!(guards(&plan), [GuardCode::ForceConflicts, GuardCode::GitOps], "{rule}");
        let starts = format!("{GUARD} and would revert this apply. Let Flux apply `updateStrategy");
        assert!(plan.guards[1].message.starts_with(&starts), "{rule}: {:?}", plan.guards[1]);
        assert_eq!(plan, planned_for(Intent::Apply, &before, &git), "{rule}");
    }
}

/// The strategy is `OnDelete` only for the time of the pause.
#[test]
fn a_preview_of_a_paused_rollout_is_that_of_an_apply() {
    let mut cluster = on_delete();
    let mut before = held(&cluster, PauseState::Paused, None);
    mark(&mut before);
    assert_eq!(before.daemon_sets[0].spec.update_strategy, UpdateStrategy::OnDelete);
    cluster.set_image("foo/bar:2");
    let plan = planned_for(Intent::Preview, &before, &cluster);
    assert!(guards(&plan).contains(&GuardCode::GitOps), "{:?}", plan.guards);
    assert_eq!(plan, planned_for(Intent::Apply, &before, &cluster));
}

#[test]
fn a_preview_keeps_conflicts_with_other_managers() {
    let mut cluster = on_delete();
    let mut before = by_flux(&cluster);
    let raw = Arc::make_mut(&mut before.daemon_sets[0].raw);
    let entries = raw["metadata"]["managedFields"].as_array_mut().unwrap();
    let mut edited = entries[0].clone();
    edited["manager"] = json!("kubectl-edit");
    edited["operation"] = json!("Update");
    edited["fieldsV1"] = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
        r#"k:{"name":"c"}"#: {"f:image": {}},
    }}}}});
    entries.push(edited);
    cluster.set_image("foo/bar:2");
    let plan = planned_for(Intent::Preview, &before, &cluster);
    let one = &plan.daemon_sets[0];
    assert_eq!(paths(one), [IMAGE]);
    assert_eq!(one.forced_conflicts, ["kubectl-edit"]);
    let [guard] = &plan.guards[..] else { panic!("{:#?}", plan.guards) };
    assert_eq!(guard.code, GuardCode::ForceConflicts);
    assert_eq!(guard.allow_flag.as_deref(), Some("--force-conflicts=kubectl-edit"));
    assert_eq!(git_ops_warnings(&plan).len(), 1);
}

/// The user says that Flux has left, of which only its field manager remains.
#[test]
fn a_preview_without_a_controller_is_that_of_an_apply() {
    let mut cluster = on_delete();
    let mut before = snapshot(&cluster);
    owned_by(&mut before, "kustomize-controller", "Apply");
    cluster.set_image("foo/bar:2");
    let wanted = [desired(&cluster)];
    let left: BTreeSet<String> = ["kustomize-controller".to_owned()].into();
    let planned =
        |intent| plan(Input { intent, force_conflicts: &left, ..Input::of(&before, &wanted) });
    let preview = planned(Intent::Preview);
    assert_eq!((preview.guards.len(), preview.warnings.len()), (0, 0), "{preview:#?}");
    assert_eq!(preview.daemon_sets[0].forced_conflicts, ["kustomize-controller"]);
    assert_eq!(preview, planned(Intent::Apply));
}

#[test]
fn a_preview_needs_no_managed_fields() {
    let mut cluster = on_delete();
    let mut before = by_flux(&cluster);
    before.coverage.managed_fields = false;
    remove_fields(&mut cluster);
    let plan = planned_for(Intent::Preview, &before, &cluster);
    assert_eq!(paths(&plan.daemon_sets[0]), [AFFINITY, ENV]);
    assert_eq!(plan.guards, []);
    assert_eq!(git_ops_warnings(&plan).len(), 1);
}
