//! Recordings and plans from an untrusted source: a fork's branch, unsigned, or signed by another
//! user. The verifier is a stand-in that checks its arguments; cosign itself is not tested.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::{Run, Sandbox};

const IDENTITY: &str = "https://github.com/octo/fleet/.github/workflows/record.yml@refs/heads/main";

/// Behaves like cosign: the bundle contains the identity that signed, and the signed bytes.
const COSIGN: &str = r#"#!/bin/sh
[ "$1 $2 $4 $6" = "verify-blob --bundle --certificate-identity --certificate-oidc-issuer" ] || exit 64
[ "$7" = "https://token.actions.githubusercontent.com" ] || exit 65
[ "$#" = 8 ] || exit 66
{ echo "$5"; cat "$8"; } | cmp -s - "$3" && exit 0
echo "Error: none of the expected identities matched" >&2
exit 1
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with(&[("cluster.json", &cluster().to_string()), ("agent.yaml", AGENT)]);
    sandbox.write("bin/cosign", COSIGN);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(sandbox.path("bin/cosign"), mode).unwrap();
    sandbox
}

fn sign(sandbox: &Sandbox, file: &str, identity: &str) {
    let text = fs::read(sandbox.path(file)).unwrap();
    let bundle = [identity.as_bytes(), b"\n", &text].concat();
    sandbox.write(&format!("{file}.sigstore.json"), bundle);
}

#[expect(clippy::disallowed_methods, reason = "the stand-in is a script")]
fn plan(sandbox: &Sandbox, flags: &str) -> Run {
    let mut command = sandbox.ds_plan_command(&format!("-f agent.yaml {flags}"));
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", sandbox.path("bin").display()));
    sandbox.run(command)
}

#[test]
fn a_recording_signed_by_another_identity_is_refused() {
    let sandbox = sandbox();
    let flags = format!("--snapshot cluster.json --require-signature {IDENTITY}");
    let unsigned = plan(&sandbox, &flags);
    assert_eq!(unsigned.code, Some(1), "{unsigned}");
    assert!(unsigned.stderr.contains("cannot check the signature of cluster.json"));
    sign(&sandbox, "cluster.json", IDENTITY);
    let signed = plan(&sandbox, &flags);
    assert_eq!(signed.code, Some(0), "{signed}");
    assert!(signed.stdout.contains("as recorded in cluster.json at "), "{signed}");
    // A fork's workflow of the same name; the same one on another branch.
    for other in [IDENTITY.replace("octo/", "evil/"), IDENTITY.replace("main", "evil")] {
        sign(&sandbox, "cluster.json", &other);
        let run = plan(&sandbox, &flags);
        assert_eq!(run.code, Some(1), "{run}");
        assert!(run.stderr.contains("cluster.json is not signed by"), "{run}");
        assert_eq!(run.stdout, "", "{run}");
    }
    // Changed after it was signed.
    sign(&sandbox, "cluster.json", IDENTITY);
    let text = fs::read_to_string(sandbox.path("cluster.json")).unwrap();
    sandbox.write("cluster.json", text.replace("node-1", "node-3"));
    assert_eq!(plan(&sandbox, &flags).code, Some(1));
}

#[test]
fn recordings_that_cannot_be_verified_are_refused() {
    let sandbox = sandbox();
    sign(&sandbox, "cluster.json", IDENTITY);
    for (flags, code) in [("", 64), ("--snapshot -", 64)] {
        let run = plan(&sandbox, &format!("{flags} --require-signature {IDENTITY}"));
        assert_eq!(run.code, Some(code), "{run}");
        assert!(run.stderr.contains("requires a file"), "{run}");
    }
    fs::remove_file(sandbox.path("bin/cosign")).unwrap();
    let run = plan(&sandbox, &format!("--snapshot cluster.json --require-signature {IDENTITY}"));
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("which was not found on PATH"), "{run}");
}

/// The step of the workflow that fetches the recording.
fn fetching() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/ci/github/ds-plan.yml");
    let workflow: Value = serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let steps = workflow["jobs"]["plan"]["steps"].as_array().unwrap().clone();
    let step = steps.iter().find(|step| step["id"] == "recording").unwrap();
    step["run"].as_str().unwrap().to_owned()
}

#[test]
fn only_a_scheduled_run_of_this_repository_is_used() {
    let sandbox = sandbox();
    let run = |id: u32, event: &str, head: &str, branch: &str| {
        format!(
            r#"{{"id":{id},"event":"{event}","head_branch":"{branch}","html_url":"https://h/{id}",
            "path":".github/workflows/ds-plan-snapshot.yml","conclusion":"success",
            "head_repository":{{"full_name":"{head}"}}}}"#
        )
    };
    // The newest first: a fork's branch called main, a manual run, another branch.
    let runs = [
        run(9, "pull_request", "evil/fleet", "main"),
        run(8, "schedule", "evil/fleet", "main"),
        run(7, "workflow_dispatch", "octo/fleet", "main"),
        run(6, "schedule", "octo/fleet", "other"),
        run(5, "schedule", "octo/fleet", "main"),
        run(4, "schedule", "octo/fleet", "main"),
    ];
    let gh = |runs: &str| {
        sandbox.write("runs.json", format!(r#"{{"workflow_runs":[{runs}]}}"#));
        let here = sandbox.path("");
        let gh = format!(
            "#!/bin/bash\ncase $1 in\napi)\n  while [ $# -gt 1 ]; do [ \"$1\" = --jq ] && q=$2; shift; done\n  \
             jq -r \"$q\" {0}/runs.json ;;\nrun) echo \"$3\" >{0}/taken ;;\nesac\n",
            here.display()
        );
        sandbox.write("bin/gh", gh);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(sandbox.path("bin/gh"), mode).unwrap();
        let mut bash = std::process::Command::new("bash");
        #[expect(clippy::disallowed_methods, reason = "jq is found on the PATH")]
        let path = std::env::var("PATH").unwrap();
        bash.args(["-eo", "pipefail", "-c", &fetching()]).env_clear();
        bash.env("PATH", format!("{}:{path}", sandbox.path("bin").display()));
        bash.env("BRANCH", "main").env("GITHUB_REPOSITORY", "octo/fleet");
        bash.env("RUNNER_TEMP", &here).env("GITHUB_OUTPUT", sandbox.path("output"));
        sandbox.run(bash)
    };
    let done = gh(&runs.join(","));
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(fs::read_to_string(sandbox.path("taken")).unwrap(), "5\n");
    let output = fs::read_to_string(sandbox.path("output")).unwrap();
    assert!(output.contains("origin=https://h/5"), "{output}");
    // Without a matching run, no other one is used.
    fs::remove_file(sandbox.path("taken")).unwrap();
    let none = gh(&runs[..4].join(","));
    assert_eq!(none.code, Some(1), "{none}");
    assert!(!sandbox.path("taken").exists());
}
