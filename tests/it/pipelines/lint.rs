//! Runs actionlint on the workflows, and checks the GitLab pipeline against GitLab's own schema.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::runner::ROOT;
use crate::{go_tools, web};
use testkit::sandbox::Sandbox;

/// The pipelines of one forge.
pub(super) fn examples(forge: &str) -> Vec<PathBuf> {
    let folder = Path::new(ROOT).join("examples/ci").join(forge);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Built by Go at the version that `tests/pipelines/actionlint` pins.
fn actionlint() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("actionlint");
    go_tools::build("actionlint", "github.com/rhysd/actionlint/cmd/actionlint", &program);
    program
}

/// Runs a linter in a repository that contains only these files.
fn linted(program: &mut Command, files: &[(&Path, String)]) -> (bool, String) {
    let sandbox = Sandbox::new();
    for (file, text) in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        sandbox.write(&format!("repository/.github/workflows/{name}"), text);
        sandbox.write("repository/.gitlab-ci.yml", text);
    }
    let folder = sandbox.path("repository");
    let folder = folder.to_str().unwrap();
    sandbox.git(&["init", "-q", "-b", "main", folder]);
    sandbox.git(&["-C", folder, "remote", "add", "origin", "https://gitlab.example/octo/fleet"]);
    sandbox.git(&["-C", folder, "add", "-A"]);
    sandbox.git(&["-C", folder, "commit", "-q", "-m", "pipelines"]);
    sandbox.git(&["-C", folder, "update-ref", "refs/remotes/origin/main", "HEAD"]);
    let done = program.current_dir(folder).output().unwrap();
    let message = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&message).into_owned())
}

#[test]
fn actionlint_accepts_the_workflows() {
    let mut files = examples("github");
    for name in ["ci.yml", "release.yml"] {
        files.push(Path::new(ROOT).join(".github/workflows").join(name));
    }
    let texts: Vec<(&Path, String)> =
        files.iter().map(|file| (file.as_path(), fs::read_to_string(file).unwrap())).collect();
    let actionlint = actionlint();
    // Other installed programs must not matter.
    let lint = || {
        let mut lint = Command::new(&actionlint);
        lint.args(["-no-color", "-shellcheck=", "-pyflakes="]);
        lint
    };
    let (is_fine, message) = linted(&mut lint(), &texts);
    assert!(is_fine, "{message}");
    let (file, text) = &texts[0];
    let broken = text.replace("runs-on:", "run-on:");
    let (is_fine, message) = linted(&mut lint(), &[(file, broken)]);
    assert!(!is_fine && message.contains("run-on"), "{message}");
}

#[test]
fn gitlabs_schema_accepts_its_pipeline() {
    let [file] = &examples("gitlab")[..] else { panic!("one file") };
    let text = fs::read_to_string(file).unwrap();
    let program = web::installed().join("node_modules/gitlab-ci-local/src/index.js");
    let lint = |text: String| {
        let mut lint = Command::new("node");
        linted(lint.arg(&program).arg("--list"), &[(file, text)])
    };
    let (is_fine, message) = lint(text.clone());
    assert!(is_fine && message.contains("json schema validated"), "{message}");
    let (is_fine, message) = lint(text.replace("resource_group:", "resource_grup:"));
    assert!(!is_fine && message.contains("resource_grup"), "{message}");
}
