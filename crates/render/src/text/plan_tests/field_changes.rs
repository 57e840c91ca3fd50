//! The changed fields of a plan as text.

use serde_json::json;

use super::{text, verbose};
use crate::examples::{change, plan, updated};
use planner::plan::FieldChange;

/// One change of each kind of value.
fn of_each_kind() -> Vec<FieldChange> {
    let masked = |change: FieldChange| FieldChange { masked: true, ..change };
    let config = |level: &str| {
        let value = |n| if n == 15 { level } else { "x" };
        let lines: Vec<_> = (1..=30).map(|n| format!("line {n} = {}", value(n))).collect();
        lines.join("\n")
    };
    vec![
        change("spec.minReadySeconds", json!(null), 10),
        change("spec.template.spec.priorityClassName", "system-node-critical", json!(null)),
        change("spec.template.metadata.labels[app.kubernetes.io/version]", "1.0", "1.1"),
        change(
            "spec.template.spec.containers[a].args",
            json!(["--a", "--level=info", "--z"]),
            json!(["--a", "--level=debug", "--z"]),
        ),
        change(
            "spec.template.spec.containers[b]",
            json!(null),
            json!({"name": "b", "image": "b:1", "resources": {}}),
        ),
        masked(change("spec.template.spec.containers[a].env[TOKEN].value", "(masked)", "(masked)")),
        masked(change("spec.template.spec.containers[a].env[NEW].value", json!(null), "(masked)")),
        masked(change(
            "spec.template.spec.initContainers[i]",
            json!({"env": [{"name": "T", "value": "(masked)"}]}),
            json!(null),
        )),
        change("metadata.annotations[config]", config("info"), config("debug")),
        change("metadata.annotations[space]", "a", "a "),
        change("metadata.annotations[newline]", "a\nb", "a\nb\n"),
        change(
            "metadata.annotations[long]",
            format!("{}1{}", "x".repeat(300), "y".repeat(300)),
            format!("{}2", "x".repeat(300)),
        ),
    ]
}

#[test]
fn field_changes() {
    insta::assert_snapshot!(text(&plan(vec![updated("agent", of_each_kind())])), @r#"
    ds-plan  1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
    Symbols: ~ changed

    ~ DaemonSet logging/agent   revision 7 -> 8 (new)   RollingUpdate, at most 42 of 412 unavailable
        + spec.minReadySeconds: 10
        - spec.template.spec.priorityClassName: system-node-critical
        ~ spec.template.metadata.labels[app.kubernetes.io/version]
            - "1.0"
            + "1.1"
        ~ spec.template.spec.containers[a].args
              - --a
            - - --level=info
            + - --level=debug
              - --z
        + spec.template.spec.containers[b]
            + image: b:1
            + name: b
            + resources: {}
        ~ spec.template.spec.containers[a].env[TOKEN].value   (sensitive value)
        + spec.template.spec.containers[a].env[NEW].value   (sensitive value)
        - spec.template.spec.initContainers[i]
            - env:
            - - name: T
            -   value: (masked)
        ~ metadata.annotations[config]
              … 12 lines unchanged
              line 13 = x
              line 14 = x
            - line 15 = info
            + line 15 = debug
              line 16 = x
              line 17 = x
              … 13 lines unchanged
        ~ metadata.annotations[space]
            - a
            + "a "
        ~ metadata.annotations[newline]
              … 2 lines unchanged
              (now with a newline at the end)
        ~ metadata.annotations[long]
            - …xxxxxxxxxxxxxxxxxxxx1yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy… (441 characters left out, -v shows them)
            + …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx2 (141 characters left out, -v shows them)

    Plan: 0 to create, 0 to delete, 0 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    "#);
}

#[test]
fn a_long_new_value_is_counted_not_cut() {
    let script: Vec<_> = (1..=40).map(|n| format!("step {n}")).collect();
    let added = || vec![change("metadata.annotations[script]", json!(null), script.join("\n"))];
    let short = text(&plan(vec![updated("agent", added())]));
    assert!(short.contains("+ step 23\n          … 17 more lines (-v shows them)\n"), "{short}");
    assert!(verbose(&plan(vec![updated("agent", added())])).contains("+ step 40\n"));
}

#[test]
fn a_huge_value_is_not_compared() {
    let lines = |word: &str| vec![word; 3000].join("\n");
    let text = text(&plan(vec![updated("agent", vec![change("a", lines("x"), lines("y"))])]));
    assert!(
        text.contains("too long to compare: 3,000 lines before, 3,000 lines after\n"),
        "{text}"
    );
}
