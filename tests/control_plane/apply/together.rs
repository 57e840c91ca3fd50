//! Several runs, and several DaemonSets: which run waits for which lock, and the state that an
//! interrupted run leaves.

use std::thread;

use serde_json::json;

use super::*;
use crate::harness::Program;

const NODES: usize = 10;

/// Pods of this version do not become ready during a test, and have no failure.
fn endless(manifest: &str) -> String {
    slowly(manifest).replace("500ms", "24h")
}

#[test]
fn concurrent_and_interrupted_runs() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let scenarios: [fn(&ControlPlane); 6] = [
        the_second_of_two_runs_reports_the_lock_holder,
        an_interrupted_run_waits_for_its_pods_and_is_continued,
        a_terminated_run_reports_it,
        a_run_that_is_interrupted_twice_ends_at_once,
        a_run_after_its_timeout_stops_safely,
        an_interrupt_stops_all_daemon_sets,
    ];
    thread::scope(|scope| {
        for scenario in scenarios {
            let plane = &plane;
            scope.spawn(move || scenario(plane));
        }
    });
}

fn the_second_of_two_runs_reports_the_lock_holder(plane: &ControlPlane) {
    let version = |image: &str| slowly(&manifest("two", image, &at_most("2")));
    let fleet = Fleet::new(plane, "two", NODES, &version("v1"));
    let watcher = fleet.watch();
    let first = fleet.start(&version("v2"), &[]);
    wait_until("pods to be deleted", SOON, || watcher.gone() > 0);
    let second = fleet.apply(&version("v3"), &["--lock-timeout=0s"]);
    assert_eq!(second.status.code(), Some(7), "{}", output_text(&second));
    assert!(output_text(&second).contains("two/agent is locked by "), "{}", output_text(&second));
    let first = first.wait();
    assert_eq!(first.status.code(), Some(0), "{}", output_text(&first));
    fleet.is_replaced_within(2, &watcher.end(), 2);
}

fn an_interrupted_run_waits_for_its_pods_and_is_continued(plane: &ControlPlane) {
    let version = |image: &str| slowly(&manifest("once", image, &at_most("2")));
    let fleet = Fleet::new(plane, "once", NODES, &version("v1"));
    let watcher = fleet.watch();
    let run = fleet.start(&version("v2"), &[]);
    wait_until("pods to be deleted", SOON, || watcher.gone() > 0);
    run.signal("INT");
    let output = run.wait();
    assert_eq!(output.status.code(), Some(130), "{}", output_text(&output));
    assert!(watcher.gone() < NODES, "it stopped: {}", output_text(&output));
    assert_eq!(fleet.ready(), NODES, "its pods are ready again: {}", output_text(&output));
    assert_eq!(fleet.strategy(), "OnDelete", "paused: {}", output_text(&output));
    for words in [" in flight; press again to stop at once", "  paused: the run was interrupted"] {
        assert!(output_text(&output).contains(words), "{words}: {}", output_text(&output));
    }
    let again = fleet.apply(&version("v2"), &["--lock-timeout=0s"]);
    assert_eq!(again.status.code(), Some(0), "{}", output_text(&again));
    fleet.is_replaced_within(2, &watcher.end(), 2);
}

fn a_terminated_run_reports_it(plane: &ControlPlane) {
    let version = |image: &str| slowly(&manifest("terminated", image, &at_most("2")));
    let fleet = Fleet::new(plane, "terminated", NODES, &version("v1"));
    let watcher = fleet.watch();
    let run = fleet.start(&version("v2"), &[]);
    wait_until("pods to be deleted", SOON, || watcher.gone() > 0);
    run.signal("TERM");
    let output = run.wait();
    assert_eq!(output.status.code(), Some(143), "{}", output_text(&output));
    assert_eq!(fleet.strategy(), "OnDelete", "paused: {}", output_text(&output));
    let seen = watcher.end();
    assert!(seen.deleted.len() < NODES && seen.most_unavailable <= 2, "{seen:?}");
}

fn a_run_that_is_interrupted_twice_ends_at_once(plane: &ControlPlane) {
    let version = |image: &str| manifest("twice", image, &at_most("2"));
    let fleet = Fleet::new(plane, "twice", NODES, &version("v1"));
    let watcher = fleet.watch();
    let run = fleet.start(&endless(&version("v2")), &[]);
    wait_until("pods to be deleted", SOON, || watcher.gone() == 2);
    run.signal("INT");
    run.signal("TERM");
    let output = run.wait();
    // Which of the two comes last depends on the machine.
    assert!(matches!(output.status.code(), Some(130 | 143)), "{}", output_text(&output));
    assert_eq!(fleet.ready(), NODES - 2, "the run did not wait for them");
    // New pods that are not Ready do not block a run that replaces them.
    let again = fleet.apply(&version("v3"), &["--lock-timeout=0s"]);
    assert_eq!(again.status.code(), Some(0), "{}", output_text(&again));
    let seen = watcher.end();
    assert!(seen.most_unavailable <= 2, "{}", seen.most_unavailable);
    assert_eq!(fleet.images(), ["v3".to_owned()].into());
}

fn a_run_after_its_timeout_stops_safely(plane: &ControlPlane) {
    let version = |image: &str| manifest("time", image, &at_most("3"));
    let fleet = Fleet::new(plane, "time", NODES, &version("v1"));
    let watcher = fleet.watch();
    let output = fleet.apply(&endless(&version("v2")), &["--timeout=12s"]);
    assert_eq!(output.status.code(), Some(4), "{}", output_text(&output));
    assert_eq!(fleet.strategy(), "OnDelete", "{}", output_text(&output));
    let again = fleet.apply(&version("v3"), &[]);
    assert_eq!(again.status.code(), Some(0), "{}", output_text(&again));
    let seen = watcher.end();
    assert!(seen.most_unavailable <= 3, "{}", seen.most_unavailable);
}

/// DaemonSets of these names, each with an image, as one file.
fn several(namespace: &str, images: &[(&str, &str)]) -> String {
    let one = |(name, image): &(&str, &str)| {
        slowly(&manifest(namespace, image, &at_most("5")))
            .replace("name: agent,", &format!("name: {name},"))
            .replace("app: agent", &format!("app: {name}"))
    };
    images.iter().map(one).collect::<Vec<_>>().join("---\n")
}

fn policy(name: &str, after: &str) -> String {
    format!(
        "---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: {name}}}
spec: {{selects: {{names: [order/{name}]}}, after: [{after}]}}
"
    )
}

fn apply_all(plane: &ControlPlane, manifest: &str, flags: &[&str]) -> Program {
    let arguments = [&["--yes", "-f", "all.yaml", "--progress-deadline=20s"], flags].concat();
    plane.ds_apply(&arguments, &[("all.yaml", manifest)])
}

fn image_of(plane: &ControlPlane, namespace: &str, name: &str) -> String {
    let image = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    plane.kubectl(&["--namespace", namespace, "get", "daemonset", name, image])
}

fn an_interrupt_stops_all_daemon_sets(plane: &ControlPlane) {
    let namespace = "interrupted";
    plane.kubectl(&["create", "namespace", namespace]);
    let version = |image| several(namespace, &[("one", image), ("two", image)]);
    let created = apply_all(plane, &version("v1"), &[]).run();
    assert_eq!(created.status.code(), Some(0), "{}", output_text(&created));
    let watcher = Watcher::begin(plane.client(), namespace, NODES);
    let run = apply_all(plane, &version("v2"), &["--keep-going"]).start();
    wait_until("pods to be deleted", SOON, || watcher.gone() > 0);
    run.signal("INT");
    let output = run.wait();
    assert_eq!(output.status.code(), Some(130), "{}", output_text(&output));
    assert_eq!(
        image_of(plane, namespace, "two"),
        "cr.example/agent:v1",
        "{}",
        output_text(&output)
    );
    drop(watcher.end());
}

/// `a-last` comes after `c-middle`, and that after `b-first`.
#[test]
fn daemon_sets_begin_when_those_that_come_before_them_are_done() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(6));
    plane.kubectl(&["create", "namespace", "order"]);
    let policies = policy("a-last", "order/c-middle") + &policy("c-middle", "order/b-first");
    let all = |last, first, middle| {
        several("order", &[("a-last", last), ("b-first", first), ("c-middle", middle)]) + &policies
    };
    let live = || {
        ["a-last", "b-first", "c-middle"]
            .map(|name| image_of(&plane, "order", name).rsplit(':').next().unwrap().to_owned())
    };
    let version = |name: &str| {
        let version = "--output=jsonpath={.metadata.resourceVersion} {.metadata.generation}";
        plane.kubectl(&["--namespace=order", "get", "daemonset", name, version])
    };
    let created = apply_all(&plane, &all("v1", "v1", "v1"), &[]).run();
    assert_eq!(created.status.code(), Some(0), "{}", output_text(&created));

    let rolled = apply_all(&plane, &all("v2", "v2", "v2"), &[]).run();
    assert_eq!(rolled.status.code(), Some(0), "{}", output_text(&rolled));
    let text = stdout(&rolled);
    let done = |name| text.find(&format!("order/{name}  done")).unwrap();
    assert!(done("b-first") < done("c-middle") && done("c-middle") < done("a-last"), "{text}");

    // A predecessor aborts: those after it do not begin, not even with --keep-going.
    let words = "order/a-last does not begin: it comes after order/c-middle, which was aborted";
    for (flags, retried) in [(&[][..], "v3"), (&["--keep-going", "--retry"], "v4")] {
        let untouched = version("a-last");
        let aborted = apply_all(&plane, &all("v3", retried, "v3-bad"), flags).run();
        assert_eq!(aborted.status.code(), Some(4), "{}", output_text(&aborted));
        assert!(output_text(&aborted).contains(words), "{}", output_text(&aborted));
        assert_eq!(live(), ["v2", retried, "v2"], "{}", output_text(&aborted));
        assert_eq!(version("a-last"), untouched, "{}", output_text(&aborted));
    }
    // Also if the run applies nothing else.
    let untouched = version("a-last");
    let alone = apply_all(&plane, &all("v3", "v4", "v3-bad"), &["order/a-last"]).run();
    assert_eq!(alone.status.code(), Some(8), "{}", output_text(&alone));
    assert!(output_text(&alone).contains(words), "{}", output_text(&alone));
    assert_eq!(version("a-last"), untouched, "{}", output_text(&alone));

    let fixed = apply_all(&plane, &all("v3", "v4", "v5"), &[]).run();
    assert_eq!(fixed.status.code(), Some(0), "{}", output_text(&fixed));
    assert_eq!(live(), ["v3", "v4", "v5"], "{}", output_text(&fixed));
}

/// Its changes are part of the plan, and a node that is begun without it would be disturbed twice.
#[test]
fn daemon_sets_of_a_shared_budget_wait_for_one_whose_plan_is_stale() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(3));
    plane.kubectl(&["create", "namespace", "share"]);
    let version = |image| {
        let policy = policy("one", "").replace("order/one", "share/one, share/two");
        several("share", &[("one", image), ("two", image)])
            + &policy.replace("after: []", "sharedBudget: 1")
    };
    let created = apply_all(&plane, &version("v1"), &[]).run();
    assert_eq!(created.status.code(), Some(0), "{}", output_text(&created));
    let watcher = Watcher::begin(plane.client(), "share", 6);
    let kubectl = |args: &[&str]| plane.kubectl(&[&["--namespace=share"], args].concat());
    let hold = |holder: &str| {
        let now = jiff::Timestamp::now();
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": 3600,
            "renewTime": format!("{now:.6}"),
        });
        kubectl(&["patch", "lease", "ds-plan-two", "-p", &json!({"spec": spec}).to_string()]);
    };
    let runs = |flags: &[&str], other: &str| {
        hold("another run");
        let run = apply_all(&plane, &version("v2"), flags).start();
        let holder = ["get", "lease", "ds-plan-one", "--output=jsonpath={.spec.holderIdentity}"];
        wait_until("the first lock", SOON, || !kubectl(&holder).is_empty());
        kubectl(&["set", "image", "daemonset/two", &format!("two=cr.example/agent:{other}")]);
        hold("");
        run.wait()
    };
    let output = runs(&[], "v8");
    assert_eq!(output.status.code(), Some(5), "{}", output_text(&output));
    let words = "share/one  waiting: step rest waits for share/two, which does not continue";
    assert!(output_text(&output).contains(words), "{}", output_text(&output));
    assert_eq!(image_of(&plane, "share", "one"), "cr.example/agent:v1", "it was not written");
    let revisions = kubectl(&["get", "controllerrevision", "--selector=app=one", "--output=name"]);
    assert_eq!(revisions.lines().count(), 1, "{revisions}");
    let replaced = |name: &str| images_of_pods(&plane, name).matches("v2").count();
    assert_eq!(replaced("one"), 0, "{}", output_text(&output));
    let output = runs(&["--keep-going", "--force-conflicts=kubectl-set"], "v9");
    assert_eq!(output.status.code(), Some(5), "{}", output_text(&output));
    assert_eq!(replaced("one"), 3, "{}", output_text(&output));
    drop(watcher.end());
}

/// The images of the pods of a DaemonSet.
fn images_of_pods(plane: &ControlPlane, name: &str) -> String {
    let selector = format!("--selector=app={name}");
    let images = "--output=jsonpath={.items[*].spec.containers[0].image}";
    plane.kubectl(&["--namespace=share", "get", "pods", &selector, images])
}

/// A stopped holder whose lock another run has taken deletes nothing more when it continues.
/// Requests in flight at that moment cannot be fenced: there are at most sixteen, and never more
/// than the budget allows. Here it is stopped when its deletes are answered, and more are only due
/// when a pod is ready. The audit log shows who deletes what.
#[test]
fn a_stopped_holder_deletes_nothing_after_it_lost_its_lock() {
    let plane = ControlPlane::builder()
        .audit()
        .user("first", &["system:masters"])
        .user("second", &["system:masters"])
        .start();
    plane.create_nodes(three_zones(NODES));
    let version =
        |image: &str| slowly(&manifest("stopped", image, &at_most("2"))).replace("500ms", "4s");
    let fleet = Fleet::new(&plane, "stopped", NODES, &version("v1").replace("4s", "0s"));
    let watcher = fleet.watch();
    let manifest = version("v2");
    let run = |user: &str| {
        let arguments = ["--yes", "-f", "agent.yaml", "--lease=2s"];
        let files = [("agent.yaml", manifest.as_str())];
        ControlPlane::ds_apply_by(&plane.kubeconfig_of(user), &arguments, &files).start()
    };
    let deletes = |user: &str| {
        let log = plane.audit_log();
        let of_user = log.iter().filter(|line| line["user"]["username"] == user);
        let pods = of_user.filter(|line| line["objectRef"]["resource"] == "pods");
        pods.filter(|line| line["verb"] == "delete").count()
    };
    let first = run("first");
    wait_until("the first deletes", SOON, || deletes("first") == 2);
    first.signal("STOP");
    let second = run("second");
    wait_until("the second run to take the lock and delete", SOON, || deletes("second") > 0);
    first.signal("CONT");
    let (first, second) = (first.wait(), second.wait());
    assert_eq!(first.status.code(), Some(7), "{}", output_text(&first));
    assert_eq!(second.status.code(), Some(0), "{}", output_text(&second));
    assert_eq!((deletes("first"), deletes("second")), (2, NODES - 2), "{}", output_text(&first));
    fleet.is_replaced_within(2, &watcher.end(), 2);
}
