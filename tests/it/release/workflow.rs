//! The shell of the release workflow, with stand-ins for what needs a network: cargo, skopeo, gh.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use testkit::sandbox::{Run, Sandbox};

use super::{ROOT, VERSION, finished, script};

/// The release workflow.
fn workflow() -> Value {
    let file = Path::new(ROOT).join(".github/workflows/release.yml");
    serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The shell of a step, by its job and name.
fn step(job: &str, name: &str) -> String {
    let workflow = workflow();
    assert_eq!(workflow["defaults"]["run"]["shell"], "bash", "`ran` sets `pipefail`, as this does");
    let steps = workflow["jobs"][job]["steps"].as_array().unwrap();
    let found = steps.iter().find(|step| step["name"] == name).unwrap();
    let shell = found["run"].as_str().unwrap();
    assert!(!shell.contains("${{"), "untrusted text must be passed in `env`: {shell}");
    shell.to_owned()
}

/// The step that signs where the files come from.
fn signing() -> Value {
    let workflow = workflow();
    let steps = workflow["jobs"]["publish"]["steps"].as_array().unwrap();
    steps.iter().find(|step| step["id"] == "files").unwrap().clone()
}

/// A program that only notes its arguments in `called`, and then runs `more`.
fn stand_in(sandbox: &Sandbox, name: &str, more: &str) {
    let called = sandbox.path("called");
    let text = format!("#!/bin/bash\necho \"{name} $*\" >>{}\n{more}\n", called.display());
    sandbox.write(&format!("bin/{name}"), text);
    let program = sandbox.path(&format!("bin/{name}"));
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs shell as a step of a job does, with the stand-ins first on `PATH`.
fn ran(sandbox: &Sandbox, shell: &str, variables: &[(&str, &str)]) -> Run {
    let shell = format!("PATH={}:$PATH\n{shell}", sandbox.path("bin").display());
    let mut bash = script("bash".as_ref(), &[]);
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &shell]);
    bash.current_dir(sandbox.path("home")).envs(variables.iter().copied());
    bash.env("GITHUB_OUTPUT", sandbox.path("output"));
    sandbox.run(bash)
}

#[test]
fn a_tag_is_released_only_under_its_version_and_with_its_changes() {
    let sandbox = Sandbox::new();
    for name in ["check-tag", "lib"] {
        let file = Path::new(ROOT).join("release").join(name);
        sandbox.write(&format!("release/{name}"), fs::read(file).unwrap());
    }
    sandbox.write("Cargo.toml", "[workspace.package]\nversion = \"1.2.0\"\n");
    sandbox.commit();
    let check = |tag: &str, changes: &str| {
        sandbox.write("CHANGELOG.md", changes);
        let check = format!("bash {} {tag}", sandbox.path("release/check-tag").display());
        ran(&sandbox, &check, &[])
    };
    let changes = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n";
    assert_eq!(check("v1.2.0", changes).code, Some(0));
    let run = check("v1.3.0", changes);
    assert_eq!((run.code, run.stderr.contains("the version in Cargo.toml 1.2.0")), (Some(1), true));
    let run = check("v1.2.0", "# Changelog\n\n## [Unreleased]\n");
    assert_eq!((run.code, run.stderr.contains("has no section")), (Some(1), true), "{run}");
}

/// Neither the folder of the source nor that of cargo is in what the compilers get to show.
#[test]
fn the_compilers_show_the_same_folders_wherever_a_commit_is_compiled() {
    let seen = |folder: &str| {
        let sandbox = Sandbox::new();
        let file = Path::new(ROOT).join("release/compile");
        sandbox.write("release/compile", fs::read(file).unwrap());
        sandbox.write(".gitignore", "/home\n/bin\n/called\n/flags\n/target\n");
        sandbox.commit();
        let flags = sandbox.path("flags");
        let note = "printf '%s\\n' \"$CARGO_ENCODED_RUSTFLAGS\" \"$CFLAGS\" \"$DS_PLAN_COMMIT\"";
        stand_in(&sandbox, "cargo", &format!("{note} | tr '\\037' ' ' >{}", flags.display()));
        stand_in(&sandbox, "install", "");
        let cargo = sandbox.path(folder);
        let shell = format!("bash {} x86_64-unknown-linux-musl out", file_in(&sandbox));
        let run = ran(&sandbox, &shell, &[("CARGO_HOME", cargo.to_str().unwrap())]);
        assert_eq!(run.code, Some(0), "{run}");
        sandbox.write("changed", "");
        let run = ran(&sandbox, &shell, &[]);
        assert!(run.stderr.contains("the working tree differs from its commit"), "{run}");
        let flags = fs::read_to_string(flags).unwrap();
        let root = sandbox.path("").canonicalize().unwrap();
        flags.replace(cargo.to_str().unwrap(), "[cargo]").replace(root.to_str().unwrap(), "[dir]")
    };
    let one = seen("home/.cargo");
    assert!(one.contains("--remap-path-prefix=[cargo]=/cargo "), "{one}");
    assert!(one.contains("-ffile-prefix-map=[dir]/target=/target\n"), "{one}");
    assert_eq!(one, seen("elsewhere/of-cargo"));
}

fn file_in(sandbox: &Sandbox) -> String {
    sandbox.path("release/compile").display().to_string()
}

/// Publishes with stand-ins; returns what they were called with.
fn published(digest_of_copy: &str) -> (Vec<String>, Run) {
    let sandbox = Sandbox::new();
    let release = finished();
    for name in super::names(&release.path("")) {
        sandbox.write(&format!("home/files/{name}"), fs::read(release.path(&name)).unwrap());
    }
    sandbox.write("bundle.json", "{}");
    let login = "if [ $1 = login ]; then echo '{}' >\"${REGISTRY_AUTH_FILE:-auth.json}\"; fi";
    stand_in(&sandbox, "skopeo", &format!("printf %s {digest_of_copy} >digest\n{login}"));
    stand_in(&sandbox, "gh", "");
    let (bundle, home) = (sandbox.path("bundle.json"), sandbox.path("home"));
    let variables = [
        ("BUNDLE", bundle.to_str().unwrap()),
        ("DIGEST", release.printed.trim()),
        ("GITHUB_ACTOR", "octocat"),
        ("GITHUB_REF_NAME", &format!("v{VERSION}")),
        ("GITHUB_REPOSITORY", "Octo/ds-plan"),
        ("HOME", home.to_str().unwrap()),
        ("TOKEN", "the-token"),
    ];
    let shell = step("publish", "The container image") + "\n" + &step("publish", "The release");
    let run = ran(&sandbox, &shell, &variables);
    let credentials = home.join(".docker/config.json");
    assert!(credentials.exists(), "actions/attest reads no other file: {run}");
    let called = fs::read_to_string(sandbox.path("called")).unwrap_or_default();
    (called.lines().map(str::to_owned).collect(), run)
}

#[test]
fn image_and_files_are_published_under_the_tag() {
    let (called, run) = published(finished().printed.trim());
    assert_eq!(run.code, Some(0), "{run}");
    let [login, copy, create] = &called[..] else { panic!("{called:?}") };
    assert_eq!(login, "skopeo login ghcr.io --username octocat --password-stdin");
    let image = format!("oci-archive:files/ds-plan-{VERSION}-image.tar");
    let target = format!("docker://ghcr.io/octo/ds-plan:v{VERSION}");
    assert!(copy.ends_with(&format!(" {image} {target}")), "{copy}");
    assert!(create.starts_with(&format!("gh release create v{VERSION} --repo Octo/ds-plan ")));
    for name in ["SHA256SUMS", "SHA256SUMS.sigstore.json", "ds-apply.yaml", "released"] {
        assert!(create.contains(&format!(" files/{name}")), "{name}: {create}");
    }
    assert!(!create.contains("files/notes.md"), "{create}");
    // The statement is about the files in SHA256SUMS.
    let sums = fs::read_to_string(finished().path("SHA256SUMS")).unwrap();
    let signed: BTreeSet<&str> =
        sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    let published = create.split(' ').filter_map(|word| word.strip_prefix("files/"));
    let published: BTreeSet<&str> =
        published.filter(|name| !name.starts_with("SHA256SUMS")).collect();
    assert_eq!(signed, published);
    assert_eq!(signing()["with"]["subject-checksums"], "files/SHA256SUMS");
    assert!(called.iter().all(|line| !line.contains("the-token")), "{called:?}");
}

#[test]
fn another_image_than_the_packaged_one_stops_the_release() {
    let (called, run) = published("sha256:0000");
    assert_eq!(run.code, Some(1), "{run}");
    assert!(called.iter().all(|line| !line.starts_with("gh ")), "{called:?}");
}

/// `ref_type` is `tag` also for a run that was started by hand on a tag.
#[test]
fn a_run_that_was_started_by_hand_publishes_nothing() {
    let workflow = workflow();
    let writes = |job: &&Value| job.get("environment").is_some();
    let jobs: Vec<&Value> = workflow["jobs"].as_object().unwrap().values().filter(writes).collect();
    let [publish] = jobs[..] else { panic!("{jobs:?}") };
    assert_eq!(publish["if"], "github.event_name == 'push' && github.ref_type == 'tag'");
}

/// `vVERSION-action` is set after a release, on another commit. Of the patterns that match a tag, the
/// last one decides.
#[test]
fn the_tag_for_users_of_the_action_starts_no_release() {
    assert_eq!(workflow()["on"]["push"], json!({"tags": ["v*", "!v*-action"]}));
}

/// Any workflow of the repository could sign a statement: the one that makes releases is named.
#[test]
fn the_guide_checks_which_workflow_has_signed() {
    for (page, count, owner) in
        [("docs/src/install.md", 2, "YOUR-ORG"), ("CONTRIBUTING.md", 1, "Octo")]
    {
        let page = fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
        let page = page.replace("\\\n", " ");
        let checks: Vec<&str> =
            page.lines().filter(|line| line.contains("gh attestation verify ")).collect();
        assert_eq!(checks.len(), count, "{page}");
        for check in checks {
            let signer =
                format!(" --signer-workflow {owner}/ds-plan/.github/workflows/release.yml");
            assert!(check.contains(&signer), "{check}");
        }
    }
}
