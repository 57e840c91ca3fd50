//! Whole files: those that kubectl rejects with a real API server and strict validation, our reader
//! rejects, and it finds as many DaemonSets as kubectl in the others.

use daemonset::model::ManifestFile;
use manifest::{FieldValidation, NotObjects, Options};

use crate::harness::{Component, ControlPlane, kubernetes};

const DAEMON_SET: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: NAME
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: c
        image: agent:v1
";

const JSON: &str = r#"{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "NAME"},
"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}},
"spec": {"containers": [{"name": "c", "image": "agent:v1"}]}}}}"#;

fn daemon_set(name: &str) -> String {
    DAEMON_SET.replace("NAME", name)
}

/// A DaemonSet with another field of its container.
fn with_field(field: &str) -> String {
    format!("{}        {field}\n", daemon_set("a"))
}

fn list(head: &str, items: &[&str]) -> String {
    let item = |item: &&str| format!("- {}\n", item.trim_end().replace('\n', "\n  "));
    format!("{head}items:\n{}", items.iter().map(item).collect::<String>())
}

fn lists() -> Vec<(&'static str, String)> {
    const LIST: &str = "apiVersion: v1\nkind: List\n";
    let a = daemon_set("a");
    let untyped = a.replace("apiVersion: apps/v1\nkind: DaemonSet\n", "# DaemonSet\n");
    vec![
        ("a list", list(LIST, &[&a, &daemon_set("b")])),
        ("an empty list", format!("{}---\n{a}", list(LIST, &[]).replace("items:", "items: []"))),
        ("a list in a list", list(LIST, &[&list(LIST, &[&a])])),
        ("without version", list("kind: List\n", &[&a])),
        ("without kind", list("apiVersion: v1\n", &[&a])),
        ("without both", list("", &[&a])),
        ("of v2", list("apiVersion: v2\nkind: List\n", &[&a])),
        ("of apps/v1", list("apiVersion: apps/v1\nkind: List\n", &[&a])),
        ("of a foreign group", list("apiVersion: example.dev/v1\nkind: FooList\n", &[&a])),
        ("of an unknown kind", list("apiVersion: v1\nkind: FooList\n", &[&a])),
        ("of pods", list("apiVersion: v1\nkind: PodList\n", &[&a])),
        ("of DaemonSets", list("apiVersion: apps/v1\nkind: DaemonSetList\n", &[&a])),
        ("with types left out", list("apiVersion: apps/v1\nkind: DaemonSetList\n", &[&untyped])),
        ("without any type", list(LIST, &[&untyped])),
        ("with a text", list(LIST, &[&a, "text"])),
        ("with nothing", list(LIST, &[&a, "null"])),
        ("with a list of texts", list(LIST, &[&a, "[text]"])),
        ("with half an object", list(LIST, &[&a, "{apiVersion: v1}"])),
        ("items that are a mapping", format!("{a}---\n{LIST}items: {{a: 1}}\n")),
        ("items that are nothing", format!("{a}---\n{LIST}items: null\n")),
        ("no items", format!("{a}---\n{LIST}")),
        ("items of a DaemonSet", format!("{a}items: [1]\n")),
    ]
}

fn documents() -> Vec<(&'static str, String)> {
    let and = |text: &str| format!("{}---\n{text}\n", daemon_set("a"));
    let status = |status: &str| format!("{}status: {status}\n", daemon_set("a"));
    vec![
        ("a text", and("text")),
        ("a list of texts", and("- text")),
        ("a number", and("3")),
        ("a boolean", and("true")),
        ("nothing", and("null")),
        ("a comment", and("# DaemonSet")),
        ("an empty mapping", and("{}")),
        ("no kind", and("apiVersion: v1\nmetadata: {name: x}")),
        ("an empty kind", and("apiVersion: v1\nkind: ''")),
        ("a kind that is a number", and("apiVersion: v1\nkind: 3")),
        ("no version", and("kind: Service\nmetadata: {name: x}")),
        ("a status", status("{numberReady: 3}")),
        ("an unknown field of the status", status("{ready: 3}")),
        ("a text in the status", status("{numberReady: many}")),
        ("a text as the status", status("x")),
        ("an unknown field of a condition", status("{conditions: [{type: x, state: y}]}")),
    ]
}

fn spellings() -> Vec<(&'static str, String)> {
    let a = daemon_set("a");
    let (json, b) = (JSON.replace("NAME", "a"), JSON.replace("NAME", "b"));
    let lenient = |name: &str| format!("{},}}", JSON.replace("NAME", name).trim_end_matches('}'));
    let comma = |name: &str| JSON.replace("NAME", name).replace("\"agent:v1\"", "\"agent:v1\",");
    let port = |port: &str| {
        json.replace("\"image\"", &format!("\"ports\": [{{\"containerPort\": {port}}}], \"image\""))
    };
    vec![
        ("a tab on a blank line", a.replace("spec:\n  sel", "spec:\n\t\n  sel")),
        ("a tab on the last line", format!("{a}\t\n")),
        ("a tab before a comment", a.replace("spec:\n  sel", "spec:\n  \t# x\n  sel")),
        ("a tab after a value", a.replace("name: a\n", "name: a\t\n")),
        ("dots within quotes", with_field("args: [\"a\n...\nb\"]")),
        ("dots after other text within quotes", with_field("args: [\"a\nb\n...\nc\"]")),
        ("a quantity with a line feed", with_field("resources: {limits: {cpu: \"1\\n\"}}")),
        ("a quantity with a blank", with_field("resources: {limits: {cpu: \" 1 \"}}")),
        ("JSON", json.clone()),
        ("JSON with a trailing comma", comma("a")),
        ("not closed", lenient("a")),
        ("JSON with an octal number", port("030")),
        ("JSON with a sign", port("+30")),
        ("JSON with single quotes", json.replace("\"agent:v1\"", "'agent:v1'")),
        ("JSON with a comment", json.replacen(',', ",\n# x\n", 1)),
        ("two JSON objects", format!("{json}\n{b}")),
        ("the second with a comma", format!("{json}\n{}", comma("b"))),
        ("the third with a comma", format!("{json}\n{b}\n{}", comma("c"))),
        ("YAML after one", format!("{json}\n---\n{}", daemon_set("c"))),
        ("YAML after two", format!("{json}\n{b}\n---\n{}", daemon_set("c"))),
        ("a comma after JSON", format!("{json},")),
        ("text after JSON", format!("{json} x")),
    ]
}

/// The number of DaemonSets that our reader finds.
fn ours(text: &str) -> Result<usize, String> {
    let file = ManifestFile { path: "f.yaml".into(), bytes: text.as_bytes().to_vec() };
    let options = Options {
        default_namespace: "default".into(),
        validate: FieldValidation::Strict,
        policies: None,
        every_file: true,
        not_objects: NotObjects::Reject,
    };
    let read = manifest::read(&[file], &options);
    read.map(|read| read.daemon_sets.len()).map_err(|errors| errors.to_string())
}

#[test]
fn files_are_read_and_rejected_like_kubectl() {
    if !kubernetes::since(33, "files are read as newer versions of kubectl do") {
        return;
    }
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    let create = ["create", "--dry-run=server", "--validate=strict", "--output=name", "-f", "-"];
    let mut wrong = Vec::new();
    for (name, text) in lists().into_iter().chain(documents()).chain(spellings()) {
        let output = plane.try_kubectl_stdin(&create, &text);
        let theirs = if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).lines().count())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let ours = ours(&text);
        if ours.as_ref().ok() != theirs.as_ref().ok() {
            wrong.push(format!("{name}: ours {ours:?}, kubectl {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
