//! What a new user tries, right and wrong: the commands of `tried.md`, what they printed when they
//! were first tried, and what they print now.
//!
//! `UPDATE_TRIED=1` writes what they print now; read the difference before committing it.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use testkit::fixture::{AGENT, cluster_with, of_kind};
use testkit::sandbox::Sandbox;

/// Lines of an output that are kept; the rest is counted.
const MOST_LINES: usize = 24;

const VERSION: &str = concat!(", made by ds-plan ", env!("CARGO_PKG_VERSION"));

/// A section of the file.
struct Tried {
    /// The command.
    line: String,
    /// What it printed when it was first tried.
    then: String,
    /// What it prints now.
    now: String,
}

#[test]
fn commands_print_what_the_file_says() {
    let file = file();
    let text = std::fs::read_to_string(&file).unwrap();
    let (head, mut sections) = parsed(&text);
    assert!(sections.len() >= 75, "{}", sections.len());
    let update = crate::is_set("UPDATE_TRIED");
    let mut wrong = String::new();
    for section in &mut sections {
        let now = shortened(&output(&section.line));
        if update {
            section.now = now;
        } else if section.now != now {
            let Tried { line, then: _, now: want } = section;
            writeln!(wrong, "`{line}` printed\n{now}\ninstead of\n{want}\n").unwrap();
        }
    }
    if update {
        std::fs::write(&file, written(&head, &sections)).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}UPDATE_TRIED=1 remakes the file");
}

fn file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/it/tried.md"].iter().collect()
}

/// Runs a command in a folder of its own.
fn output(line: &str) -> String {
    let sandbox = sandbox();
    let run = match line.split_once(' ').unwrap_or((line, "")) {
        ("ds-plan", args) => sandbox.ds_plan(args),
        ("ds-apply", args) => sandbox.ds_apply(args),
        (other, _) => panic!("not a program of ours: {other}"),
    };
    // The time of the plan is the only thing that differs between two runs.
    let text = run.to_string();
    let lines = text.trim_end().lines().map(|line| match line.split_once(VERSION) {
        Some((plan, _)) => format!("{plan}{VERSION} at [time]"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn shortened(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let Some(left) = lines.len().checked_sub(MOST_LINES + 1).filter(|left| *left > 0) else {
        return output.to_owned();
    };
    format!("{}\n[{} more lines]", lines[..MOST_LINES].join("\n"), left + 1)
}

fn parsed(text: &str) -> (String, Vec<Tried>) {
    let mut parts = text.split("\n## `");
    let head = parts.next().unwrap().trim_end().to_owned();
    let sections = parts.map(|part| {
        let (line, rest) = part.split_once("`\n").unwrap();
        let mut blocks = rest.split("````text\n").skip(1).map(|block| {
            let block = block.split("\n````").next().unwrap();
            block.to_owned()
        });
        let then = blocks.next().unwrap_or_default();
        // A second block is there only if the two differ.
        let now = blocks.next().unwrap_or_else(|| then.clone());
        Tried { line: line.to_owned(), then, now }
    });
    (head, sections.collect())
}

fn written(head: &str, sections: &[Tried]) -> String {
    let mut text = format!("{head}\n");
    for Tried { line, then, now } in sections {
        let then = if then == now {
            "The same now:".to_owned()
        } else {
            format!("Then:\n\n````text\n{then}\n````\n\nNow:")
        };
        write!(text, "\n## `{line}`\n\n{then}\n\n````text\n{now}\n````\n").unwrap();
    }
    text
}

/// The folder of a new user: a repository whose commit has a new image, a recording of the cluster,
/// and files with mistakes.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("deploy/agent.yaml", AGENT.replace("agent:1", "agent:2"));
    sandbox.commit();
    let mut cluster = cluster_with(AGENT, &["node-1", "node-2"]);
    for live in of_kind(&mut cluster, "DaemonSet") {
        own(live);
    }
    sandbox.write("cluster.json", cluster.to_string());
    let more = |extra: &str| AGENT.replace("        - name: agent\n", extra);
    for (name, text) in [
        ("agent.yaml", AGENT.to_owned()),
        ("next.yaml", AGENT.replace("agent:1", "agent:2")),
        ("split/agent.yaml", AGENT.replace("namespace: logging", "namespace: nowhere")),
        (
            "split/namespace.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: nowhere}\n".into(),
        ),
        ("split/template.yaml", "{{- if .Values.namespace }}\nkind: Namespace\n".into()),
        ("empty.yaml", String::new()),
        ("nothing.yaml", NOTHING.to_owned()),
        ("string.yaml", "agent\n".to_owned()),
        ("kindless.yaml", "metadata: {name: agent}\n".to_owned()),
        ("lists.yaml", format!("{LIST_IN_LIST}{}\n", indented(AGENT))),
        ("typo.yaml", AGENT.replace("template:", "tmplate: {}\n  template:")),
        ("two.yaml", AGENT.replace("image: registry.example/agent:1", "imagePulPolicy: Always")),
        ("ports.yaml", more(PORTS)),
        ("tab.yaml", AGENT.replace("spec:\n  selector", "\t\nspec:\n  selector")),
        ("comma.json", "{\"apiVersion\": \"apps/v1\", \"kind\": \"DaemonSet\",}".to_owned()),
        ("elsewhere.yaml", AGENT.replace("namespace: logging", "namespace: nowhere")),
        (
            "class.yaml",
            more("        - name: agent\n")
                .replace("    spec:\n", "    spec:\n      priorityClassName: no-such-class\n"),
        ),
        (
            "strategy.yaml",
            AGENT.replace("  template:\n", "  updateStrategy: {type: OnDelete}\n  template:\n"),
        ),
        (
            "level.yaml",
            AGENT.replace("agent:1", "agent:2\n          env: [{name: LOG_LEVEL, value: debug}]"),
        ),
    ] {
        sandbox.write(name, text);
    }
    for live in of_kind(&mut cluster, "DaemonSet") {
        live["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        live["metadata"]["annotations"]["ds-plan.dev/rollout"] = PAUSE.into();
        own(live);
    }
    sandbox.write("paused.json", cluster.to_string());
    let saved = sandbox.ds_plan("--snapshot cluster.json -f next.yaml --out plan.json -o name");
    assert_eq!(saved.code, Some(0), "{saved}");
    sandbox
}

/// Makes all fields those of `ds-apply`, as after an apply.
fn own(live: &mut Value) {
    live["metadata"]["managedFields"] = Value::Null;
    let manifest = ssa::Manifest { applied: live, defaulted: live };
    let time = "2026-01-01T00:02:00Z".parse().unwrap();
    let merged = ssa::apply(&ssa::DAEMON_SET, None, manifest, "ds-apply", time).unwrap();
    live["metadata"]["managedFields"] = merged.managed_fields.to_value();
}

/// Two more columns before each line, after the dash of a list.
fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("        {line}")).collect();
    lines.join("\n").replacen("        ", "      - ", 1)
}

const LIST_IN_LIST: &str = "apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: List
    items:
";

const NOTHING: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
";

const PORTS: &str = "        - name: agent
          ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]
";

const PAUSE: &str = r#"{"state":"paused",
    "declared":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}},
    "planDigest":"sha256:6fd1","since":"2026-08-01T11:00:00Z","by":"ci@runner-7"}"#;
