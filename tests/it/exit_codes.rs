//! Every exit code of `ds-plan`. Scripts rely on the numbers.

use testkit::fixture::{AGENT, cluster_with, sandbox};

#[test]
fn each_outcome_has_its_exit_code() {
    let sandbox = sandbox();
    for (line, want) in [
        ("-f agent.yaml --snapshot cluster.json", 0),
        ("plan -f agent.yaml --snapshot cluster.json", 0),
        ("-f agent.yaml --snapshot cluster.json --detailed-exitcode", 2),
        ("-f agent.yaml --snapshot cluster.json --fail-on-guards", 0),
        ("-f none.yaml --snapshot cluster.json", 1),
        ("-f agent.yaml --snapshot none.json", 1),
        ("-f agent.yaml --snapshot cluster.json logging/other", 1),
        ("-f agent.yaml --snapshot cluster.json -n other", 1),
        ("-f agent.yaml --snapshot cluster.json -l tier=other", 1),
        ("status --snapshot cluster.json", 0),
        ("diff -f agent.yaml --snapshot cluster.json", 0),
        ("diff -f agent.yaml --snapshot cluster.json --detailed-exitcode", 2),
        ("drift -f agent.yaml --snapshot cluster.json", 3),
        ("drift -f none.yaml --snapshot cluster.json", 1),
        ("history --snapshot cluster.json", 0),
        ("history --snapshot cluster.json --diff 1..2", 64),
        ("man", 0),
        ("man nonsense", 64),
        ("explain logging/other node-1 --snapshot cluster.json", 1),
        ("schema", 0),
        ("--help", 0),
        ("--version", 0),
        ("help plan", 0),
        ("-o xml", 64),
        ("-f agent.yaml --snapshot cluster.json -o markdown", 0),
        ("-f agent.yaml --snapshot cluster.json -o markdown --comment a--b", 64),
        ("-f agent.yaml --snapshot cluster.json --comment a", 64),
        ("-k . --snapshot cluster.json", 64),
        ("-k . --allow-kustomize -f agent.yaml", 64),
        ("-k . --allow-kustomize --path .", 64),
        ("--nonsense", 64),
        ("explain", 64),
    ] {
        let run = sandbox.ds_plan(line);
        assert_eq!(run.code, Some(want), "{line}\n{run}");
    }
}

#[test]
fn no_changes_are_0_and_a_guard_is_more_severe_than_a_change() {
    let sandbox = sandbox();
    let plan = "-f agent.yaml --snapshot cluster.json --detailed-exitcode --fail-on-guards";
    for (rule, pods, selector, want) in [
        ("every node has its pod", vec!["node-1", "node-2"], "agent", 0),
        ("one pod is missing", vec!["node-1"], "agent", 2),
        ("another selector", vec!["node-1"], "other", 6),
    ] {
        sandbox.write("cluster.json", cluster_with(AGENT, &pods).to_string());
        sandbox.write("agent.yaml", AGENT.replace("{app: agent}", &format!("{{app: {selector}}}")));
        let run = sandbox.ds_plan(plan);
        assert_eq!(run.code, Some(want), "{rule}\n{run}");
    }
}
