//! A rollout from one version to the next, within the budget; and the handling of a broken version.

use std::thread;

use super::*;

#[test]
fn a_fleet_is_replaced_within_any_budget() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(60));
    let one = |namespace: &str, budget: &str, allowed: usize| {
        let version = |image: &str| manifest(namespace, image, &at_most(budget));
        let fleet = Fleet::new(&plane, namespace, 60, &version("v1"));
        let watcher = fleet.watch();
        let output = fleet.apply(&version("v2"), &[]);
        let seen = watcher.end();
        println!("{} took {:?}", output_text(&output), seen.took());
        assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
        assert!(seen.most_unavailable <= allowed, "{budget}: {}", seen.most_unavailable);
        assert_eq!(seen.deleted.len(), 60, "{budget}: each pod is replaced once");
        assert_eq!(fleet.images(), ["v2".to_owned()].into(), "{budget}");
        assert_eq!(fleet.strategy(), "RollingUpdate", "{budget}");
        let numbers: Vec<i64> = fleet.revisions().iter().map(|(_, number, _)| *number).collect();
        assert_eq!(numbers, [1, 2], "{budget}: one revision per template");
        let next = fleet.plan(&version("v2"));
        assert_eq!(next.status.code(), Some(0), "{budget}: {}", output_text(&next));
    };
    thread::scope(|scope| {
        for (namespace, budget, allowed) in
            [("one", "1", 1), ("three", "3", 3), ("tenth", "10%", 6), ("all", "100%", 60)]
        {
            scope.spawn(move || one(namespace, budget, allowed));
        }
    });
}

/// The whole life of a broken version: aborted, not spread to new nodes, refused, rolled back.
#[test]
fn a_broken_version_is_aborted_and_does_not_spread() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(12));
    let version = |image: &str, label: &str| {
        let policy = at_most("2");
        manifest("broken", image, &policy).replacen(
            "name: agent,",
            &format!("name: agent, labels: {{from: '{label}'}},"),
            1,
        )
    };
    let fleet = Fleet::new(&plane, "broken", 12, &version("v1", "a"));
    let watcher = fleet.watch();
    let output = fleet.apply(&version("v2-bad", "b"), &["--progress-deadline=20s"]);
    let seen = watcher.end();
    println!("{}", output_text(&output));
    assert_eq!(output.status.code(), Some(4), "{}", output_text(&output));
    assert!(seen.most_unavailable <= 2, "{}", seen.most_unavailable);
    assert!(output_text(&output).contains("ImagePullBackOff"), "{}", output_text(&output));
    assert_eq!(fleet.strategy(), "OnDelete");
    let live = fleet.kubectl(&[
        "get",
        "daemonset",
        "agent",
        "--output=jsonpath={.spec.template.spec.containers[0].image}",
    ]);
    assert_eq!(live, "cr.example/agent:v1", "aborted");

    // A new node gets the good version.
    plane.create_nodes([FakeNode::new("z-99")]);
    wait_for("the new node's pod", SOON, "cr.example/agent:v1".to_owned(), || {
        fleet.kubectl(&[
            "get",
            "pods",
            "--field-selector=spec.nodeName=z-99",
            "--output=jsonpath={.items[*].spec.containers[0].image}",
        ])
    });

    // The same template is refused, also from another commit; with --retry it is tried again.
    let again = fleet.apply(&version("v2-bad", "c"), &[]);
    assert_eq!(again.status.code(), Some(6), "{}", output_text(&again));
    let retried = fleet.apply(&version("v2-bad", "c"), &["--retry", "--progress-deadline=20s"]);
    assert_eq!(retried.status.code(), Some(4), "{}", output_text(&retried));

    // Rolled back: all nodes are available again, under the declared strategy, on the same revision
    // object.
    let names: Vec<String> = fleet.revisions().iter().map(|(name, ..)| name.clone()).collect();
    let undone = plane.ds_apply(&["undo", "broken/agent", "--yes"], &[]).run();
    println!("{}", output_text(&undone));
    assert_eq!(undone.status.code(), Some(0), "{}", output_text(&undone));
    assert_eq!(fleet.images(), ["v1".to_owned()].into());
    assert_eq!(fleet.strategy(), "RollingUpdate");
    let after = fleet.revisions();
    assert_eq!(after.len(), names.len(), "{after:?}");
    assert!(after.iter().all(|(name, ..)| names.contains(name)), "{after:?}");
    let newest = after.last().unwrap();
    assert!(newest.1 > 2, "the revision number increases: {after:?}");
    // An HTML page at the end, with text progress on standard error.
    let forward = fleet.apply(&version("v2", "d"), &["-o", "html"]);
    assert_eq!(forward.status.code(), Some(0), "{}", output_text(&forward));
    let [page, meanwhile] =
        [&forward.stdout, &forward.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert!(page.contains("<h1>broken/agent: done</h1>"), "{page}");
    assert!(meanwhile.contains("broken/agent  done"), "{meanwhile}");
}

/// A template that failed because of a short deadline is refused, paused or aborted, until it is
/// retried; the failure is forgotten once the template is on all nodes.
#[test]
fn a_failed_template_is_recorded_until_it_is_rolled_out_completely() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(3));
    let version =
        |image: &str| slowly(&manifest("slow", image, &at_most("3"))).replace("500ms", "6s");
    let fleet = Fleet::new(&plane, "slow", 3, &version("v1"));
    let ends = |image: &str, flags: &[&str], code: i32| {
        let output = fleet.apply(&version(image), flags);
        assert_eq!(output.status.code(), Some(code), "{image} {flags:?}: {}", output_text(&output));
        let refused = output_text(&output).contains("--retry)");
        assert_eq!(refused, code == 6, "{}", output_text(&output));
    };
    let remembered = "--output=jsonpath={.metadata.annotations.ds-plan\\.dev/failed-templates}";
    let remembered = || fleet.kubectl(&["get", "lease", "ds-plan-agent", remembered]);
    for (image, on_failure) in [("v2", "--on-failure=pause"), ("v3", "--on-failure=abort")] {
        let hasty = ["--progress-deadline=2s", on_failure];
        ends(image, &hasty, 4);
        assert!(remembered().starts_with("sha256:"), "{}", remembered());
        ends(image, &hasty, 6);
        ends(image, &["--retry"], 0);
        assert_eq!(remembered(), "", "{image}");
    }
    ends("v2", &[], 0);
}
