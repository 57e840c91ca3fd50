//! `ds-plan plan`: the sources of manifests, and the selection of DaemonSets.

use std::process::Stdio;

use insta::assert_snapshot;

use serde_json::Value;

use testkit::fixture::{AGENT, cluster_with, sandbox};
use testkit::sandbox::Sandbox;

#[test]
fn a_new_daemon_set_as_text_and_names() {
    let sandbox = sandbox();
    assert_snapshot!(sandbox.ds_plan("-f agent.yaml --snapshot cluster.json"), @"
    exit 0
    --- stdout
    ds-plan  1 DaemonSet in agent.yaml; cluster, 3 nodes, as recorded in cluster.json at 2026-01-01T00:01:00Z
    Symbols: + created

    + DaemonSet logging/agent   revision 1 (new)   RollingUpdate, at most 1 of 2 unavailable
        image: registry.example/agent:1
        + node-1, node-2   node has no pod yet

    Plan: 2 to create, 0 to delete, 0 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
    About 18s (assuming that pods start in 8s).
    --- stderr
    warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
    let every_node = sandbox.ds_plan("-f agent.yaml --snapshot cluster.json -v --all-nodes");
    insta::with_settings!({filters => [("made by .*", "made by [version and time]")]}, {
        assert_snapshot!(every_node, @"
        exit 0
        --- stdout
        ds-plan  1 DaemonSet in agent.yaml; cluster, 3 nodes, as recorded in cluster.json at 2026-01-01T00:01:00Z
        plan sha256:8755b3a1309cdcffe9db71094da63018f8c71f7cba668e9a2e2df470a848de3f, made by [version and time]
        Symbols: + created

        + DaemonSet logging/agent   revision 1 (new)   RollingUpdate, at most 1 of 2 unavailable
            image: registry.example/agent:1
            + node-1, node-2   node has no pod yet
                node-1
                node-2
              gpu-1            taint gpu:NoSchedule is not tolerated
                gpu-1

        Plan: 2 to create, 0 to delete, 0 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
        About 18s (assuming that pods start in 8s).
        --- stderr
        warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
        ");
    });
    assert_snapshot!(sandbox.ds_plan("-f agent.yaml --snapshot cluster.json -o name"), @"
    exit 0
    --- stdout
    logging/agent
    --- stderr
    warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
}

#[test]
fn json_and_yaml_are_the_same_document() {
    let sandbox = sandbox();
    let document = |format: &str| {
        let run = sandbox.ds_plan(&format!("-f agent.yaml --snapshot cluster.json -o {format}"));
        let mut plan: Value = serde_yaml::from_str(&run.stdout).unwrap();
        plan["createdAt"] = "".into();
        plan
    };
    assert_eq!(document("json"), document("yaml"));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let sandbox = sandbox();
    let plan = || {
        let run = sandbox.ds_plan("-f agent.yaml --snapshot cluster.json -o json");
        let lines = run.stdout.lines().filter(|line| !line.contains("\"createdAt\""));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(plan(), plan());
}

#[test]
fn git_is_read_at_a_revision_and_not_from_the_working_tree() {
    let sandbox = sandbox();
    sandbox.commit();
    sandbox
        .write("agent.yaml", AGENT.replace("name: agent\n  namespace", "name: later\n  namespace"));
    let plan = |flags: &str| {
        sandbox.ds_plan(&format!("--snapshot cluster.json --path agent.yaml {flags}"))
    };
    assert_snapshot!(plan(""), @"
    exit 0
    --- stdout
    ds-plan  1 DaemonSet at 7a2df22 in agent.yaml; cluster, 3 nodes, as recorded in cluster.json at 2026-01-01T00:01:00Z
    Symbols: + created

    + DaemonSet logging/agent   revision 1 (new)   RollingUpdate, at most 1 of 2 unavailable
        image: registry.example/agent:1
        + node-1, node-2   node has no pod yet

    Plan: 2 to create, 0 to delete, 0 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
    About 18s (assuming that pods start in 8s).
    --- stderr
    warning: 1 file differs in the working tree: `agent.yaml`; the plan is of the commit (plain files: -f)
    warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
    sandbox.commit();
    assert_snapshot!(plan("-o name"), @"
    exit 0
    --- stdout
    logging/later
    --- stderr
    warning: logging/later: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
    assert_snapshot!(plan("-o name --rev HEAD~1"), @"
    exit 0
    --- stdout
    logging/agent
    --- stderr
    warning: 1 file differs in the working tree: `agent.yaml`; the plan is of the commit (plain files: -f)
    warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
    assert_snapshot!(plan("-o name --rev HEAD~1 --repo ."), @"
    exit 0
    --- stdout
    logging/agent
    --- stderr
    warning: 1 file differs in the working tree: `agent.yaml`; the plan is of the commit (plain files: -f)
    warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
}

#[test]
fn standard_input_is_read_like_a_file() {
    let sandbox = sandbox();
    let mut command = sandbox.ds_plan_command("-f - --snapshot cluster.json -o name");
    command.stdin(Stdio::from(std::fs::File::open(sandbox.path("agent.yaml")).unwrap()));
    assert_snapshot!(sandbox.run(command), @"
    exit 0
    --- stdout
    logging/agent
    --- stderr
    warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
    let mut command = sandbox.ds_plan_command("-f agent.yaml --snapshot - -o name");
    command.stdin(Stdio::from(std::fs::File::open(sandbox.path("cluster.json")).unwrap()));
    assert_snapshot!(sandbox.run(command), @"
    exit 0
    --- stdout
    logging/agent
    --- stderr
    warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
}

#[test]
fn n_sets_the_default_namespace_and_skips_other_namespaces() {
    let sandbox = sandbox();
    sandbox.write("both/agent.yaml", AGENT);
    sandbox.write("both/free.yaml", AGENT.replace("  namespace: logging\n", ""));
    for (flags, want) in [
        ("", "default/agent\nlogging/agent\n"),
        ("-n default", "default/agent\n"),
        ("-n edge", "edge/agent\n"),
        ("logging/agent", "logging/agent\n"),
        ("-l tier=node", "default/agent\nlogging/agent\n"),
    ] {
        let run = sandbox.ds_plan(&format!("-f both --snapshot cluster.json -o name {flags}"));
        assert_eq!(run.stdout, want, "{flags}\n{run}");
    }
    // In namespace `logging` both are the same DaemonSet.
    let run = sandbox.ds_plan("-f both --snapshot cluster.json -n logging");
    assert_eq!(run.code, Some(1), "{run}");
}

#[test]
fn validate_selects_errors_or_warnings_for_unknown_fields() {
    let sandbox = sandbox();
    sandbox
        .write("agent.yaml", AGENT.replace("image: reg", "imagePolice: x\n          image: reg"));
    for (mode, code, words) in [
        ("", 1, "error: agent.yaml:"),
        ("--validate=strict", 1, "error: agent.yaml:"),
        ("--validate=true", 1, "error: agent.yaml:"),
        ("--validate", 1, "error: agent.yaml:"),
        ("--validate=warn", 0, "warning: agent.yaml:"),
        ("--validate=ignore", 0, ""),
        ("--validate=false", 0, ""),
    ] {
        let run = sandbox.ds_plan(&format!("-f agent.yaml --snapshot cluster.json {mode}"));
        assert_eq!(run.code, Some(code), "{mode}\n{run}");
        assert!(run.stderr.contains(words), "{mode}\n{run}");
        let unpaced = "warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit\n";
        let message = run.stderr.replace(unpaced, "");
        assert_eq!(message.is_empty(), words.is_empty(), "{mode}\n{run}");
    }
}

#[test]
fn secrets_are_shown_only_on_request() {
    let sandbox = sandbox();
    let live = cluster_with(
        &AGENT.replace(
            "image: registry.example/agent:1",
            "image: registry.example/agent:1\n          env: [{name: TOKEN, value: hunter1}]",
        ),
        &["node-1", "node-2"],
    );
    sandbox.write("cluster.json", live.to_string());
    sandbox.write(
        "agent.yaml",
        AGENT.replace(
            "image: registry.example/agent:1",
            "image: registry.example/agent:1\n          env: [{name: TOKEN, value: hunter2}]",
        ),
    );
    for format in ["text", "text -v", "json", "yaml"] {
        let plan = format!("-f agent.yaml --snapshot cluster.json -o {format}");
        let hidden = sandbox.ds_plan(&plan).to_string();
        assert!(!hidden.contains("hunter"), "{hidden}");
        assert!(hidden.contains("TOKEN"), "{hidden}");
        let shown = sandbox.ds_plan(&format!("{plan} --show-values")).to_string();
        assert!(shown.contains("hunter1") && shown.contains("hunter2"), "{shown}");
    }
}

const POLICY: &str = "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: careful}\n\
                      spec: {selects: {names: [logging/agent]}, maxUnavailable: 1}\n";

/// A repository whose branch `change` sets another image, while the live image is a third.
fn pull_request() -> Sandbox {
    let sandbox = sandbox();
    sandbox.write("deploy/policy.yaml", POLICY);
    sandbox.write("deploy/agent.yaml", AGENT.replace("agent:1", "agent:2"));
    let live = cluster_with(AGENT, &["node-1", "node-2"]);
    sandbox.write("cluster.json", live.to_string());
    sandbox.commit();
    sandbox.git(&["checkout", "-q", "-b", "change"]);
    sandbox.write("deploy/policy.yaml", POLICY.replace("careful", "bold"));
    let next = AGENT
        .replace("agent:1", "agent:2")
        .replace("name: agent\n          ", "name: agent\n          tty: true\n          ");
    assert!(next.contains("tty"), "{next}");
    sandbox.write("deploy/agent.yaml", next);
    sandbox.commit();
    sandbox
}

#[test]
fn a_pull_request_is_kept_apart_from_older_drift_and_judged_by_the_bases_policy() {
    let sandbox = pull_request();
    let run = sandbox.ds_plan("--path deploy --base main --snapshot cluster.json");
    assert_snapshot!(run);
    let run = sandbox.ds_plan("--path deploy --base main --snapshot cluster.json -o json");
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let one = &plan["daemonSets"][0];
    assert_eq!(one["policy"], "careful");
    assert_eq!(one["changes"].as_array().unwrap().len(), 2);
    let since = &one["base"];
    assert_eq!(
        (&since["change"], since["changes"].as_array().unwrap().len()),
        (&"update".into(), 1)
    );
    let own = sandbox.ds_plan("--path deploy --snapshot cluster.json -o json");
    let plan: Value = serde_json::from_str(&own.stdout).unwrap();
    assert_eq!(plan["daemonSets"][0]["policy"], "bold");
    assert_eq!(plan["daemonSets"][0].get("base"), None);
}

/// Each was merged without a check, and the pull request corrects it.
#[test]
fn a_pull_request_may_correct_what_is_invalid_at_the_base() {
    for (invalid, change, warning) in [
        // An unknown field counts as at the server: it is ignored.
        ("maxUnavailable: 1\n", "update", None),
        ("updateStrategy: {type: Never}\n", "create", Some("spec.updateStrategy")),
        ("}\n", "create", Some("agent.yaml")),
    ] {
        let sandbox = sandbox();
        sandbox.write("deploy/policy.yaml", POLICY);
        let text = AGENT.replace("agent:1", "agent:2");
        let text = text.replacen("spec:\n", &format!("spec:\n  {invalid}"), 1);
        sandbox.write("deploy/agent.yaml", &text);
        sandbox.write("cluster.json", cluster_with(AGENT, &["node-1"]).to_string());
        sandbox.commit();
        sandbox.git(&["checkout", "-q", "-b", "correction"]);
        sandbox.write("deploy/agent.yaml", AGENT);
        sandbox.commit();
        let run = sandbox.ds_plan("--path deploy --base main --snapshot cluster.json -o json");
        assert_eq!(run.code, Some(0), "{run}");
        let plan: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(plan["daemonSets"][0]["base"]["change"], change, "{run}");
        assert_eq!(plan["daemonSets"][0]["policy"], "careful", "{run}");
        let is_invalid = |it: &&Value| it["code"] == "invalidBase";
        let found = plan["warnings"].as_array().unwrap().iter().find(is_invalid);
        let found = found.map(|it| it["message"].as_str().unwrap());
        assert_eq!(found.is_some(), warning.is_some(), "{run}");
        assert!(found.unwrap_or_default().contains(warning.unwrap_or_default()), "{run}");
    }
}

/// Otherwise, the pull request would be checked against no policy.
#[test]
fn an_invalid_policy_at_the_base_fails_the_check() {
    let sandbox = sandbox();
    sandbox.write("deploy/policy.yaml", POLICY.replace("maxUnavailable: 1", "maxUnavailable: -1"));
    sandbox.write("deploy/agent.yaml", AGENT);
    sandbox.write("cluster.json", cluster_with(AGENT, &["node-1"]).to_string());
    sandbox.commit();
    sandbox.git(&["checkout", "-q", "-b", "correction"]);
    sandbox.write("deploy/policy.yaml", POLICY);
    sandbox.commit();
    assert_snapshot!(sandbox.ds_plan("--path deploy --base main --snapshot cluster.json"));
}

#[test]
fn a_pull_request_may_add_the_folder() {
    let sandbox = sandbox();
    sandbox.commit();
    sandbox.git(&["checkout", "-q", "-b", "request"]);
    sandbox.write("deploy/agent.yaml", AGENT);
    sandbox.commit();
    let run = sandbox.ds_plan("--path deploy --base main --snapshot cluster.json -o json");
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(plan["daemonSets"][0]["base"]["change"], "create", "{run}");
    let run = sandbox.ds_plan("--path gone --base main --snapshot cluster.json");
    assert!(run.stderr.starts_with("error: path `gone` is not in revision `HEAD`"), "{run}");
}

/// Nothing else of the plan is about it.
#[test]
fn what_a_pull_request_removes_or_renames_is_a_warning() {
    let sandbox = sandbox();
    sandbox.write("cluster.json", cluster_with(AGENT, &["node-1", "node-2"]).to_string());
    sandbox.write("deploy/agent.yaml", AGENT);
    let other = AGENT.replace("agent", "other").replace("tier: node", "tier: gpu");
    sandbox.write("deploy/other.yaml", other);
    sandbox.commit();
    sandbox.git(&["checkout", "-q", "-b", "request"]);
    let plan = |flags: &str| {
        sandbox.ds_plan(&format!("--path deploy --base main --snapshot cluster.json {flags}"))
    };
    let words = "the pull request removes it from the source, but it keeps running as it is";
    let run = plan("");
    assert!(!run.stderr.contains(words), "{run}");
    sandbox.write("deploy/agent.yaml", AGENT.replace("name: agent\n  name", "name: new\n  name"));
    sandbox.commit();
    for flags in ["", "-n logging", "-l tier=node"] {
        let run = plan(flags);
        assert!(run.stderr.contains(&format!("warning: logging/agent: {words}")), "{run}");
    }
    let run = plan("-l tier=gpu");
    assert!(run.code == Some(0) && !run.stderr.contains(words), "{run}");
    sandbox.git(&["rm", "-q", "deploy/agent.yaml"]);
    sandbox.git(&["commit", "-q", "-m", "without it"]);
    let document: Value = serde_json::from_str(&plan("-o json").stdout).unwrap();
    let mut warnings = document["warnings"].as_array().unwrap().iter();
    let is_about = |it: &Value| it["code"] == "removedFromSource";
    assert!(warnings.any(|it| is_about(it) && it["daemonSet"] == "logging/agent"), "{document:#}");
    let run = plan("-o markdown");
    assert!(run.stdout.contains("the pull request removes it from the source"), "{run}");
}

#[test]
fn policies_come_from_files_too() {
    let sandbox = sandbox();
    sandbox.write(
        "p.yaml",
        "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\n\
        metadata: {name: apart}\nspec: {selects: {labels: {tier: node}}}\n",
    );
    let run = sandbox.ds_plan("-f agent.yaml --policy p.yaml --snapshot cluster.json -o json");
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(plan["daemonSets"][0]["policy"], "apart", "{run}");
    let run = sandbox.ds_plan("-f agent.yaml --policy none.yaml --snapshot cluster.json");
    assert_eq!(run.code, Some(1), "{run}");
}

/// As with kubectl; a folder may have files of other programs.
#[test]
fn a_named_file_has_kubernetes_objects() {
    let sandbox = sandbox();
    sandbox.write("deploy/agent.yaml", AGENT);
    sandbox.write("deploy/values.yaml", "image: {tag: 1}\n");
    sandbox.write("other.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n");
    let not_an_object = "error: deploy/values.yaml:1:1: not a Kubernetes object: apiVersion and kind \
                         are missing\n";
    let none = "error: no DaemonSet found in `other.yaml`; it has 1 Deployment\n";
    for (files, words) in [
        ("-f agent.yaml -f deploy/values.yaml", Some(not_an_object)),
        ("-f deploy/values.yaml", Some(not_an_object)),
        ("-f other.yaml", Some(none)),
        ("-f agent.yaml -f other.yaml", None),
        ("-f deploy", None),
    ] {
        let run = sandbox.ds_plan(&format!("{files} --snapshot cluster.json"));
        assert_eq!(run.code, Some(i32::from(words.is_some())), "{run}");
        assert!(run.stderr.contains(words.unwrap_or_default()), "{run}");
    }
}

/// It would mean no limits.
#[test]
fn a_file_that_is_named_for_its_policy_has_one() {
    let sandbox = sandbox();
    let policy = "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: x}\n\
                  spec: {selects: {names: [logging/agent]}}\n";
    sandbox.write("good.yaml", policy);
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n";
    let misspelled = policy.replace("RolloutPolicy", "RolloutPolcy");
    for (text, words) in [
        ("", "error: no RolloutPolicy in p.yaml"),
        ("a: b\n", "error: no RolloutPolicy in p.yaml"),
        (service, "error: no RolloutPolicy in p.yaml"),
        (&*misspelled, "error: p.yaml:1:1: unknown kind `RolloutPolcy` of ds-plan.dev; did you"),
    ] {
        sandbox.write("p.yaml", text);
        for files in ["--policy p.yaml", "--policy good.yaml --policy p.yaml"] {
            let run = sandbox.ds_plan(&format!("-f agent.yaml {files} --snapshot cluster.json"));
            assert_eq!((run.code, &*run.stdout), (Some(1), ""), "{text}: {run}");
            assert!(run.stderr.starts_with(words), "{text}: {run}");
        }
    }
    // The same file by two names counts once.
    let twice = "-f agent.yaml --policy good.yaml --policy ./good.yaml --snapshot cluster.json";
    assert_eq!(sandbox.ds_plan(twice).code, Some(0));
}

#[test]
fn a_plan_is_saved_atomically() {
    let sandbox = sandbox();
    let run = sandbox.ds_plan("-f agent.yaml --snapshot cluster.json -o json --out plan.json");
    assert_eq!(std::fs::read_to_string(sandbox.path("plan.json")).unwrap(), run.stdout);
    let run = sandbox.ds_plan("-f agent.yaml --snapshot cluster.json --out none/plan.json");
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.starts_with("error: cannot write none/plan.json"), "{run}");
    assert_eq!(run.stdout, "");
}
