//! The example fleet as a user plans it, and the output in README.md and the guide.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use testkit::pages::pages;
use testkit::sandbox::{Run, Sandbox};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A repository with the examples in it, at the same paths as here.
pub(crate) fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in examples() {
        let relative = path.strip_prefix(ROOT).unwrap();
        sandbox.write(relative.to_str().unwrap(), fs::read(&path).unwrap());
    }
    sandbox.commit();
    sandbox
}

/// Every file in `examples/` that is read, and none that is compiled.
fn examples() -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_none_or(|it| it != "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    collect(&Path::new(ROOT).join("examples"), &mut files);
    files.sort();
    files
}

#[test]
fn each_example_is_planned() {
    let run = repository().ds_plan(
        "--path examples/fleet/manifests --snapshot examples/fleet/cluster.json -o json --all-nodes",
    );
    let plan: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let planned: BTreeSet<String> = plan["daemonSets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("examples/fleet/manifests/{}.yaml", it["name"].as_str().unwrap()))
        .collect();
    let mut files: BTreeSet<String> = examples()
        .iter()
        .map(|path| path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned())
        .filter(|path| path.starts_with("examples/fleet/"))
        .collect();
    assert!(files.remove("examples/fleet/cluster.json"));
    // Fault documents are for rehearsals.
    files.retain(|path| !path.starts_with("examples/faults/"));
    assert_eq!(planned, files, "one file per DaemonSet, and no other file");
}

/// A page of the guide.
fn chapter(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join("docs/src").join(name)).unwrap()
}

#[test]
fn the_fleet_as_text() {
    let page = chapter("plan.md");
    let (_, block) = page.split_once("cargo run --release -- ").unwrap();
    let (shown, _) = block.split_once('\n').unwrap();
    let repository = repository();
    assert_snapshot!(without_commit(&repository, &repository.ds_plan(shown)));
}

#[test]
fn the_fleet_as_a_comment_on_a_pull_request() {
    let repository = repository();
    let run = repository.ds_plan(
        "--path examples/fleet/manifests --snapshot examples/fleet/cluster.json -o markdown",
    );
    assert_snapshot!(without_commit(&repository, &run));
}

/// The output with the same commit id whatever the examples contain: each of them is in the commit.
fn without_commit(repository: &Sandbox, run: &Run) -> String {
    let commit = fs::read_to_string(repository.path(".git/refs/heads/main")).unwrap();
    let text = run.to_string();
    assert!(text.contains(&commit[..7]), "{text}");
    text.replace(&commit[..7], "4f2c9e1")
}

/// `helm template trace-agent examples/helm/chart --namespace tracing | ds-plan -f -`
#[test]
fn helm_output_is_read_from_standard_input() {
    let sandbox = repository();
    let mut command =
        sandbox.ds_plan_command("-f - --snapshot examples/fleet/cluster.json -o name");
    command.stdin(fs::File::open(Path::new(ROOT).join("examples/helm/rendered.yaml")).unwrap());
    assert_eq!(sandbox.run(command).stdout, "tracing/trace-agent\n");
}

#[test]
fn folders_to_be_rendered_say_how() {
    let run = repository().ds_plan(
        "--path examples/helm/chart --path examples/kustomize --snapshot examples/fleet/cluster.json",
    );
    assert_snapshot!(run);
}

#[test]
fn the_fleets_status() {
    assert_snapshot!(repository().ds_plan("status --snapshot examples/fleet/cluster.json"));
}

/// Only the commit in the first line may differ.
#[test]
fn the_documentation_shows_the_real_output() {
    let without_commit = |text: &str| {
        let (first, rest) = text.split_once('\n').unwrap();
        let (before, after) = first.split_once(" at ").unwrap();
        let (_commit, after) = after.split_once(' ').unwrap();
        format!("{before} {after}\n{rest}")
    };
    let mut seen = 0;
    for (path, page) in pages() {
        for block in page.split("<!-- run by it::fleet -->\n```console\n$ ds-plan ").skip(1) {
            let (line, rest) = block.split_once('\n').unwrap();
            let (shown, _) = rest.split_once("```").unwrap();
            let run = repository().ds_plan(line);
            let place = path.display();
            assert_eq!(without_commit(&run.stdout), without_commit(shown), "{place}: {run}");
            seen += 1;
        }
    }
    assert_eq!(seen, 2, "one plan in README.md, and one in the guide");
}

/// Including folded sections; read from files, because the id of the commit differs each time.
#[test]
fn the_guide_shows_the_comment_on_a_pull_request() {
    let page = chapter("pipelines.md");
    let run = repository()
        .ds_plan("-f examples/fleet/manifests --snapshot examples/fleet/cluster.json -o markdown");
    let (shown, _) = run.stdout.split_once("\n\n<details>").unwrap();
    let quoted: Vec<String> =
        shown.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    assert!(page.contains(&quoted.join("\n")), "{}", quoted.join("\n"));
}

#[test]
fn the_policy_in_the_guide_is_read() {
    let page = chapter("policy.md");
    let (_, block) = page.split_once("```yaml\napiVersion: ds-plan.dev/").unwrap();
    let (policy, _) = block.split_once("```").unwrap();
    let sandbox = repository();
    sandbox.write("policy.yaml", format!("apiVersion: ds-plan.dev/{policy}"));
    let run = sandbox.ds_plan(
        "--path examples/fleet/manifests --snapshot examples/fleet/cluster.json \
         --policy policy.yaml kube-system/overlay-agent",
    );
    assert!(run.stdout.contains("policy network-agents"), "{run}");
}
