//! `--source-id` and `--prune`: the output, and when pruning is not possible.

use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::{Value, json};

use testkit::fixture::{AGENT, cluster_with, of_kind};
use testkit::sandbox::Sandbox;

/// The only DaemonSet that the source still contains.
fn other() -> String {
    AGENT.replace("agent", "other")
}

/// `logging/agent` is live, and was applied by source `prod` from these files.
fn sandbox(paths: &str) -> Sandbox {
    let mut cluster = cluster_with(AGENT, &["node-1", "node-2"]);
    for live in of_kind(&mut cluster, "DaemonSet") {
        live["metadata"]["annotations"] =
            json!({"ds-plan.dev/source-id": "prod", "ds-plan.dev/source-paths": paths});
    }
    Sandbox::with(&[("cluster.json", &cluster.to_string()), ("other.yaml", &other())])
}

#[test]
fn deleted_daemon_sets_are_shown_with_their_pods_and_guarded() {
    let sandbox = sandbox("other.yaml");
    let line = "-f other.yaml --snapshot cluster.json --source-id prod --prune --fail-on-guards";
    assert_snapshot!(sandbox.ds_plan(line), @"
    exit 6
    --- stdout
    ds-plan  2 DaemonSets in other.yaml; cluster, 3 nodes, as recorded in cluster.json at 2026-01-01T00:04:00Z
    Symbols: + created, - deleted

    - DaemonSet logging/agent (deleted: no longer in the source; its pods on 2 nodes are deleted at once)   revision 1   RollingUpdate, at most 1 of 2 unavailable
        - node-1, node-2   deleted with its DaemonSet by the garbage collector

    + DaemonSet logging/other   revision 1 (new)   RollingUpdate, at most 1 of 2 unavailable
        image: registry.example/other:1
        + node-1, node-2   node has no pod yet

    Blocked: 1 of 1 DaemonSets applied from source `prod` would be deleted because they are no longer in it. Check that the right folder and revision were read. To allow it, pass --allow-mass-deletion.

    Plan: 2 to create, 2 to delete, 0 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
    About 18s (assuming that pods start in 8s).
    --- stderr
    warning: logging/other: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
    let orphaning = sandbox.ds_plan(&format!("{line} --cascade orphan"));
    assert!(orphaning.stdout.contains("its pods are kept"), "{orphaning}");
    assert!(orphaning.stdout.contains("Plan: 2 to create, 0 to delete"), "{orphaning}");

    let json = sandbox.ds_plan(&format!("{line} -o json")).stdout;
    let plan: Value = serde_json::from_str(&json).unwrap();
    let schema: Value =
        serde_json::from_str(include_str!("../../schemas/plan.schema.json")).unwrap();
    jsonschema::validate(&schema, &plan).unwrap();
    let agent = &plan["daemonSets"][0];
    assert_eq!((&agent["change"], &agent["cascade"]), (&json!("delete"), &json!("background")));
    assert_eq!(plan["source"]["id"], "prod");

    let elsewhere = self::sandbox("deploy").ds_plan(line);
    assert!(elsewhere.stdout.contains("--allow-other-source"), "{elsewhere}");
    let unmarked =
        sandbox.ds_plan("-f other.yaml --snapshot cluster.json --source-id stage --prune");
    assert!(!unmarked.stdout.contains("logging/agent"), "{unmarked}");
}

/// Two repositories with the same folder and, by mistake, the same id.
#[test]
fn what_another_repository_applied_is_guarded() {
    let mut cluster = cluster_with(AGENT, &["node-1", "node-2"]);
    for live in of_kind(&mut cluster, "DaemonSet") {
        live["metadata"]["annotations"] = json!({
            "ds-plan.dev/source-id": "prod", "ds-plan.dev/source-paths": "deploy",
            "ds-plan.dev/source-repository": "git.example/team/fleet",
        });
    }
    let files = [("cluster.json", &*cluster.to_string()), ("deploy/other.yaml", &*other())];
    let sandbox = Sandbox::with(&files);
    sandbox.commit();
    sandbox.git(&["remote", "add", "origin", "https://git.example/team/fleet.git"]);
    let line = "--path deploy --source-id prod --snapshot cluster.json";
    for (url, repository, guarded) in [
        ("https://git.example/team/fleet.git", "git.example/team/fleet", false),
        ("git@git.example:team/net.git", "git.example/team/net", true),
    ] {
        sandbox.git(&["remote", "set-url", "origin", url]);
        let marked = sandbox.ds_plan(&format!("diff {line}"));
        let mark = format!("ds-plan.dev/source-repository: {repository}\n");
        assert!(marked.stdout.contains(&mark), "{marked}");
        let pruned = sandbox.ds_plan(&format!("{line} --prune"));
        assert!(pruned.stdout.contains("--allow-mass-deletion"), "{pruned}");
        assert_eq!(pruned.stdout.contains("--allow-other-source"), guarded, "{pruned}");
    }
}

#[test]
fn part_of_a_source_is_refused() {
    let sandbox = sandbox("other.yaml");
    sandbox.write("whole/other.yaml", other());
    sandbox.write("rendered/other.yaml", other());
    sandbox.write("rendered/chart/Chart.yaml", "name: agent\n");
    sandbox.write("rendered/chart/templates/agent.yaml", AGENT);
    sandbox.write("linked/other.yaml", other());
    sandbox.write("common/agent.yaml", AGENT);
    symlink("../common", sandbox.path("linked/common")).unwrap();
    sandbox.write("flat/other.yaml", other());
    sandbox.write("flat/sub/agent.yaml", AGENT);
    symlink("other.yaml", sandbox.path("whole/README")).unwrap();
    for (flags, code) in [
        ("-f linked -R --source-id prod --prune", 64),
        ("-f linked -R --source-id prod", 0),
        ("-f other.yaml --source-id prod --prune", 0),
        ("-f whole -R --source-id prod --prune", 0),
        ("-f flat --source-id prod --prune", 64),
        ("-f flat --source-id prod", 0),
        ("-f flat -R --source-id prod --prune", 0),
        ("-f other.yaml --prune", 64),
        ("-f other.yaml --cascade orphan --source-id prod", 64),
        ("-f other.yaml --prune --source-id=", 64),
        ("-f other.yaml --source-id prod --prune logging/other", 64),
        ("-f other.yaml --source-id prod --prune -l tier=node", 64),
        ("-f other.yaml --source-id prod --prune -n logging", 64),
        ("-f other.yaml --source-id prod -n logging", 0),
        ("-f rendered -R --source-id prod --prune", 64),
        ("-f rendered -R --source-id prod", 0),
        ("-f home --source-id prod --prune", 1),
    ] {
        let run = sandbox.ds_plan(&format!("{flags} --snapshot cluster.json"));
        assert_eq!(run.code, Some(code), "{flags}: {run}");
    }
    let refused =
        sandbox.ds_plan("-f rendered -R --source-id prod --prune --snapshot cluster.json");
    assert!(refused.stderr.contains("a part of it was not read"), "{refused}");
}
