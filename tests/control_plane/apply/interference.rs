//! Another client interferes with a rollout. Each time the run ends in a documented way, and
//! deletes no pod without a reason in the plan.

use std::process::Output;
use std::thread;

use super::request_log::{RUNNER, RequestLog};
use super::watcher::Seen;
use super::*;

/// Nodes of a fleet, one of which is replaced per second: enough time to interfere.
const NODES: usize = 12;

/// The manifest, one pod at a time, each Ready after a second.
fn version(namespace: &str, image: &str) -> String {
    let slow = "metadata: {labels: {app: agent}, annotations: {ready-after: 1s}}";
    manifest(namespace, image, &at_most("1")).replace("metadata: {labels: {app: agent}}", slow)
}

/// The result of a run with interference.
struct Interfered<'p> {
    fleet: Fleet<'p>,
    output: Output,
    seen: Seen,
    /// The pods that the run deleted.
    ours: Vec<String>,
    /// The resourceVersions at which the strategy was restored.
    restored: Vec<String>,
}

impl<'p> Interfered<'p> {
    /// Rolls v1 → v2, and interferes when some nodes are done.
    fn with(plane: &'p ControlPlane, namespace: &str, meddle: impl FnOnce(&Fleet<'_>)) -> Self {
        let fleet = Fleet::new(plane, namespace, NODES, &version(namespace, "v1"));
        let (watcher, request_log) = (fleet.watch(), RequestLog::begin(&fleet));
        let run = fleet.begin(&version(namespace, "v2"), &[]);
        wait_until("the middle of the rollout", SOON, || fleet.pods_of("v2").len() >= 3);
        meddle(&fleet);
        let output = run.wait();
        let seen = watcher.end();
        let restored = request_log.restored();
        let ours = fleet.deleted_by_runner();
        for pod in &ours {
            assert_eq!(seen.gone[pod].image, "v1", "{namespace}: {pod} was not outdated");
        }
        Self { fleet, output, seen, ours, restored }
    }

    fn ends(&self, code: i32, words: &str) {
        let text = output_text(&self.output);
        assert_eq!(self.output.status.code(), Some(code), "{text}");
        assert!(text.contains(words), "no `{words}` in {text}");
        if !words.contains("gone") {
            self.fleet.histories_agree();
        }
    }

    /// Checks that running it again brings the fleet to this version, within the budget.
    fn resumes(&self, image: &str, flags: &[&str]) {
        self.fleet.wait_until_available();
        let watcher = self.fleet.watch();
        let version = version(&self.fleet.namespace, image);
        let again = self.fleet.apply(&version, flags);
        let seen = watcher.end();
        assert_eq!(again.status.code(), Some(0), "{}", output_text(&again));
        assert!(seen.most_unavailable <= 1, "{}", seen.most_unavailable);
        assert_eq!(self.fleet.images(), [image.to_owned()].into());
        assert_eq!(self.fleet.strategy(), "RollingUpdate");
        let next = self.fleet.plan(&version);
        assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
        self.fleet.histories_agree();
        self.fleet.is_rolled_out();
    }

    /// Checks that running it again is refused until `--force-conflicts` names the other manager.
    fn resumes_after(&self, image: &str, manager: &str) {
        self.fleet.wait_until_available();
        let refused = self.fleet.apply(&version(&self.fleet.namespace, image), &[]);
        let flag = format!("--force-conflicts={manager}");
        assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
        assert!(output_text(&refused).contains(&flag), "{}", output_text(&refused));
        self.resumes(image, &[&flag]);
    }

    /// Checks that the strategy was not restored while a Ready old pod remained.
    fn restored_late(&self) {
        assert_eq!(self.restored.len(), 1);
        let ready = self.fleet.ready_images_at(&self.restored[0]);
        assert!(ready.iter().all(|image| image == "v2"), "{ready:?}");
    }
}

impl Fleet<'_> {
    /// The pods of this image.
    fn pods_of(&self, image: &str) -> Vec<String> {
        let all = self.kubectl(&[
            "get",
            "pods",
            "--output=jsonpath={range .items[*]}{.metadata.name} {.spec.containers[0].image}{\"\\n\"}{end}",
        ]);
        let of_image = |line: &str| {
            let (name, full) = line.split_once(' ')?;
            full.ends_with(&format!(":{image}")).then(|| name.to_owned())
        };
        all.lines().filter_map(of_image).collect()
    }
}

fn plane() -> ControlPlane {
    let plane = ControlPlane::builder().user(RUNNER, &["system:masters"]).audit().start();
    plane.create_nodes(three_zones(NODES));
    plane
}

#[test]
fn other_clients_change_the_daemon_set_or_its_pods() {
    let plane = plane();
    let plane = &plane;
    thread::scope(|scope| {
        for scenario in
            [restarted, undone, strategy_edited, deleted, recreated, pods_deleted, forced_back]
        {
            scope.spawn(move || scenario(plane));
        }
    });
}

fn restarted(plane: &ControlPlane) {
    let it = Interfered::with(plane, "restarted", |fleet| {
        fleet.kubectl(&["rollout", "restart", "daemonset/agent"]);
    });
    it.ends(4, "paused: `kubectl rollout restart` has changed the live template");
    assert!(it.restored.is_empty());
    assert_eq!(it.fleet.strategy(), "OnDelete");
    assert!(it.seen.deleted.len() < NODES, "the strategy was restored");
    assert!(it.seen.most_unavailable <= 1, "{}", it.seen.most_unavailable);
    it.resumes("v2", &[]);
}

fn undone(plane: &ControlPlane) {
    let it = Interfered::with(plane, "undone", |fleet| {
        fleet.kubectl(&["rollout", "undo", "daemonset/agent"]);
    });
    it.ends(4, "paused: the live template is that of revision");
    assert!(it.restored.is_empty());
    assert_eq!(it.fleet.strategy(), "OnDelete");
    assert!(it.seen.most_unavailable <= 1, "{}", it.seen.most_unavailable);
    it.resumes_after("v2", "kubectl");
}

fn strategy_edited(plane: &ControlPlane) {
    let it = Interfered::with(plane, "edited", |fleet| {
        let patch = r#"{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}"#;
        fleet.kubectl(&["patch", "daemonset", "agent", "--type=merge", "--patch", patch]);
    });
    it.ends(5, "stopped: the update strategy was changed");
    // The controller completes the rollout. The next version needs the pause, whose field another
    // client owns.
    wait_for("the controller", SOON, BTreeSet::from(["v2".to_owned()]), || it.fleet.images());
    it.resumes_after("v3", "kubectl-patch");
}

fn deleted(plane: &ControlPlane) {
    let it = Interfered::with(plane, "deleted", |fleet| {
        fleet.kubectl(&["delete", "daemonset", "agent"]);
    });
    it.ends(5, "the DaemonSet is gone");
    assert_eq!(it.fleet.kubectl(&["get", "daemonsets", "--output=name"]), "", "not created again");
}

fn recreated(plane: &ControlPlane) {
    let it = Interfered::with(plane, "recreated", |fleet| {
        fleet.kubectl(&["delete", "daemonset", "agent", "--cascade=orphan"]);
        fleet.plane.apply_yaml(&version("recreated", "v1"));
    });
    it.ends(5, "the DaemonSet is gone");
    it.resumes_after("v2", "kubectl-client-side-apply");
}

fn pods_deleted(plane: &ControlPlane) {
    let it = Interfered::with(plane, "robbed", |fleet| {
        let (old, new) = (fleet.pods_of("v1"), fleet.pods_of("v2"));
        // The rollout continues meanwhile, so one of them may be gone already.
        let victims = old.iter().rev().take(2).chain(new.first()).map(String::as_str);
        let victims: Vec<&str> = victims.collect();
        let delete = ["delete", "pod", "--wait=false", "--ignore-not-found"];
        fleet.kubectl(&[&delete[..], &victims].concat());
    });
    it.ends(0, "done");
    it.restored_late();
    assert_eq!(it.fleet.images(), ["v2".to_owned()].into());
    // One delete of the run may have been in flight when the other client sent its own.
    let over: Vec<_> = it.ours.iter().filter(|pod| it.seen.gone[*pod].unavailable > 1).collect();
    assert!(over.len() <= 1, "{over:?}");
    let next = it.fleet.plan(&version("robbed", "v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

fn forced_back(plane: &ControlPlane) {
    let it = Interfered::with(plane, "forced", |fleet| {
        let older = version("forced", "v1");
        let apply = ["apply", "--server-side", "--force-conflicts", "--filename=-"];
        fleet.plane.kubectl_stdin(&apply, &older);
    });
    it.ends(5, "stopped: the live template is that of revision");
    it.resumes_after("v2", "kubectl");
}

#[test]
fn nodes_change_during_a_rollout() {
    let plane = plane();
    let it = Interfered::with(&plane, "nodes", |fleet| {
        // Nodes that are still to come.
        fleet.plane.kubectl(&["cordon", "b-10"]);
        fleet.plane.kubectl(&["drain", "c-11", "--ignore-daemonsets", "--force"]);
        fleet.plane.kubectl(&["delete", "node", "c-08"]);
        fleet.plane.create_nodes([FakeNode::new("a-new"), FakeNode::new("z-new")]);
    });
    it.ends(0, "done");
    it.restored_late();
    // The pod of the removed node is left to the garbage collector; the test does not wait for it.
    let left = ["--field-selector=spec.nodeName=c-08", "--force", "--grace-period=0"];
    it.fleet.kubectl(&[&["delete", "pods"], &left[..]].concat());
    assert_eq!(it.fleet.images(), ["v2".to_owned()].into());
    let nodes = it.fleet.kubectl(&["get", "pods", "--output=jsonpath={.items[*].spec.nodeName}"]);
    let nodes: BTreeSet<&str> = nodes.split(' ').collect();
    assert_eq!(nodes.len(), NODES + 1, "{nodes:?}");
    assert!(["b-10", "c-11", "a-new", "z-new"].iter().all(|node| nodes.contains(node)));
    // The removed node took its pod with it.
    assert!(it.seen.most_unavailable <= 2, "{}", it.seen.most_unavailable);
    let next = it.fleet.plan(&version("nodes", "v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

/// Another user ends a pause by hand: its annotation is left behind. It is reported, not read as a
/// pause of an `OnDelete` that is declared later, and removed.
#[test]
fn a_leftover_pause_is_reported_and_removed() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(4));
    let fleet = Fleet::new(&plane, "left", 4, &version("left", "v1"));
    let mut run = fleet.start(&version("left", "v2"), &[]);
    let watcher = fleet.watch();
    wait_until("a pod to be deleted", SOON, || watcher.gone() > 0 || run.has_ended());
    run.kill();
    let strategy = |value: &str| {
        let patch = format!("{{\"spec\":{{\"updateStrategy\":{value}}}}}");
        fleet.kubectl(&["patch", "daemonset", "agent", "--type=merge", "--patch", &patch]);
    };
    strategy(
        "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":1,\"maxSurge\":0}}",
    );
    fleet.wait_until_available();
    wait_for("the controller to complete the rollout", SOON, ["v2".to_owned()].into(), || {
        fleet.images()
    });
    let reported_by = |arguments: &[&str]| {
        let text = version("left", "v2");
        output_text(&plane.ds_plan(arguments, &[("agent.yaml", &text)]))
    };
    let message = "ds-plan.dev/rollout is left over (paused by";
    for arguments in [
        &["plan", "-f", "agent.yaml"][..],
        &["status", "left/agent"],
        &["drift", "-f", "agent.yaml"],
    ] {
        let text = reported_by(arguments);
        assert!(text.contains(message), "{arguments:?}: {text}");
        assert!(!text.contains("`ds-apply` resumes"), "{arguments:?}: {text}");
    }

    // Now OnDelete is declared: nothing is paused, and nothing to release.
    strategy("{\"type\":\"OnDelete\",\"rollingUpdate\":null}");
    let text = reported_by(&["status", "left/agent"]);
    assert!(text.contains(message) && !text.contains("`ds-apply` resumes"), "{text}");
    let released = plane.ds_apply(&["release", "left/agent", "--yes"], &[]).run();
    assert!(
        output_text(&released).contains("left/agent is not paused"),
        "{}",
        output_text(&released)
    );
    assert_eq!(fleet.strategy(), "OnDelete");

    let declared =
        version("left", "v2").replace(&at_most("1"), "  updateStrategy: {type: OnDelete}");
    let applied = fleet.apply(&declared, &["--force-conflicts=kubectl-patch"]);
    assert_eq!(applied.status.code(), Some(0), "{}", output_text(&applied));
    assert_eq!(fleet.strategy(), "OnDelete");
    let annotations = fleet.json(&["get", "daemonset", "agent"])["metadata"]["annotations"].clone();
    assert_eq!(annotations["ds-plan.dev/rollout"], Value::Null, "{annotations}");
}
