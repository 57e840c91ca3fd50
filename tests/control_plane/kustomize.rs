//! Overlays as the real kubectl renders them: `-k` reads the output of `kubectl kustomize`, and
//! overlays built to exhaust memory or time are stopped early.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{ControlPlane, FakeNode, kubectl_path};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const AGENT: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
        - name: agent
          image: registry.example.com/agent:1
          envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: token}}]
";

/// A repository, with only kubectl on the `PATH`.
struct Tree {
    folder: TempDir,
}

impl Tree {
    fn of(files: &[(&str, &str)]) -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        for (path, text) in files {
            let path = tree.path(&format!("work/{path}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir(tree.path("bin")).unwrap();
        symlink(kubectl_path(), tree.path("bin/kubectl")).unwrap();
        tree.git(&["init", "-q", "-b", "main"]);
        tree.commit();
        tree
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "a commit"]);
    }

    fn git(&self, arguments: &[&str]) {
        let person = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
        let status = Command::new("git")
            .args(person)
            .args(arguments)
            .current_dir(self.path("work"))
            .status()
            .unwrap();
        assert!(status.success(), "git {arguments:?}");
    }

    /// Runs `ds-plan`; the arguments must not contain spaces.
    fn ds_plan(&self, line: &str) -> Output {
        Command::new(cargo_bin!("ds-plan"))
            .args(line.split_whitespace())
            .args(["--snapshot", &format!("{ROOT}/examples/fleet/cluster.json")])
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path(""))
            .env("PATH", self.path("bin"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The plan as JSON, without its source.
    #[track_caller]
    fn plan(&self, line: &str) -> Value {
        let done = self.ds_plan(&format!("{line} -o json"));
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        let mut plan: Value = serde_json::from_slice(&done.stdout).unwrap();
        for field in ["createdAt", "source"] {
            plan.as_object_mut().unwrap().remove(field);
        }
        // `kubectl apply` has warnings about files; these are about their content.
        plan["warnings"].as_array_mut().unwrap().retain(|it| it["code"] != "workingTreeDiffers");
        plan
    }

    /// The plan of a file with the output of kubectl itself.
    #[track_caller]
    fn rendered_by_hand(&self, folder: &str) -> Value {
        let output = Command::new(kubectl_path())
            .args(["kustomize", folder])
            .current_dir(self.path("work"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::write(self.path("rendered.yaml"), output.stdout).unwrap();
        self.plan(&format!("-f {}", self.path("rendered.yaml").display()))
    }
}

/// The files of `examples/` below `folder`, with their paths.
fn examples(folder: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut open = vec![Path::new(ROOT).join("examples").join(folder)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let name = path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned();
            files.push((name, fs::read_to_string(path).unwrap()));
        }
    }
    files
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

#[test]
fn the_example_is_planned_as_kubectl_renders_it() {
    let tree = Tree::of(&borrowed(&examples("kustomize")));
    let overlay = "examples/kustomize/overlays/prod";
    let plan = tree.plan(&format!("-k {overlay} --allow-kustomize"));
    assert_eq!(plan, tree.rendered_by_hand(overlay));
    assert_eq!(plan["totals"]["replace"], 39, "{plan:#}");
}

/// The files that overlays consist of.
const PARTS: &[(&str, &str)] = &[
    ("base/kustomization.yaml", "resources: [agent.yaml]\n"),
    ("base/agent.yaml", AGENT),
    (
        "app/patch.yaml",
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec: {minReadySeconds: 7}\n",
    ),
    ("app/settings.env", "A=1\nB=2\n"),
    ("app/token", "secret"),
    ("app/ops.yaml", "- {op: add, path: /spec/revisionHistoryLimit, value: 3}\n"),
    (
        "app/swap.yaml",
        "- source: {kind: DaemonSet, fieldPath: metadata.name}\n  targets: [{select: {kind: DaemonSet}, fieldPaths: [spec.template.metadata.labels.of], options: {create: true}}]\n",
    ),
    (
        "part/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {part: 'yes'}, includeTemplates: true}]\n",
    ),
];

/// Overlays, each with the name of its special feature.
const OVERLAYS: &[(&str, &str)] = &[
    ("a base", "resources: [../base]\n"),
    ("names", "resources: [../base]\nnamePrefix: x-\nnameSuffix: -y\nnamespace: logging\n"),
    ("labels", "resources: [../base]\ncommonLabels: {a: b}\ncommonAnnotations: {c: d}\n"),
    (
        "images",
        "resources: [../base]\nimages: [{name: registry.example.com/agent, newTag: '2', newName: x.example/y}]\n",
    ),
    ("a patch in a file", "resources: [../base]\npatches: [{path: patch.yaml}]\n"),
    (
        "a patch in place",
        "resources: [../base]\npatches:\n  - target: {kind: DaemonSet}\n    patch: |-\n      - {op: replace, path: /spec/template/spec/containers/0/image, value: 'x:2'}\n",
    ),
    (
        "strategic merge, both ways",
        "resources: [../base]\npatchesStrategicMerge:\n  - patch.yaml\n  - |-\n    apiVersion: apps/v1\n    kind: DaemonSet\n    metadata: {name: agent}\n    spec: {template: {metadata: {annotations: {a: yes}}}}\n",
    ),
    (
        "JSON patches",
        "resources: [../base]\npatchesJson6902: [{target: {group: apps, version: v1, kind: DaemonSet, name: agent}, path: ops.yaml}]\n",
    ),
    (
        "generators",
        "resources: [../base]\nconfigMapGenerator: [{name: settings, envs: [settings.env], literals: [c=3], files: [other=ops.yaml]}]\nsecretGenerator: [{name: token, files: [token]}]\n",
    ),
    (
        "without hashes",
        "resources: [../base]\ngeneratorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator: [{name: settings, files: [token]}]\n",
    ),
    ("components", "resources: [../base]\ncomponents: [../part]\n"),
    ("replacements", "resources: [../base]\nreplacements: [{path: swap.yaml}]\n"),
    ("the same base twice", "resources: [one, two]\n"),
];

#[test]
fn overlays_are_rendered_like_kubectl() {
    for (case, kustomization) in OVERLAYS {
        let mut files = PARTS.to_vec();
        files.push(("app/kustomization.yaml", *kustomization));
        files.push(("app/one/kustomization.yaml", "namePrefix: one-\nresources: [../../base/]\n"));
        files.push(("app/two/kustomization.yaml", "namePrefix: two-\nresources: [./../../base]\n"));
        let tree = Tree::of(&files);
        let plan = tree.plan("-k app --allow-kustomize");
        assert_eq!(plan, tree.rendered_by_hand("app"), "{case}");
        assert!(!plan["daemonSets"].as_array().unwrap().is_empty(), "{case}");
    }
}

#[test]
fn a_pull_request_is_separated_from_existing_drift() {
    let tree = Tree::of(&borrowed(&examples("kustomize")));
    tree.git(&["checkout", "-q", "-b", "request"]);
    let file = tree.path("work/examples/kustomize/overlays/prod/web.yaml");
    fs::write(file, "http_server_config: {http2: false}\n").unwrap();
    tree.commit();
    let plan = tree.plan("-k examples/kustomize/overlays/prod --allow-kustomize --base main");
    let paths: Vec<&str> = plan["daemonSets"][0]["base"]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["spec.template.spec.volumes[web].configMap.name"]);
}

#[test]
fn overlays_that_exhaust_resources_are_stopped() {
    let mut lines = vec!["a0: &a0 [x,x,x,x,x,x,x,x,x,x]".to_owned()];
    for n in 1..10 {
        let aliases = vec![format!("*a{}", n - 1); 10].join(",");
        lines.push(format!("a{n}: &a{n} [{aliases}]"));
    }
    let bomb = format!("apiVersion: v1\nkind: Bomb\nmetadata: {{name: a}}\n{}\n", lines.join("\n"));
    let tree = Tree::of(&[
        ("app/kustomization.yaml", "resources: [bomb.yaml, agent.yaml]\n"),
        ("app/bomb.yaml", &bomb),
        ("app/agent.yaml", AGENT),
    ]);
    let done = tree.ds_plan("-k app --allow-kustomize");
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{message}");
    assert!(message.starts_with("error: cannot render `app`: "), "{message}");
    assert!(message.len() < 2000, "{message}");
}

#[test]
fn errors_of_kubectl_do_not_show_the_temporary_folder() {
    let tree = Tree::of(&[
        ("app/kustomization.yaml", "resources: [agent.yaml]\npatches: [{path: patch.yaml}]\n"),
        ("app/agent.yaml", AGENT),
        ("app/patch.yaml", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: gone}\n"),
    ]);
    let done = tree.ds_plan("-k app --allow-kustomize");
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(message.contains("no matches for Id DaemonSet"), "{message}");
    assert!(!message.contains("/tree"), "{message}");
}

#[test]
fn kubectl_finds_its_plugin() {
    let tree = Tree::of(&[("a.yaml", AGENT)]);
    symlink(cargo_bin!("ds-plan"), tree.path("bin/kubectl-ds_plan")).unwrap();
    let run = |arguments: &[&str]| {
        let mut kubectl = Command::new(tree.path("bin/kubectl"));
        kubectl.args(arguments).current_dir(tree.path("home")).env_clear();
        kubectl.env("HOME", tree.path("")).env("PATH", tree.path("bin")).output().unwrap()
    };
    fs::create_dir(tree.path("home")).unwrap();
    let help = run(&["ds-plan", "--help"]);
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(text.contains("Usage: kubectl ds-plan [OPTIONS]"), "{text}");
    assert!(text.contains("`kubectl ds-plan snapshot`"), "{text}");
    let plan = run(&["ds-plan", "--snapshot", "none.json"]);
    let message = String::from_utf8_lossy(&plan.stderr).into_owned();
    assert!(message.contains("hint: name the files: `kubectl ds-plan -f DIR`"), "{message}");
    assert_eq!(plan.status.code(), Some(1), "{message}");
}

/// Applies an overlay, plans again, saves a plan, and applies it at the commit of the plan.
#[test]
fn ds_apply_renders_as_ds_plan_does() {
    let plane = ControlPlane::start();
    plane.create_nodes(FakeNode::many("node", 2));
    let overlay = |tag: &str| {
        format!(
            "resources: [../base]\nimages: [{{name: registry.example.com/agent, newTag: {tag}}}]\n"
        )
    };
    let tree = Tree::of(PARTS);
    let commit = |tag: &str| {
        fs::write(tree.path("work/app/kustomization.yaml"), overlay(tag)).unwrap();
        tree.commit();
    };
    let run = |program: &Path, line: &str| {
        let done = Command::new(program)
            .args(line.split_whitespace())
            .args(["-k", "app", "--allow-kustomize"])
            .current_dir(tree.path("work"))
            .env_clear()
            .env("HOME", tree.path(""))
            .env("PATH", tree.path("bin"))
            .env("KUBECONFIG", plane.kubeconfig_path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(0), "{line}: {message}");
    };
    let (plan, apply) = (cargo_bin!("ds-plan"), cargo_bin!("ds-apply"));
    commit("one");
    run(apply, "--yes");
    run(plan, "--detailed-exitcode");
    commit("two");
    run(plan, "--out saved.json");
    commit("three");
    run(apply, "--plan saved.json");
    run(plan, "--rev HEAD~1 --detailed-exitcode");
    let image = "-o=jsonpath={.spec.template.spec.containers[0].image}";
    let image = plane.kubectl(&["get", "daemonset", "agent", image]);
    assert_eq!(image, "registry.example.com/agent:two");
}
