//! A pull request that tries to choose the policy that is applied to it.

use serde_json::Value;

use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::{Run, Sandbox};

/// A policy `p` for the DaemonSets of tier `node`.
const POLICY: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: p}
spec:
  selects: {labels: {tier: node}}
  maxUnavailable: 1
  minReadySeconds: 30
  progressDeadline: 5m
  skipUnreadyNodes: {max: 1}
  maxRestarts: 1
";

fn agent() -> String {
    AGENT.replace(
        "  template:",
        "  updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}\n  template:",
    )
}

/// A newer version of the DaemonSet.
fn newer() -> String {
    agent().replace("agent:1", "agent:2")
}

/// A repository whose branches `main` and `origin/main` have the policy; `topic` is checked out.
fn repository() -> Sandbox {
    let sandbox = Sandbox::with(&[("deploy/agent.yaml", &agent())]);
    sandbox.write("cluster.json", cluster().to_string());
    // The cluster after the first rollout, including managed fields.
    let line = "-f deploy --snapshot cluster.json --rehearse --save cluster.json --yes";
    let run = sandbox.ds_apply(line);
    assert_eq!(run.code, Some(0), "{run}");
    sandbox.commit();
    sandbox.git(&["branch", "before"]);
    sandbox.write("deploy/policy.yaml", POLICY);
    sandbox.commit();
    sandbox.git(&["remote", "add", "origin", "."]);
    sandbox.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    sandbox.git(&["checkout", "-q", "-b", "topic"]);
    sandbox.write("deploy/agent.yaml", newer());
    sandbox
}

fn plan(sandbox: &Sandbox, line: &str) -> Value {
    let run = sandbox.ds_plan(&format!("{line} --snapshot cluster.json -o json"));
    serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"))
}

fn guards(plan: &Value) -> Vec<&str> {
    plan["guards"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect()
}

fn is_judged_by_p(plan: &Value) -> bool {
    let agent = &plan["daemonSets"][0];
    agent["policy"] == "p" && agent["waves"][0]["maxUnavailable"] == 1
}

const BASE: &str = "--path deploy --base origin/main";

#[test]
fn another_label_does_not_select_another_policy() {
    let sandbox = repository();
    sandbox.write("deploy/agent.yaml", newer().replace("tier: node", "tier: other"));
    sandbox.commit();
    let by_base = plan(&sandbox, BASE);
    assert!(is_judged_by_p(&by_base), "{by_base}");
    // Nor where only the live object has it.
    let live = plan(&sandbox, "-f deploy");
    assert!(is_judged_by_p(&live), "{live}");
    // A looser one for the new label is a second one.
    let loose = POLICY.replace("name: p", "name: q").replace("tier: node", "tier: other");
    let loose = loose.replace("maxUnavailable: 1", "maxUnavailable: 100%");
    sandbox.write("deploy/policy.yaml", format!("{POLICY}---\n{loose}"));
    sandbox.git(&["stash", "-q"]);
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.git(&["stash", "pop", "-q"]);
    sandbox.commit();
    sandbox.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    sandbox.git(&["checkout", "-q", "topic"]);
    let run = sandbox.ds_plan(&format!("{BASE} --snapshot cluster.json"));
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("a second RolloutPolicy for DaemonSet logging/agent"), "{run}");
}

#[test]
fn a_saved_plan_is_applied_with_the_policy_of_the_live_labels() {
    let sandbox = repository();
    sandbox.write("deploy/agent.yaml", newer().replace("tier: node", "tier: other"));
    sandbox.commit();
    let saved = sandbox.ds_plan("--path deploy --snapshot cluster.json --out plan.json");
    assert_eq!(saved.code, Some(0), "{saved}");
    for what in ["--plan plan.json", "--path deploy"] {
        let run =
            sandbox.ds_apply(&format!("{what} --snapshot cluster.json --rehearse --yes --seed 7"));
        assert_eq!(run.code, Some(0), "{what}: {run}");
        assert_one_at_a_time(&run);
    }
}

/// Each of the two nodes' pods had to stay Ready for 30 s; without the policy, for 10 s.
#[track_caller]
fn assert_one_at_a_time(run: &Run) {
    let took = run.stderr.lines().find(|line| line.contains("of the cluster's time")).unwrap();
    assert!(took.contains("nodes: 1m "), "{run}");
}

#[test]
fn a_tag_is_not_the_remote_branch() {
    let sandbox = repository();
    // The request's own policy, under a tag and a branch with the name of the remote branch.
    sandbox
        .write("deploy/policy.yaml", POLICY.replace("maxUnavailable: 1", "maxUnavailable: 100%"));
    sandbox.commit();
    for reference in ["refs/tags/origin/main", "refs/heads/origin/main", "refs/origin/main"] {
        sandbox.git(&["update-ref", reference, "HEAD"]);
    }
    for base in ["origin/main", "origin/main^{commit}", "origin/main~0", "refs/remotes/origin/main"]
    {
        let plan = plan(&sandbox, &format!("--path deploy --base {base}"));
        assert!(is_judged_by_p(&plan), "{base}: {plan}");
    }
    // A missing branch is not found under another name.
    sandbox.git(&["tag", "origin/gone"]);
    let run = sandbox.ds_plan("--path deploy --base origin/gone --snapshot cluster.json");
    assert_eq!(run.code, Some(1), "{run}");
    // A local branch also takes precedence over a tag.
    sandbox.git(&["tag", "main"]);
    let plan = plan(&sandbox, "--path deploy --base main");
    assert!(is_judged_by_p(&plan), "{plan}");
}

#[test]
fn a_named_policy_is_read_from_the_base() {
    let sandbox = repository();
    sandbox.git(&["mv", "deploy/policy.yaml", "policy.yaml"]);
    sandbox.commit();
    sandbox.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let loose = POLICY.replace("maxUnavailable: 1", "maxUnavailable: 100%");
    sandbox.write("policy.yaml", &loose);
    sandbox.commit();
    let absolute = sandbox.path("policy.yaml");
    for name in
        ["policy.yaml", "./policy.yaml", "deploy/../policy.yaml", absolute.to_str().unwrap()]
    {
        let plan = plan(&sandbox, &format!("{BASE} --policy {name}"));
        assert!(is_judged_by_p(&plan), "{name}: {plan}");
        assert_eq!(guards(&plan), ["policyChange"], "{name}: {plan}");
    }
    // A policy outside of the repository belongs to the pipeline.
    let outside = Sandbox::with(&[("policy.yaml", &loose)]);
    let outside = outside.path("policy.yaml");
    let plan = plan(&sandbox, &format!("{BASE} --policy {}", outside.display()));
    assert_eq!(plan["daemonSets"][0]["waves"][0]["maxUnavailable"], 2, "{plan}");
}

#[test]
fn the_policy_applies_to_an_older_branch() {
    let sandbox = repository();
    sandbox.git(&["stash", "-q"]);
    sandbox.git(&["checkout", "-q", "-B", "topic", "before"]);
    sandbox.git(&["stash", "pop", "-q"]);
    sandbox.commit();
    let plan = plan(&sandbox, BASE);
    assert!(is_judged_by_p(&plan), "{plan}");
    // It has not deleted a policy that it never had.
    assert_eq!(guards(&plan), Vec::<&str>::new());
}

#[test]
fn a_new_path_of_the_request_hides_no_policy() {
    let sandbox = repository();
    sandbox.write("new/other.yaml", agent().replace("name: agent\n  n", "name: other\n  n"));
    sandbox.commit();
    let plan = plan(&sandbox, "--path deploy --path new --base origin/main");
    assert!(is_judged_by_p(&plan), "{plan}");
    assert_eq!(plan["daemonSets"].as_array().unwrap().len(), 2, "{plan}");
}

#[test]
fn a_loosened_policy_is_reported() {
    for (from, to, reported) in [
        (POLICY, "", "RolloutPolicy `p` would no longer apply"),
        ("maxUnavailable: 1", "maxUnavailable: 2", "maxUnavailable from 1 to 2"),
        ("maxUnavailable: 1", "maxUnavailable: 100%", "maxUnavailable from 1 to 100%"),
        ("  maxUnavailable: 1\n", "", "maxUnavailable from 1 to none"),
        ("minReadySeconds: 30", "minReadySeconds: 29", "minReadySeconds from 30 to 29"),
        ("  minReadySeconds: 30\n", "", "minReadySeconds from 30 to the default"),
        ("maxRestarts: 1", "maxRestarts: 2", "maxRestarts from 1 to 2"),
        ("progressDeadline: 5m", "progressDeadline: 6m", "progressDeadline from 300 s to 360 s"),
        ("max: 1", "max: 50%", "skipUnreadyNodes from 1 to 50%"),
        ("spec:\n", "spec:\n  ramp: none\n", "ramp from double to none"),
        ("spec:\n", "spec:\n  onFailure: pause\n", "onFailure from abort to pause"),
        ("tier: node", "tier: other", "RolloutPolicy `p` would no longer apply"),
        ("name: p", "name: q", ""),
        ("maxRestarts: 1", "maxRestarts: 0", ""),
        ("minReadySeconds: 30", "minReadySeconds: 31", ""),
    ] {
        let sandbox = repository();
        sandbox.write("deploy/policy.yaml", POLICY.replace(from, to));
        sandbox.commit();
        let found = plan(&sandbox, BASE);
        assert!(is_judged_by_p(&found), "{to}: {found}");
        let run = sandbox.ds_plan(&format!("{BASE} --snapshot cluster.json --fail-on-guards"));
        if reported.is_empty() {
            assert_eq!(guards(&found), Vec::<&str>::new(), "{to}: {found}");
            assert_eq!(run.code, Some(0), "{to}: {run}");
            continue;
        }
        assert_eq!(guards(&found), ["policyChange"], "{to}: {found}");
        let message = found["guards"][0]["message"].as_str().unwrap();
        assert!(message.contains(reported), "{to}: {message}");
        let limits = "). Before the merge: at most 1 of 2 nodes unavailable; after: at most 2 of 2 nodes \
                      unavailable. This plan uses the policy from before the merge; ";
        let is_faster = reported.starts_with("maxUnavailable") || reported.ends_with("apply");
        assert_eq!(message.contains(limits), is_faster, "{to}: {message}");
        assert_eq!(message.contains("Before the merge: "), is_faster, "{to}: {message}");
        assert_eq!(run.code, Some(6), "{to}: {run}");
        let markdown = sandbox.ds_plan(&format!("{BASE} --snapshot cluster.json -o markdown"));
        assert_eq!(markdown.stdout.contains("Before the merge"), is_faster, "{to}: {markdown}");
        assert!(markdown.stdout.contains("from before the merge"), "{to}: {markdown}");
    }
}

#[test]
fn policies_can_be_read_at_their_own_revision() {
    let sandbox = repository();
    sandbox
        .write("deploy/policy.yaml", POLICY.replace("maxUnavailable: 1", "maxUnavailable: 100%"));
    sandbox.commit();
    let found = plan(&sandbox, "--path deploy --policy-from origin/main");
    assert!(is_judged_by_p(&found), "{found}");
    let line =
        "--path deploy --policy-from origin/main --snapshot cluster.json --rehearse --yes --seed 7";
    let run = sandbox.ds_apply(line);
    assert_eq!(run.code, Some(0), "{run}");
    assert_one_at_a_time(&run);
    let run = sandbox.ds_apply(&line.replace("origin/main", "origin/gone"));
    assert_eq!(run.code, Some(1), "{run}");
    let run = sandbox.ds_plan("-f deploy --policy-from main --snapshot cluster.json");
    assert_eq!(run.code, Some(64), "{run}");
}

/// A branch whose only file is `policy.yaml`, below no folder.
fn with_branch_of_policies() -> Sandbox {
    let sandbox = repository();
    sandbox.commit();
    sandbox.git(&["checkout", "-q", "--orphan", "policies"]);
    sandbox.git(&["rm", "-r", "-f", "-q", "."]);
    sandbox.write("policy.yaml", POLICY);
    sandbox.commit();
    sandbox.git(&["checkout", "-q", "topic"]);
    sandbox
}

#[test]
fn a_revision_without_policies_is_not_one_without_limits() {
    let sandbox = with_branch_of_policies();
    for line in ["--policy-from policies", "--policy-from before"] {
        for run in [
            sandbox.ds_plan(&format!("--path deploy {line} --snapshot cluster.json")),
            sandbox.ds_apply(&format!("--path deploy {line} --snapshot cluster.json --rehearse")),
        ] {
            assert_eq!(run.code, Some(1), "{line}: {run}");
            assert!(!run.stdout.contains("Plan:"), "{line}: {run}");
            assert!(run.stderr.contains("error: no RolloutPolicy in revision `"), "{line}: {run}");
            assert!(run.stderr.contains(" below deploy"), "{line}: {run}");
            assert!(run.stderr.contains("in the same `--path` there"), "{line}: {run}");
        }
    }
    // What the hint says.
    let found = plan(&sandbox, "--path deploy --policy policy.yaml --policy-from policies");
    assert!(is_judged_by_p(&found), "{found}");
}

#[test]
fn a_named_policy_that_the_trusted_revision_does_not_have_is_not_dropped() {
    let sandbox = repository();
    sandbox.commit();
    let other = POLICY.replace("name: p", "name: q").replace("tier: node", "tier: other");
    sandbox.write("new.yaml", other);
    let line = "--path deploy --policy new.yaml --snapshot cluster.json -o json";
    let run = sandbox.ds_plan(&format!("{line} --policy-from origin/main"));
    assert_eq!((run.code, &*run.stdout), (Some(1), ""), "{run}");
    let words = "new.yaml, which --policy names, is not in revision `origin/main`";
    assert!(run.stderr.contains(words), "{run}");
    // The pull request may add it.
    let run = sandbox.ds_plan(&format!("{line} --base origin/main"));
    let found: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
    assert!(is_judged_by_p(&found), "{found}");
    assert!(run.stderr.contains("new.yaml is not in revision `origin/main`"), "{run}");
}

#[test]
fn a_misspelled_policy_is_an_error_at_every_revision() {
    let sandbox = repository();
    sandbox.write("deploy/policy.yaml", POLICY.replace("RolloutPolicy", "RolloutPolcy"));
    sandbox.commit();
    for line in ["-f deploy", "--path deploy", "--path deploy --base origin/main"] {
        let run = sandbox.ds_plan(&format!("{line} --snapshot cluster.json"));
        assert_eq!(run.code, Some(1), "{line}: {run}");
        let words = "policy.yaml:1:1: unknown kind `RolloutPolcy` of ds-plan.dev";
        assert!(run.stderr.contains(words), "{line}: {run}");
    }
}
