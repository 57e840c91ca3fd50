//! `ds-plan checks` asks a real Prometheus about a recorded cluster.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::fixture::{AGENT, cluster_with};
use testkit::sandbox::Sandbox;

use super::asking::scraped;
use super::{Exporter, Prometheus};

/// A sandbox with one gate: a query with its bounds.
fn sandbox(server: &Prometheus, gate: &str) -> Sandbox {
    let cluster = cluster_with(AGENT, &["node-1", "node-2"]).to_string();
    let sandbox = Sandbox::with(&[("cluster.json", &cluster), ("deploy/agent.yaml", AGENT)]);
    let address = server.address();
    let policy = format!(
        "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: agents}}\nspec:\n  \
         selects: {{names: [logging/agent]}}\n  gates:\n  - name: errors\n    interval: 1s\n    \
         prometheus: {{address: '{address}', {gate}}}\n"
    );
    sandbox.write("deploy/policy.yaml", policy);
    sandbox
}

const LINE: &str = "checks --snapshot cluster.json -f deploy";
const ERRORS: &str = "query: 'agent_errors{node=~\"{{nodes}}\"}'";

#[test]
fn answers_values_and_how_often_it_would_have_passed() {
    let exporter = Exporter::start();
    exporter.set("agent_errors{node=\"node-1\"} 0\nagent_errors{node=\"node-2\"} 0");
    let server = Prometheus::start(&[&exporter]);
    scraped(&server, "sum(agent_errors)", 0.0);
    std::thread::sleep(Duration::from_secs(4));
    exporter.set("agent_errors{node=\"node-1\"} 0\nagent_errors{node=\"node-2\"} 0.5");
    scraped(&server, "sum(agent_errors)", 0.5);
    // The program's clock has whole seconds.
    std::thread::sleep(Duration::from_secs(1));

    let gate = format!("{ERRORS}, max: 0.01");
    let run = sandbox(&server, &gate).ds_plan(LINE);
    assert_eq!(run.code, Some(4), "{run}");
    let answer = "gate errors: fail: 0.5 at ";
    assert!(run.stdout.contains(answer) && run.stdout.contains("node=node-2"), "{run}");
    assert!(run.stdout.contains("█  0 to 0.5, last 0.5, worst of 2 series, since "), "{run}");

    for (format, picture, bound, other) in [
        (
            "markdown",
            "█\n0 to 0.5, last 0.5, worst of 2 series, since ",
            "at most 0.01",
            "node=node-1",
        ),
        (
            "html",
            "role=\"img\" aria-label=\"errors: 0 to 0.5, last 0.5",
            ">at most 0.01<",
            "node=node-1",
        ),
    ] {
        let run = sandbox(&server, &gate).ds_plan(&format!("{LINE} -o {format}"));
        assert_eq!(run.code, Some(4), "{run}");
        for want in [picture, bound, other] {
            assert!(run.stdout.contains(want), "{want}: {run}");
        }
        assert!(!run.stdout.contains("<script"), "{run}");
    }

    let run = sandbox(&server, &format!("{ERRORS}, max: 0.7")).ds_plan(&format!("{LINE} -o json"));
    assert_eq!(run.code, Some(0), "{run}");
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["daemonSets"][0]["nodes"], 2);
    let check = &report["daemonSets"][0]["checks"][0];
    assert_eq!((&check["answer"], &check["series"]), (&json!("pass"), &json!(2)));

    let misspelt = sandbox(&server, "query: agent_erors, max: 0.7").ds_plan(LINE);
    assert_eq!(misspelt.code, Some(8), "{misspelt}");
    assert!(misspelt.stdout.contains("errors: unknown: the query has no series"), "{misspelt}");
}

#[test]
fn a_threshold_is_tried_on_the_past_and_the_answers_are_recorded() {
    let exporter = Exporter::start();
    exporter.set("agent_errors{node=\"node-1\"} 1");
    let server = Prometheus::start(&[&exporter]);
    scraped(&server, "sum(agent_errors)", 1.0);
    std::thread::sleep(Duration::from_secs(5));
    let line = format!("{LINE} --over 4s --record answers.json");
    let run = sandbox(&server, &format!("{ERRORS}, max: 2")).ds_plan(&line);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("5 would have passed, 0 failed, 0 been unknown"), "{run}");
    assert!(run.stderr.contains("always passes: all 5 samples since "), "{run}");
    assert!(run.stderr.contains("the worst value is 1; make sure"), "{run}");

    let sandbox = sandbox(&server, &format!("{ERRORS}, max: 0.5"));
    let run = sandbox.ds_plan(&line);
    assert_eq!(run.code, Some(4), "{run}");
    assert!(run.stderr.contains("never passes: of 5 samples since "), "{run}");
    let text = std::fs::read_to_string(sandbox.path("answers.json")).unwrap();
    let answers: Value = serde_json::from_str(&text).unwrap();
    let schema: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/schemas/check-answers.schema.json"
    )))
    .unwrap();
    assert!(jsonschema::is_valid(&schema, &answers), "{text}");
    let answer = &answers["answers"][0];
    assert_eq!(
        (&answer["daemonSet"], &answer["check"]),
        (&json!("logging/agent"), &json!("errors"))
    );
    assert_eq!(answer["series"][0]["points"].as_array().unwrap().len(), 5, "{text}");
    assert_eq!(answer["series"][0]["points"][4][1], "1");
}
