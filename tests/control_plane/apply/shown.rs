//! Runs every block of commands in README.md and the guide as it is shown: in bash, on a terminal
//! where `yes` is typed, in the situation that the comment above the block names (`<!-- run:
//! aborted -->`), or in the one that the block before has left (`<!-- run: next -->`). A comment
//! `<!-- run by it::fleet -->` names the test that runs it.
//!
//! A line may end with `# exits with N`; the default is 0. The output is not checked here.

use std::fs;
use std::path::{Path, PathBuf};

use super::workspace::{Workspace, agent};
use super::*;
use crate::harness::shown_yaml;
use testkit::pages::pages;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Tests that run a block themselves.
const ELSEWHERE: [&str; 9] = [
    "it::rehearsal",
    "it::fleet",
    "it::steps",
    "it::release",
    "it::notifications",
    "it::notification_examples",
    "the pipeline itself",
    "apply::walk",
    "apply::git_ops",
];

/// A policy whose first step waits for approval.
const APPROVED: &str = "
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: careful}
spec:
  selects: {names: [logging/agent]}
  steps: [{name: half, nodes: 2, approve: true}]
";

/// A block of commands.
#[derive(Debug)]
struct Block {
    place: String,
    situation: String,
    lines: Vec<String>,
}

impl Block {
    /// Keeps only commands if the block has prompts; its other lines are output.
    fn without_output(mut self) -> Self {
        let prompted: Vec<String> = self
            .lines
            .iter()
            .filter_map(|line| Some(line.strip_prefix("$ ")?.to_owned()))
            .collect();
        if !prompted.is_empty() {
            self.lines = prompted;
        }
        self
    }
}

/// The blocks of a page that have commands.
fn blocks_of(path: &Path, page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let (mut above, mut inside): (String, Option<Block>) = (String::new(), None);
    for (number, line) in page.lines().enumerate() {
        match (&mut inside, line) {
            (None, "```sh" | "```console") => {
                let name = path.strip_prefix(ROOT).unwrap().display();
                let place = format!("{name}:{}", number + 1);
                inside = Some(Block { place, situation: above.clone(), lines: Vec::new() });
            }
            (None, line) => line.clone_into(&mut above),
            (Some(_), "```") => found.extend(inside.take().map(Block::without_output)),
            (Some(block), line) => block.lines.push(line.to_owned()),
        }
    }
    found
}

/// The situation in which the commands of a block are run.
struct Situation<'p> {
    workspace: Workspace<'p>,
    plane: &'p ControlPlane,
}

impl<'p> Situation<'p> {
    /// A cluster without DaemonSets, and a workspace with only the manifest.
    fn new(plane: &'p ControlPlane) -> Self {
        let all = ["--namespace=logging", "delete", "daemonsets,leases", "--all", "--wait"];
        plane.kubectl(&all);
        wait_for("an empty namespace", SOON, String::new(), || {
            plane.kubectl(&["--namespace=logging", "get", "pods", "--output=name"])
        });
        let it = Self { workspace: Workspace::at(plane), plane };
        fs::write(it.workspace.path("agent.yaml"), agent("3.1")).unwrap();
        it
    }

    /// The situation of this name.
    fn named(plane: &'p ControlPlane, name: &str) -> Self {
        let it = Self::new(plane);
        match name {
            "an empty cluster" => {
                it.plane.kubectl(&["delete", "namespace", "logging", "--wait"]);
                it.manifest_of_the_first_day();
            }
            "the manifest of the first day" => it.manifest_of_the_first_day(),
            "settled" => it.settled(),
            "recorded" => {
                it.settled();
                it.recorded();
            }
            "a branch" => {
                it.settled();
                it.recorded();
                it.workspace.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
                it.workspace.commit("3.2", "Ship agent 3.2");
            }
            "aborted" => {
                it.settled();
                it.workspace.commit("3.2-bad", "Ship agent 3.2");
                it.apply("--progress-deadline 5s", 4);
            }
            // Pods that became ready too late, but are ready now.
            "aborted and fixed" => {
                it.settled();
                it.version_ready_after("8s");
                it.apply("--progress-deadline 5s", 4);
            }
            "paused" => {
                it.settled();
                it.version_ready_after("3s");
                it.apply("--timeout 4s", 4);
            }
            "locked" => {
                it.settled();
                it.version_ready_after("3s");
                it.workspace.run("timeout --signal=KILL 4 ds-apply --yes");
                // Before that the lease is still valid.
                std::thread::sleep(Duration::from_secs(15));
            }
            "a step that waits for approval" => {
                it.settled();
                fs::write(it.workspace.path("policy.yaml"), APPROVED).unwrap();
                it.workspace.git(&["add", "policy.yaml"]);
                it.workspace.commit("3.2", "Ship agent 3.2");
            }
            "a hotfix" => {
                it.settled();
                it.hotfix();
            }
            "something is gone from git" => {
                let old = agent("3.1").replace("agent", "old-agent");
                fs::write(it.workspace.path("old.yaml"), old).unwrap();
                it.workspace.init();
                it.workspace.commit("3.1", "Ship agent 3.1");
                it.apply("--source-id prod/logging", 0);
                it.workspace.git(&["rm", "-q", "old.yaml"]);
                it.workspace.git(&["commit", "-q", "-m", "Without the old agent"]);
            }
            "a secret to be made" => {
                for (file, text) in [("deploy-key", "key"), ("known_hosts", "hosts")] {
                    fs::write(it.workspace.path(file), text).unwrap();
                }
                let gone = ["delete", "namespace", "ds-plan", "--ignore-not-found", "--wait"];
                it.plane.kubectl(&gone);
                it.plane.kubectl(&["create", "namespace", "ds-plan"]);
            }
            other => panic!("unknown situation: {other}"),
        }
        it
    }

    /// The manifest that the guide shows, not committed yet.
    fn manifest_of_the_first_day(&self) {
        fs::write(self.workspace.path("agent.yaml"), shown_yaml("DaemonSet")).unwrap();
    }

    /// Waits until git's version is live everywhere.
    fn settled(&self) {
        self.workspace.init();
        self.workspace.commit("3.1", "Ship agent 3.1");
        self.apply("", 0);
        wait_for("the first pods", SOON, "3".to_owned(), || {
            let available = "--output=jsonpath={.status.numberAvailable}";
            self.plane.kubectl(&["--namespace=logging", "get", "daemonset", "agent", available])
        });
    }

    /// Records the cluster in a file next to the manifests.
    fn recorded(&self) {
        let message = self.workspace.run("ds-plan snapshot --out cluster.json.gz");
        assert!(self.workspace.path("cluster.json.gz").exists(), "{message}");
    }

    fn apply(&self, flags: &str, code: i32) {
        let line = format!("ds-apply --yes {flags}");
        let (ended, message) = self.workspace.on_a_terminal(&line);
        assert_eq!(ended, Some(code), "{line}\n{message}");
    }

    /// Commits a version whose pods take this long to become ready.
    fn version_ready_after(&self, time: &str) {
        let slow = slowly(&agent("3.2")).replace("500ms", time);
        fs::write(self.workspace.path("agent.yaml"), slow).unwrap();
        self.workspace.git(&["commit", "-q", "-am", "Ship agent 3.2"]);
    }

    /// Changes the cluster by hand, as another user would.
    fn hotfix(&self) {
        let image = "agent=cr.example/agent:hotfix";
        let hand = ["--namespace=logging", "set", "image", "daemonset/agent", image];
        self.plane.kubectl(&hand);
    }
}

#[test]
fn the_commands_of_the_readme_work() {
    run_blocks(&pages()[..1], 4);
}

#[test]
fn the_commands_of_the_guides_first_half_work() {
    let pages = pages();
    run_blocks(&pages[1..=pages.len() / 2], 8);
}

#[test]
fn the_commands_of_the_guides_second_half_work() {
    let pages = pages();
    run_blocks(&pages[pages.len() / 2 + 1..], 8);
}

/// Runs the blocks of these pages, of which there have to be at least `least`.
fn run_blocks(pages: &[(PathBuf, String)], least: usize) {
    let plane = ControlPlane::start();
    plane.create_nodes(["a-1", "a-2", "b-1"].map(FakeNode::new));
    plane.kubectl(&["create", "namespace", "logging"]);
    let (mut run, mut wrong) = (0, Vec::new());
    let mut left: Option<Situation<'_>> = None;
    for block in pages.iter().flat_map(|(path, page)| blocks_of(path, page)) {
        let marker =
            block.situation.strip_prefix("<!-- run").and_then(|it| it.strip_suffix(" -->"));
        let Some(marker) = marker else { panic!("no situation above the block: {block:?}") };
        if let Some(test) = marker.strip_prefix(" by ") {
            assert!(ELSEWHERE.contains(&test), "{test} is not a test: {block:?}");
            continue;
        }
        let situation = match (marker.strip_prefix(": ").unwrap(), left.take()) {
            ("next", Some(left)) => left,
            (name, _) => Situation::named(&plane, name),
        };
        wrong.extend(run_block(&situation, &block));
        left = Some(situation);
        run += 1;
    }
    assert!(run >= least, "{run} blocks");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a block; returns the failure of the first line with an unexpected exit code.
fn run_block(it: &Situation<'_>, block: &Block) -> Option<String> {
    block.lines.iter().find_map(|line| {
        let code = line.split_once("# exits with ").map_or("0", |(_, code)| code);
        let code: i32 = code.split([':', ',', ' ']).next().unwrap().parse().unwrap();
        let (ended, message) = it.workspace.on_a_terminal(line);
        let reported = format!("{}\n$ {line}\n{message}", block.place);
        (ended != Some(code)).then(|| format!("{reported}ends with {ended:?}"))
    })
}
