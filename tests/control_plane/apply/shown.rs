//! Runs every block of commands in README.md and `docs/` as it is shown: in bash, on a terminal
//! where `yes` is typed, in the situation that the comment above the block names (`<!-- run:
//! aborted -->`). A comment `<!-- run by it::fleet -->` names the test that runs it.
//!
//! A line may end with `# exits with N`; the default is 0. The output is not checked here.

use std::fs;
use std::path::{Path, PathBuf};

use super::workspace::{Workspace, agent};
use super::*;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Tests that run a block themselves.
const ELSEWHERE: [&str; 4] = ["it::rehearsal", "it::fleet", "the pipeline itself", "apply::readme"];

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
fn blocks_of(path: &Path) -> Vec<Block> {
    let page = fs::read_to_string(path).unwrap();
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
            "nothing yet" => {}
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
        let said = self.workspace.run("ds-plan snapshot --out cluster.json.gz");
        assert!(self.workspace.path("cluster.json.gz").exists(), "{said}");
    }

    fn apply(&self, flags: &str, code: i32) {
        let line = format!("ds-apply --yes {flags}");
        let (ended, said) = self.workspace.on_a_terminal(&line);
        assert_eq!(ended, Some(code), "{line}\n{said}");
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
    run_blocks(&[Path::new(ROOT).join("README.md")]);
}

#[test]
fn the_commands_of_the_documentation_work() {
    let docs = fs::read_dir(Path::new(ROOT).join("docs")).unwrap();
    let mut pages: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    run_blocks(&pages);
}

fn run_blocks(pages: &[PathBuf]) {
    let plane = ControlPlane::start();
    plane.create_nodes(["a-1", "a-2", "b-1"].map(FakeNode::new));
    plane.kubectl(&["create", "namespace", "logging"]);
    let (mut run, mut wrong) = (0, Vec::new());
    for block in pages.iter().flat_map(|page| blocks_of(page)) {
        let marker =
            block.situation.strip_prefix("<!-- run").and_then(|it| it.strip_suffix(" -->"));
        let Some(marker) = marker else { panic!("no situation above the block: {block:?}") };
        if let Some(test) = marker.strip_prefix(" by ") {
            assert!(ELSEWHERE.contains(&test), "{test} is not a test: {block:?}");
            continue;
        }
        wrong.extend(run_block(&plane, &block, marker.strip_prefix(": ").unwrap()));
        run += 1;
    }
    assert!(run >= 8, "{run} blocks");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a block; returns the failure of the first line with an unexpected exit code.
fn run_block(plane: &ControlPlane, block: &Block, situation: &str) -> Option<String> {
    let it = Situation::named(plane, situation);
    block.lines.iter().find_map(|line| {
        let code = line.split_once("# exits with ").map_or("0", |(_, code)| code);
        let code: i32 = code.split([':', ',', ' ']).next().unwrap().parse().unwrap();
        let (ended, said) = it.workspace.on_a_terminal(line);
        let reported = format!("{}\n$ {line}\n{said}", block.place);
        (ended != Some(code)).then(|| format!("{reported}ends with {ended:?}"))
    })
}
