//! `OnDelete`: `step` and `roll` replace pods, and never write the object. Also other changes
//! without a pause: adopted orphans, and a released pause.

use std::thread;

use serde_json::json;

use daemonset::model::PRE_PULL_LABEL;

use super::request_log::RUNNER;
use super::*;

const NODES: usize = 9;

fn version(namespace: &str, image: &str) -> String {
    manifest(namespace, image, "  updateStrategy: {type: OnDelete}")
}

impl Fleet<'_> {
    /// Runs a command of `ds-apply` for this DaemonSet; checks the exit code.
    fn command(&self, command: &str, flags: &[&str], code: i32) -> Output {
        let name = format!("{}/agent", self.namespace);
        let arguments = [&[command, &name, "--yes"], flags].concat();
        let output = self.plane.ds_apply_as(RUNNER, &arguments, &[]).run();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{command} {flags:?}: {}",
            output_text(&output)
        );
        self.histories_agree();
        output
    }

    /// The nodes whose pods have this image.
    fn nodes_of(&self, image: &str) -> BTreeSet<String> {
        let list = self.json(&["get", "pods"]);
        let pods = list["items"].as_array().unwrap().iter();
        let full = format!("cr.example/agent:{image}");
        let of_image = pods.filter(|pod| pod["spec"]["containers"][0]["image"] == full.as_str());
        of_image.map(|pod| pod["spec"]["nodeName"].as_str().unwrap().to_owned()).collect()
    }

    /// The runner's writes of the DaemonSet after the first `lines` lines of the log.
    fn writes_since(&self, lines: usize) -> usize {
        let log = self.plane.audit_log();
        let ours = log[lines..].iter().filter(|event| {
            event["user"]["username"] == RUNNER
                && event["objectRef"]["resource"] == "daemonsets"
                && event["objectRef"]["namespace"] == self.namespace.as_str()
                && !["get", "list", "watch"].contains(&event["verb"].as_str().unwrap())
        });
        ours.count()
    }
}

#[test]
fn steps_and_rolls_adoptions_and_releases() {
    let plane = ControlPlane::builder().user(RUNNER, &["system:masters"]).audit().start();
    plane.create_nodes(three_zones(NODES));
    let plane = &plane;
    thread::scope(|scope| {
        for scenario in [
            step_and_roll,
            steps_by_wave,
            left_pullers,
            roll_of_a_broken_image,
            roll_under_a_policy,
            adopted,
            released,
            undone,
        ] {
            scope.spawn(move || scenario(plane));
        }
    });
}

fn step_and_roll(plane: &ControlPlane) {
    let fleet = Fleet::new(plane, "stepped", NODES, &version("stepped", "v1"));
    let applied = fleet.apply(&version("stepped", "v2"), &[]);
    assert_eq!(applied.status.code(), Some(0), "{}", output_text(&applied));
    assert!(output_text(&applied).contains("9 waiting"), "{}", output_text(&applied));
    assert_eq!(fleet.nodes_of("v2").len(), 0, "apply changes the object only");

    let lines = plane.audit_log().len();
    let watcher = fleet.watch();
    fleet.command("step", &["--count", "2"], 0);
    assert_eq!(fleet.nodes_of("v2").len(), 2);
    fleet.command("step", &["--nodes", "b-07,c-02"], 0);
    let done = fleet.nodes_of("v2");
    assert!(done.len() == 4 && done.contains("b-07") && done.contains("c-02"), "{done:?}");
    fleet.command("step", &["--nodes", "no-such-node"], 1);
    let seen = watcher.end();
    assert_eq!(seen.deleted.len(), 4);
    assert!(seen.most_unavailable <= 1, "{}", seen.most_unavailable);

    // The owner of the object allows it, and programs read only JSON.
    fleet.kubectl(&["label", "daemonset", "agent", "argocd.argoproj.io/instance=fleet"]);
    let watcher = fleet.watch();
    let rolled = fleet.command("roll", &["--max-unavailable=2", "--output=json"], 0);
    let seen = watcher.end();
    for line in stdout(&rolled).lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
    fleet.kubectl(&["label", "daemonset", "agent", "argocd.argoproj.io/instance-"]);
    assert_eq!(seen.deleted.len(), NODES - 4);
    assert!(seen.most_unavailable <= 2, "{}", seen.most_unavailable);
    assert_eq!(fleet.images(), ["v2".to_owned()].into());
    assert_eq!(fleet.strategy(), "OnDelete");
    fleet.command("roll", &[], 0);

    let applied = fleet.apply(&version("stepped", "v3"), &[]);
    assert_eq!(applied.status.code(), Some(0), "{}", output_text(&applied));
    fleet.command("step", &["--count", &NODES.to_string()], 0);
    assert_eq!(fleet.images(), ["v3".to_owned()].into());
    assert_eq!(fleet.writes_since(lines), 0, "the object is never written");
    let next = fleet.plan(&version("stepped", "v3"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

/// Pods that a killed run has left are removed by the next one, although it changes nothing else.
fn left_pullers(plane: &ControlPlane) {
    let declared = version("pulling", "v1");
    let fleet = Fleet::new(plane, "pulling", NODES, &declared);
    let lease = fleet.json(&["get", "lease", "ds-plan-agent"]);
    let leave_two = || {
        for node in ["a-00", "b-01"] {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": format!("agent-pull-{node}"), "namespace": fleet.namespace,
                    "labels": {PRE_PULL_LABEL: "agent"},
                    "ownerReferences": [{
                        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                        "name": "ds-plan-agent", "uid": lease["metadata"]["uid"],
                        "controller": true,
                    }],
                },
                "spec": {
                    "nodeName": node,
                    "containers": [{"name": "image-0", "image": "cr.example/agent:v2"}],
                },
            });
            plane.kubectl_stdin(&["apply", "--filename=-"], &pod.to_string());
        }
    };
    leave_two();
    let left = || fleet.json(&["get", "pods", &format!("--selector={PRE_PULL_LABEL}=agent")]);
    let number = || left()["items"].as_array().unwrap().len();
    fleet.command("roll", &["--dry-run"], 0);
    assert_eq!(number(), 2);
    let rolled = output_text(&fleet.command("roll", &[], 0));
    assert!(rolled.contains("removing 2 pods that pull images"), "{rolled}");
    assert_eq!(number(), 0, "{rolled}");
    leave_two();
    let applied = output_text(&fleet.apply(&declared, &[]));
    assert!(applied.contains("removing 2 pods that pull images"), "{applied}");
    assert_eq!(number(), 0, "{applied}");
}

/// A canary, then zone by zone, each wave by its number; the approval counts for all zones.
fn steps_by_wave(plane: &ControlPlane) {
    let fleet = Fleet::new(plane, "waves", NODES, &version("waves", "v1"));
    let applied = fleet.apply(&version("waves", "v2"), &[]);
    assert_eq!(applied.status.code(), Some(0), "{}", output_text(&applied));
    let policy = tempfile::NamedTempFile::new().unwrap();
    let text = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: by-zone}
spec:
  selects: {names: [waves/agent]}
  minReadySeconds: 0
  domains: {key: topology.kubernetes.io/zone, first: [b]}
  steps:
    - {name: canary, nodes: {names: [b-04]}, soak: 30s}
    - {name: all, nodes: 100%, approve: true}
";
    std::fs::write(policy.path(), text).unwrap();
    let file = policy.path().to_str().unwrap();
    let step = |flags: &[&str], code| {
        let output = fleet.command("step", &[&["--policy", file], flags].concat(), code);
        (output_text(&output), fleet.nodes_of("v2").into_iter().collect::<Vec<_>>())
    };
    let (refused, done) = step(&["--wave", "2"], 6);
    assert!(refused.contains("wave 2 (all, b) of waves/agent comes after wave 1 (canary, b)"));
    assert_eq!(done.len(), 0, "{refused}");
    assert_eq!(step(&["--wave", "1"], 0).1, ["b-04"]);
    let (soaking, done) = step(&["--wave", "2"], 8);
    assert!(soaking.contains("waiting: step canary soaks until"), "{soaking}");
    assert_eq!(done, ["b-04"]);
    let (unapproved, done) = step(&["--wave", "2", "--wait", "90s"], 9);
    assert!(unapproved.contains("to approve: ds-apply approve waves/agent all"), "{unapproved}");
    assert_eq!(done, ["b-04"]);
    let (manifest, name) = (version("waves", "v2"), "waves/agent");
    let approve = ["approve", name, "all", "--yes", "-f", "agent.yaml", "--policy", file];
    let approved = plane.ds_apply_as(RUNNER, &approve, &[("agent.yaml", &manifest)]).run();
    assert_eq!(approved.status.code(), Some(0), "{}", output_text(&approved));
    assert_eq!(step(&["--wave", "2"], 0).1, ["b-01", "b-04", "b-07"]);
    let (finished, _) = step(&["--wave", "1"], 5);
    assert!(finished.contains("waves that are left: 3 (all, a), 4 (all, c)"), "{finished}");
    assert_eq!(step(&["--wave", "3"], 0).1.len(), 6);
    assert_eq!(step(&["--wave", "4"], 0).1.len(), NODES);
    assert_eq!(fleet.strategy(), "OnDelete");
}

fn roll_of_a_broken_image(plane: &ControlPlane) {
    let fleet = Fleet::new(plane, "stopped", NODES, &version("stopped", "v1"));
    let applied = fleet.apply(&version("stopped", "v2-bad"), &[]);
    assert_eq!(applied.status.code(), Some(0), "{}", output_text(&applied));
    let (lines, watcher) = (plane.audit_log().len(), fleet.watch());
    fleet.command("roll", &["--max-unavailable=2", "--progress-deadline=10s"], 4);
    let seen = watcher.end();
    assert_eq!(seen.deleted.len(), 2);
    assert!(seen.most_unavailable <= 2, "{}", seen.most_unavailable);
    assert_eq!(fleet.nodes_of("v1").len(), NODES - 2);
    // A schedule does not try it again on further nodes, although one may be unavailable besides.
    let (more, same) = ("--max-unavailable=3", "--max-unavailable=2");
    for (command, flags, code) in [
        ("roll", &[more, "--dry-run"][..], 6),
        ("roll", &[more], 6),
        ("step", &[more, "--count=1"], 6),
        // The two use up the budget, which is another guard.
        ("roll", &[same, "--allow-deadlock"], 6),
        ("roll", &[same, "--progress-deadline=10s", "--retry"], 4),
        ("roll", &[more], 6),
    ] {
        let text = output_text(&fleet.command(command, flags, code));
        let words = if code == 6 { "--retry" } else { "7 outdated pods wait indefinitely" };
        assert!(text.contains(words), "{command} {flags:?}: {text}");
        assert_eq!(fleet.nodes_of("v1").len(), NODES - 2, "{command} {flags:?}");
    }
    assert_eq!(fleet.writes_since(lines), 0, "it only stops");
    // `undo` is not blocked, nor the next template; the one that failed stays so.
    fleet.command("undo", &[], 0);
    fleet.command("roll", &["--max-unavailable=2"], 0);
    assert_eq!(fleet.images(), ["v1".to_owned()].into());
    for (image, code) in [("v2-bad", 6), ("v3", 0)] {
        let applied = fleet.apply(&version("stopped", image), &[]);
        assert_eq!(applied.status.code(), Some(code), "{image}: {}", output_text(&applied));
    }
    fleet.command("roll", &["--max-unavailable=2"], 0);
    assert_eq!(fleet.images(), ["v3".to_owned()].into());
}

/// `roll` obeys the same policy: it waits for the soak of the canary, and for an approval.
fn roll_under_a_policy(plane: &ControlPlane) {
    let fleet = Fleet::new(plane, "rolled-steps", NODES, &version("rolled-steps", "v1"));
    let applied = fleet.apply(&version("rolled-steps", "v2"), &[]);
    assert_eq!(applied.status.code(), Some(0), "{}", output_text(&applied));
    let policy = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: rolled}
spec:
  selects: {names: [rolled-steps/agent]}
  minReadySeconds: 0
  maxUnavailable: 3
  steps:
    - {name: canary, nodes: 1, soak: 2s}
    - {name: others, nodes: 100%, approve: true, soak: 8s}
";
    let manifest = format!("{}---\n{policy}", version("rolled-steps", "v2"));
    let files = [("policy.yaml", policy), ("agent.yaml", &*manifest)];
    let run = |arguments: &[&str], code: i32, words: &str| {
        let output = plane.ds_apply_as(RUNNER, arguments, &files).run();
        let text = output_text(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(words), "no `{words}` in {text}");
    };
    let roll = ["roll", "rolled-steps/agent", "--yes", "--policy", "policy.yaml"];
    let approve = ["approve", "rolled-steps/agent", "others", "--yes", "-f", "agent.yaml"];
    // The roll has no pause: its note says that it waits.
    let drift = |code: i32, words: &str| {
        let output = plane.ds_plan(&["drift", "-f", "agent.yaml"], &files);
        let text = output_text(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(words), "no `{words}` in {text}");
    };
    drift(3, "9 nodes with a pod of another template");
    run(&roll, 8, "waiting: step canary soaks until");
    assert_eq!(fleet.nodes_of("v2").len(), 1);
    drift(0, "step canary soaks until");
    run(&approve, 6, "step canary of rolled-steps/agent is not done");
    thread::sleep(Duration::from_secs(3));
    run(&roll, 9, "waiting: step others is not approved");
    assert_eq!(fleet.nodes_of("v2").len(), 1);
    drift(0, "step others is not approved");
    let status = ["status", "rolled-steps/agent", "--policy", "policy.yaml"];
    let text = output_text(&plane.ds_plan(&status, &files));
    for words in ["step canary: done, 1 of 1 node updated", "waiting: step others is not approved"]
    {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    run(&approve, 0, "is approved");
    let watcher = fleet.watch();
    run(&roll, 8, "waiting: step others soaks until");
    let seen = watcher.end();
    assert_eq!((seen.deleted.len(), seen.most_unavailable <= 3), (NODES - 1, true));
    // No pod is outdated, and the rollout is not done.
    run(&roll, 8, "waiting: step others soaks until");
    thread::sleep(Duration::from_secs(8));
    run(&roll, 0, "done");
    run(&roll, 0, "");
    assert_eq!(fleet.images(), ["v2".to_owned()].into());
    assert_eq!(fleet.strategy(), "OnDelete");
}

/// Pods that lost their DaemonSet are adopted by a new one. Those of another template are replaced
/// within the budget, although upstream counts them as updated by their generation.
fn adopted(plane: &ControlPlane) {
    let rolling = |image: &str| manifest("orphaned", image, &at_most("2"));
    let fleet = Fleet::new(plane, "orphaned", NODES, &rolling("v1"));
    let pods = || fleet.kubectl(&["get", "pods", "--output=jsonpath={.items[*].metadata.uid}"]);
    let before = pods();
    fleet.kubectl(&["delete", "daemonset", "agent", "--cascade=orphan"]);
    let same = fleet.apply(&rolling("v1"), &[]);
    assert_eq!(same.status.code(), Some(0), "{}", output_text(&same));
    assert_eq!(pods(), before, "adopted without a restart");
    assert_eq!(fleet.revisions().len(), 1);

    fleet.kubectl(&["delete", "daemonset", "agent", "--cascade=orphan"]);
    let watcher = fleet.watch();
    let newer = fleet.apply(&rolling("v2"), &["--progress-deadline=20s"]);
    let seen = watcher.end();
    assert_eq!(newer.status.code(), Some(0), "{}", output_text(&newer));
    assert!(seen.most_unavailable <= 2, "{}", seen.most_unavailable);
    assert_eq!(fleet.images(), ["v2".to_owned()].into());
    assert_eq!(fleet.strategy(), "RollingUpdate");
    let next = fleet.plan(&rolling("v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

fn released(plane: &ControlPlane) {
    let rolling = |image: &str| manifest("released", image, &at_most("2"));
    let fleet = Fleet::new(plane, "released", NODES, &rolling("v1"));
    let held = fleet.apply(&rolling("v2"), &["--timeout=0s"]);
    assert_eq!(held.status.code(), Some(4), "{}", output_text(&held));
    let broken = fleet.apply(&rolling("v2-bad"), &["--on-failure=pause", "--progress-deadline=8s"]);
    assert_eq!(broken.status.code(), Some(4), "{}", output_text(&broken));
    assert_eq!(fleet.strategy(), "OnDelete");
    let output = fleet.command("release", &[], 0);
    assert!(
        output_text(&output).contains("The controller will do this by itself"),
        "{}",
        output_text(&output)
    );
    assert_eq!(fleet.strategy(), "RollingUpdate");
    let held = "--output=jsonpath={.metadata.annotations.ds-plan\\.dev/rollout}";
    assert_eq!(fleet.kubectl(&["get", "daemonset", "agent", held]), "");
    fleet.command("release", &[], 0);
}

fn undone(plane: &ControlPlane) {
    let rolling = |image: &str| manifest("back", image, &at_most("3"));
    let fleet = Fleet::new(plane, "back", NODES, &rolling("v1"));
    for image in ["v2", "v3"] {
        let output = fleet.apply(&rolling(image), &[]);
        assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    }
    let names = |fleet: &Fleet<'_>| -> BTreeSet<String> {
        fleet.revisions().into_iter().map(|(name, ..)| name).collect()
    };
    let before = names(&fleet);
    for (flags, image) in [(&["--to-revision=1"][..], "v1"), (&[], "v3"), (&[], "v1")] {
        let watcher = fleet.watch();
        fleet.command("undo", flags, 0);
        let seen = watcher.end();
        assert!(seen.most_unavailable <= 3, "{}", seen.most_unavailable);
        assert_eq!(fleet.images(), [image.to_owned()].into(), "{flags:?}");
        assert_eq!(fleet.strategy(), "RollingUpdate");
        assert_eq!(names(&fleet), before, "each revision is reused");
    }
    fleet.command("undo", &["--to-revision=99"], 1);
}
