//! DaemonSets that are no longer in the source are deleted last, and no others.

use std::thread;

use super::request_log::RUNNER;
use super::*;

const NODES: usize = 4;

/// Several DaemonSets of one source, in one file.
fn source(namespace: &str, names: &[&str]) -> String {
    let one = |name: &&str| {
        manifest(namespace, "v1", &at_most("1"))
            .replace("name: agent,", &format!("name: {name},"))
            .replace("app: agent", &format!("app: {name}"))
    };
    names.iter().map(one).collect::<Vec<_>>().join("---")
}

impl Fleet<'_> {
    fn empty<'p>(plane: &'p ControlPlane, namespace: &str) -> Fleet<'p> {
        plane.kubectl(&["create", "namespace", namespace]);
        Fleet { plane, namespace: namespace.to_owned(), nodes: NODES }
    }

    /// Runs `ds-apply --yes --source-id` of these; checks the exit code.
    fn is_pruned(&self, id: &str, names: &[&str], flags: &[&str], code: i32) -> String {
        let id = format!("--source-id={id}");
        let output = self.apply(&source(&self.namespace, names), &[&[&*id], flags].concat());
        assert_eq!(
            output.status.code(),
            Some(code),
            "{names:?} {flags:?}: {}",
            output_text(&output)
        );
        output_text(&output)
    }

    fn daemon_sets(&self) -> BTreeSet<String> {
        let names =
            self.kubectl(&["get", "daemonsets", "--output=jsonpath={.items[*].metadata.name}"]);
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn pods_labelled(&self, name: &str) -> usize {
        let label = format!("--selector=app={name}");
        let names =
            self.kubectl(&["get", "pods", &label, "--output=jsonpath={.items[*].metadata.name}"]);
        names.split_whitespace().count()
    }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn only_daemon_sets_removed_from_the_source_are_deleted_and_last() {
    let plane = ControlPlane::builder().user(RUNNER, &["system:masters"]).audit().start();
    plane.create_nodes(three_zones(NODES));
    let plane = &plane;
    thread::scope(|scope| {
        scope.spawn(|| both_cascades(plane));
        scope.spawn(|| another_daemon_set_fails(plane));
        scope.spawn(|| daemon_sets_of_other_sources(plane));
        scope.spawn(|| created_again_meanwhile(plane));
    });
}

fn both_cascades(plane: &ControlPlane) {
    let fleet = Fleet::empty(plane, "cascades");
    fleet.is_pruned("cascades", &["a", "b", "c", "d", "e"], &["--prune"], 0);
    wait_until("the pods of all", SOON, || {
        fleet.pods_labelled("d") == NODES && fleet.pods_labelled("e") == NODES
    });
    let marks = "--output=jsonpath={.items[*].metadata.annotations.ds-plan\\.dev/source-id}";
    assert_eq!(fleet.kubectl(&["get", "daemonsets", marks]), ["cascades"; 5].join(" "));

    // Without --prune nothing is deleted; the plan of a pull request shows what would be.
    fleet.is_pruned("cascades", &["a", "b", "c", "d"], &[], 0);
    assert_eq!(fleet.daemon_sets().len(), 5);
    let manifest = source("cascades", &["a", "b", "c", "d"]);
    let arguments = ["--detailed-exitcode", "-f", "agent.yaml", "--source-id=cascades", "--prune"];
    let saving = [&arguments[..], &["--out=plan.json"]].concat();
    let planned = plane.ds_plan(&saving, &[("agent.yaml", &manifest)]);
    assert_eq!(planned.status.code(), Some(2), "{}", output_text(&planned));
    let shown = output_text(&planned);
    assert!(
        shown.contains("- DaemonSet cascades/e")
            && shown.contains("on 4 nodes are deleted at once"),
        "{shown}"
    );
    assert!(shown.contains("Plan: 0 to create, 4 to delete"), "{shown}");

    let message = fleet.is_pruned("cascades", &["a", "b", "c", "d"], &["--prune"], 0);
    assert!(message.contains("deleting the DaemonSet and its 4 pods"), "{message}");
    wait_until("the pods of e to be deleted", SOON, || fleet.pods_labelled("e") == 0);
    assert_eq!(fleet.daemon_sets(), names(&["a", "b", "c", "d"]));

    fleet.is_pruned("cascades", &["a", "b", "c"], &["--prune", "--cascade=orphan"], 0);
    wait_until("d to be deleted", SOON, || fleet.daemon_sets() == names(&["a", "b", "c"]));
    assert_eq!(fleet.pods_labelled("d"), NODES, "the pods are kept");

    // A wrong folder is refused; the same with `--allow-mass-deletion` is accepted.
    let refused = fleet.is_pruned("cascades", &["a"], &["--prune"], 6);
    assert!(refused.contains("--allow-mass-deletion"), "{refused}");
    assert_eq!(fleet.daemon_sets(), names(&["a", "b", "c"]));
    fleet.is_pruned("cascades", &["a"], &["--prune", "--allow-mass-deletion"], 0);
    assert_eq!(fleet.daemon_sets(), names(&["a"]));
    let all = source("cascades", &["a"]);
    let next = plane.ds_plan(&arguments, &[("agent.yaml", &all)]);
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

/// Another DaemonSet of the source fails: nothing is deleted.
fn another_daemon_set_fails(plane: &ControlPlane) {
    let fleet = Fleet::empty(plane, "undone");
    fleet.is_pruned("undone", &["a", "b"], &["--prune"], 0);
    wait_until("the pods of a", SOON, || fleet.pods_labelled("a") == NODES);
    let bad = source("undone", &["a"]).replace(":v1", ":v2-bad");
    let flags = ["--source-id=undone", "--prune", "--progress-deadline=5s"];
    let output = fleet.apply(&bad, &flags);
    assert_eq!(output.status.code(), Some(4), "{}", output_text(&output));
    assert!(
        output_text(&output).contains("not deleted, because the rest did not succeed: undone/b"),
        "{}",
        output_text(&output)
    );
    assert_eq!(fleet.daemon_sets(), names(&["a", "b"]));
}

fn daemon_sets_of_other_sources(plane: &ControlPlane) {
    let fleet = Fleet::empty(plane, "mixed");
    fleet.is_pruned("one", &["a", "b"], &[], 0);
    fleet.is_pruned("two", &["c", "d"], &[], 0);
    // A copy with the source annotation, made by another user.
    let mut copy = fleet.json(&["get", "daemonset", "b"]);
    copy["metadata"] = serde_json::json!({
        "name": "copy", "namespace": "mixed", "annotations": copy["metadata"]["annotations"],
    });
    plane.kubectl_stdin(&["apply", "--filename=-"], &copy.to_string());
    let message = fleet.is_pruned("one", &["a"], &["--prune"], 0);
    assert!(message.contains("mixed/copy"), "{message}");
    assert_eq!(fleet.daemon_sets(), names(&["a", "c", "d", "copy"]));
    // The same manifests from another folder are no reason to delete the others.
    let elsewhere = source("mixed", &["c"]);
    let flags = ["--yes", "-f", "part.yaml", "--source-id=two", "--prune"];
    let refused = plane.ds_apply(&flags, &[("part.yaml", &elsewhere)]).run();
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
    assert!(output_text(&refused).contains("--allow-other-source"), "{}", output_text(&refused));
    assert_eq!(fleet.daemon_sets(), names(&["a", "c", "d", "copy"]));
}

/// After the plan was made, the DaemonSet was deleted and created again, with the same source
/// annotation.
fn created_again_meanwhile(plane: &ControlPlane) {
    let fleet = Fleet::empty(plane, "anew");
    fleet.is_pruned("anew", &["a", "b"], &[], 0);
    let manifest = source("anew", &["a"]);
    let files = [("agent.yaml", &*manifest)];
    let flags = ["-f", "agent.yaml", "--source-id=anew", "--prune", "-o", "json"];
    let planned = plane.ds_plan(&flags, &files);
    assert_eq!(planned.status.code(), Some(0), "{}", output_text(&planned));
    fleet.kubectl(&["delete", "daemonset", "b"]);
    fleet.is_pruned("anew", &["a", "b"], &[], 0);
    let plan = stdout(&planned);
    let files = [("agent.yaml", &*manifest), ("plan.json", &*plan)];
    let stale = plane.ds_apply(&["--plan", "plan.json", "-f", "agent.yaml"], &files).run();
    assert_eq!(stale.status.code(), Some(5), "{}", output_text(&stale));
    assert_eq!(fleet.daemon_sets(), names(&["a", "b"]));
    // A new plan deletes it.
    let planned = stdout(&plane.ds_plan(&flags, &[("agent.yaml", &*manifest)]));
    let files = [("agent.yaml", &*manifest), ("plan.json", &*planned)];
    let done = plane.ds_apply(&["--plan", "plan.json", "-f", "agent.yaml"], &files).run();
    assert_eq!(done.status.code(), Some(0), "{}", output_text(&done));
    assert_eq!(fleet.daemon_sets(), names(&["a"]));
}
