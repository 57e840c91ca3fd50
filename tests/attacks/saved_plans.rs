//! A saved plan is not trusted: a user who edits the file, replaces it, or uses it on another
//! cluster achieves only what the approved plan, made again, would do.

use std::fs;

use serde_json::{Value, json};

use testkit::fixture::{AGENT, cluster, of_kind};
use testkit::sandbox::{Run, Sandbox};

/// The DaemonSets of the source before three of them were removed.
const NAMES: [&str; 4] = ["agent", "exporter", "mesh", "shipper"];

/// With another seed than before, so that new pods get other names and uids than the first ones
/// had.
const REHEARSE: &str = "--rehearse --seed 1 --snapshot before.json --save after.json";

fn named(name: &str) -> String {
    AGENT.replace("agent", name)
}

/// A repository whose newest commit has one of the four DaemonSets that the cluster in
/// `before.json` got from the previous commit.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with(&[("cluster.json", &cluster().to_string())]);
    for name in NAMES {
        sandbox.write(&format!("deploy/{name}.yaml"), named(name));
    }
    sandbox.write(".gitignore", "*.json\n/home\n");
    sandbox.commit();
    let run = sandbox.ds_apply(
        "--rehearse --snapshot cluster.json --save before.json --path deploy --source-id prod",
    );
    assert_eq!(run.code, Some(0), "{run}");
    sandbox
}

/// Runs `ds-plan --out plan.json`.
fn save(sandbox: &Sandbox, flags: &str) -> Value {
    let run =
        sandbox.ds_plan(&format!("--snapshot before.json --path deploy {flags} --out plan.json"));
    assert_eq!(run.code, Some(0), "{run}");
    plan(sandbox)
}

fn plan(sandbox: &Sandbox) -> Value {
    serde_json::from_slice(&fs::read(sandbox.path("plan.json")).unwrap()).unwrap()
}

/// Replaces the approved plan by an edited one.
fn forge(sandbox: &Sandbox, edit: impl FnOnce(&mut Value)) {
    let mut plan = plan(sandbox);
    edit(&mut plan);
    sandbox.write("plan.json", plan.to_string());
}

fn carry_out(sandbox: &Sandbox, flags: &str) -> Run {
    sandbox.ds_apply(&format!("--plan plan.json {REHEARSE} {flags}"))
}

/// The DaemonSets in a recording, and the image of each.
fn daemon_sets(sandbox: &Sandbox, file: &str) -> Vec<(String, String)> {
    let text = fs::read(sandbox.path(file)).unwrap();
    let mut cluster: Value = serde_json::from_slice(&text).unwrap();
    let one = |one: &mut Value| {
        let image = &one["spec"]["template"]["spec"]["containers"][0]["image"];
        [&one["metadata"]["name"], image].map(|it| it.as_str().unwrap().to_owned()).into()
    };
    of_kind(&mut cluster, "DaemonSet").map(one).collect()
}

/// Whether the rehearsal made no changes to the cluster.
fn is_untouched(sandbox: &Sandbox) -> bool {
    daemon_sets(sandbox, "before.json") == daemon_sets(sandbox, "after.json")
}

#[test]
fn guards_are_not_read_from_the_file() {
    let sandbox = sandbox();
    for name in &NAMES[1..] {
        fs::remove_file(sandbox.path(&format!("deploy/{name}.yaml"))).unwrap();
    }
    sandbox.commit();
    let approved = save(&sandbox, "--source-id prod --prune");
    assert_eq!(approved["guards"][0]["code"], "massDeletion", "{approved:#}");
    forge(&sandbox, |plan| plan["guards"] = json!([]));
    let run = carry_out(&sandbox, "");
    assert_eq!(run.code, Some(6), "{run}");
    assert!(run.stderr.contains("--allow-mass-deletion"), "{run}");
    assert!(is_untouched(&sandbox));
}

/// A newer image in the working tree of an unreviewed branch; returns the commit's id.
fn unreviewed(sandbox: &Sandbox) -> String {
    sandbox.git(&["checkout", "-q", "-b", "evil"]);
    sandbox.write("deploy/agent.yaml", named("agent").replace("agent:1", "agent:evil"));
    sandbox.commit();
    let id = sandbox.ds_plan("--snapshot before.json --path deploy -o json").stdout;
    let plan: Value = serde_json::from_str(&id).unwrap();
    sandbox.git(&["checkout", "-q", "main"]);
    plan["source"]["commit"].as_str().unwrap().to_owned()
}

#[test]
fn the_commit_is_a_full_id_and_not_an_expression() {
    let sandbox = sandbox();
    let id = unreviewed(&sandbox);
    save(&sandbox, "--rev evil --source-id prod");
    for claim in [
        json!("HEAD"),
        json!("evil"),
        json!("refs/heads/evil"),
        json!(":/commit"),
        json!("main^{/a commit}"),
        json!(&id[..12]),
        json!(format!("{id}^0")),
        json!(format!("{id}~0")),
        json!(id.to_uppercase()),
        json!(""),
    ] {
        forge(&sandbox, |plan| plan["source"]["commit"] = claim.clone());
        let run = carry_out(&sandbox, "");
        assert_eq!(run.code, Some(1), "{claim}: {run}");
        assert!(run.stderr.contains("no full commit id"), "{claim}: {run}");
        assert!(is_untouched(&sandbox), "{claim}");
    }
    // Without a commit it would be that of the checked-out files.
    forge(&sandbox, |plan| plan["source"]["commit"] = Value::Null);
    let run = carry_out(&sandbox, "");
    assert_eq!(run.code, Some(64), "{run}");
}

#[test]
fn an_unmerged_commit_is_refused() {
    let sandbox = sandbox();
    let id = unreviewed(&sandbox);
    // Where git looks up names, a tag with the branch's name takes precedence over the branch.
    sandbox.git(&["tag", "heads/main", &id]);
    sandbox.git(&["tag", "main", &id]);
    save(&sandbox, &format!("--rev {id} --source-id prod"));
    for (flags, code, says) in [
        ("--require-ref refs/heads/main", 1, "is not in the history of refs/heads/main"),
        ("--require-ref refs/heads/none", 1, "reference refs/heads/none not found"),
        ("--require-ref main", 64, "full name of a reference"),
        ("--require-ref heads/main", 64, "full name of a reference"),
        ("--require-ref refs/heads/main^{commit}", 64, "full name of a reference"),
        ("--require-ref refs/heads/evil", 0, "replaced"),
    ] {
        let run = carry_out(&sandbox, flags);
        assert_eq!(run.code, Some(code), "{flags}: {run}");
        assert!(run.to_string().contains(says), "{flags}: {run}");
        assert_eq!(is_untouched(&sandbox), code != 0, "{flags}");
    }
    // The same without a saved plan; a merged commit is accepted.
    let anew = |rev: &str| {
        let flags = "--require-ref refs/heads/main --path deploy --source-id prod";
        sandbox.ds_apply(&format!("{REHEARSE} --rev {rev} {flags}")).code
    };
    assert_eq!(
        [anew("evil"), anew("refs/heads/main"), anew("refs/heads/main~0")],
        [Some(1), Some(0), Some(0)]
    );
}

/// Makes it another cluster.
fn elsewhere(sandbox: &Sandbox) {
    let text = fs::read_to_string(sandbox.path("before.json")).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    for namespace in of_kind(&mut other, "Namespace") {
        if namespace["metadata"]["name"] == "kube-system" {
            namespace["metadata"]["uid"] = json!("uid-of-another-cluster");
        }
    }
    sandbox.write("before.json", other.to_string());
}

#[test]
fn a_plan_is_not_applied_to_another_cluster() {
    let sandbox = sandbox();
    sandbox.write("deploy/new.yaml", named("new"));
    sandbox.commit();
    save(&sandbox, "--source-id prod");
    elsewhere(&sandbox);
    let run = carry_out(&sandbox, "");
    assert_eq!(run.code, Some(5), "{run}");
    assert!(run.stderr.contains("is for another cluster"), "{run}");
    // Nor a plan without a cluster.
    forge(&sandbox, |plan| plan["cluster"]["uid"] = Value::Null);
    let run = carry_out(&sandbox, "");
    assert_eq!(run.code, Some(5), "{run}");
    assert!(is_untouched(&sandbox));
}

#[test]
fn a_file_that_was_not_approved_is_refused() {
    let sandbox = sandbox();
    sandbox.write("deploy/new.yaml", named("new"));
    sandbox.commit();
    let flags = "--snapshot before.json --path deploy --source-id prod --out plan.json";
    let planned = sandbox.ds_plan(flags);
    let saved = planned.stderr.lines().find_map(|line| line.strip_prefix("saved plan.json, "));
    let digest = saved.unwrap().strip_prefix("sha256:").unwrap().to_owned();
    let text = fs::read(sandbox.path("plan.json")).unwrap();
    // One more space has the same meaning, but changes the digest.
    for (content, code) in [([&text[..], b" "].concat(), 1), (text, 0)] {
        sandbox.write("plan.json", content);
        for spelled in [digest.clone(), digest.to_uppercase(), format!("sha256:{digest}")] {
            let run = carry_out(&sandbox, &format!("--sha256 {spelled}"));
            assert_eq!(run.code, Some(code), "{run}");
            assert_eq!(run.stderr.contains("is not the approved plan"), code == 1);
        }
    }
    for digest in ["", "sha256:", "abc", &digest[1..]] {
        let run = carry_out(&sandbox, &format!("--sha256={digest}"));
        assert_eq!(run.code, Some(64), "{run}");
    }
}

#[test]
fn claims_of_the_file_are_not_recorded() {
    let sandbox = sandbox();
    sandbox.write("deploy/agent.yaml", named("agent").replace("agent:1", "agent:2"));
    sandbox.commit();
    let approved = save(&sandbox, "--source-id prod");
    forge(&sandbox, |plan| {
        plan["source"]["subject"] = json!("Approved by the board");
        plan["digest"] = json!("sha256:forged");
        plan["source"]["repository"] = json!("https://git.example.com/somebody/else");
    });
    let run = carry_out(&sandbox, "");
    assert_eq!(run.code, Some(0), "{run}");
    let after = fs::read_to_string(sandbox.path("after.json")).unwrap();
    assert!(!after.contains("Approved by the board") && !after.contains("forged"));
    assert!(after.contains(approved["source"]["commit"].as_str().unwrap()), "{run}");
}

#[test]
fn a_file_is_never_used_as_a_plan_because_of_its_name() {
    let sandbox = sandbox();
    sandbox.write("deploy/new.yaml", named("new"));
    sandbox.commit();
    save(&sandbox, "--source-id prod");
    let plan = fs::read(sandbox.path("plan.json")).unwrap();
    // In the folder of a repository, under the name of a DaemonSet.
    for (file, code, says) in [
        ("logging/agent", 0, "Plan: nothing to do"),
        ("out/plan.json", 1, "`ds-apply --plan out/plan.json`"),
        ("plan.json", 64, "--plan"),
    ] {
        sandbox.write(file, &plan);
        let run = sandbox.ds_apply(&format!("{file} {REHEARSE} --path deploy --source-id prod"));
        assert_eq!(run.code, Some(code), "{run}");
        assert!(run.to_string().contains(says), "{run}");
        assert!(!run.to_string().contains("logging/new"), "{run}");
    }
}
