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
    let (_, github) = pipeline("github/ds-apply.yml");
    let of_github = |step: &&Value| step["with"]["command"] == "apply";
    let github_steps = github["jobs"]["apply"]["steps"].as_array().unwrap();
    let args = github_steps.iter().find(of_github).unwrap()["with"]["args"].as_str().unwrap();
    let (_, gitlab) = pipeline("gitlab/ds-plan.gitlab-ci.yml");
    for call in [args, gitlab["ds-apply"]["script"][0].as_str().unwrap()] {
        for demand in ["--plan ", "--sha256 ", "--require-ref ", "refs/remotes/origin/"] {
            assert!(call.contains(demand), "{demand}: {call}");
        }
    }
    // What comes again by a schedule only resumes.
    let (_, resume) = pipeline("github/ds-resume.yml");
    let steps = resume["jobs"]["resume"]["steps"].as_array().unwrap();
    let args = steps.iter().find(of_github).unwrap()["with"]["args"].as_str().unwrap();
    for call in [args, gitlab["ds-resume"]["script"][0].as_str().unwrap()] {
        assert!(call.contains("--resume "), "{call}");
    }
    let (_, github) = pipeline("github/ds-apply.yml");
    let apply = &github["jobs"]["apply"];
    assert_eq!(apply["environment"], "production");
    let steps = apply["steps"].as_array().unwrap();
    // The checkout has the history, and the digest is the output of the approved job.
    assert_eq!(steps[0]["with"]["fetch-depth"], 0);
    let digest = "${{ needs.plan.outputs.sha256 }}";
    let args = steps.iter().find(of_github).unwrap()["with"]["args"].as_str().unwrap();
    assert!(args.contains(&format!("--sha256 {digest}")), "{args}");
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
