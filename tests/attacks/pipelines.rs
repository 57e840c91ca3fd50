//! The pipelines in `examples/ci`: the permissions of a user who can open a request, push a branch,
//! or replace an artifact.

use std::fs;
use std::path::Path;

use serde_json::Value;

fn pipeline(file: &str) -> (String, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci").join(file);
    let text = fs::read_to_string(path).unwrap();
    let value = serde_yaml::from_str(&text).unwrap();
    (text, value)
}

#[test]
fn only_the_approved_plan_of_a_merged_commit_is_applied() {
    for file in ["github/ds-apply.yml", "gitlab/ds-plan.gitlab-ci.yml"] {
        let (text, _) = pipeline(file);
        let calls: Vec<&str> = text.split("ds-apply --").skip(1).collect();
        assert!(!calls.is_empty(), "{file}");
        for call in calls {
            let (call, _) = call.split_once(">rollout.html").unwrap();
            for demand in ["plan ", "--sha256 \"$", "--require-ref ", "refs/remotes/origin/"] {
                assert!(call.contains(demand), "{file}: {demand}: {call}");
            }
        }
    }
    let (_, github) = pipeline("github/ds-apply.yml");
    let apply = &github["jobs"]["apply"];
    assert_eq!(apply["environment"], "production");
    let steps = apply["steps"].as_array().unwrap();
    // The checkout has the history, and the digest is the output of the approved job.
    assert_eq!(steps[0]["with"]["fetch-depth"], 0);
    let digest = "${{ needs.plan.outputs.sha256 }}";
    assert!(steps.iter().any(|step| step["env"]["APPROVED"] == digest));
    let output = "${{ steps.plan.outputs.sha256 }}";
    assert_eq!(github["jobs"]["plan"]["outputs"]["sha256"], output);
}

#[test]
fn the_plan_of_a_request_is_not_published() {
    let (github, _) = pipeline("github/ds-plan.yml");
    assert!(!github.contains("outputs.plan }}"), "{github}");
    let (_, gitlab) = pipeline("gitlab/ds-plan.gitlab-ci.yml");
    assert_eq!(gitlab["ds-plan"]["artifacts"]["paths"], serde_json::json!(["report.html"]));
}
