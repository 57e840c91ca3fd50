//! The environment of a run: programs in the current folder, and devices as output files.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use testkit::fixture;
use testkit::sandbox::Sandbox;

/// A sandbox whose current folder contains programs that record that they ran.
fn booby_trapped(names: &[&str]) -> Sandbox {
    let sandbox = fixture::sandbox();
    for name in names {
        let path = sandbox.path(name);
        fs::write(
            &path,
            format!("#!/bin/sh\necho ran >>'{}'\nexit 1\n", sandbox.path("ran").display()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox
}

/// A relative entry, an empty one, and each at either end.
const PATHS: [&str; 5] = [".", "", ":/usr/bin:/bin", "./:/usr/bin:/bin", "/nowhere::."];

#[test]
fn no_program_is_run_from_the_current_folder() {
    let exec = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                clusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
                users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, \
                command: plugin, interactiveMode: Never}}}]\n\
                contexts: [{name: c, context: {cluster: c, user: u}}]\n";
    for path in PATHS {
        let sandbox =
            booby_trapped(&["git", "ssh", "kustomize", "kubectl", "plugin", "git-remote-https"]);
        sandbox.write("kubeconfig", exec);
        for line in [
            "--repo http://127.0.0.1:1/a.git --snapshot cluster.json",
            "--repo https://127.0.0.1:1/a.git --snapshot cluster.json",
            "--repo ssh://127.0.0.1:1/a.git --snapshot cluster.json",
            "-f agent.yaml --kubeconfig kubeconfig",
        ] {
            let mut command = sandbox.ds_plan_command(line);
            command.env("PATH", path);
            let run = sandbox.run(command);
            assert_eq!(run.code, Some(1), "{path}: {line}: {run}");
            assert!(!sandbox.path("ran").exists(), "{path}: {line}: {run}");
        }
    }
    // The plugin does run when an absolute entry leads to it.
    let sandbox = booby_trapped(&["plugin"]);
    sandbox.write("kubeconfig", exec);
    let mut command = sandbox.ds_plan_command("-f agent.yaml --kubeconfig kubeconfig");
    command.env("PATH", format!("{}:/usr/bin:/bin", sandbox.path("").display()));
    let run = sandbox.run(command);
    assert!(sandbox.path("ran").exists(), "{run}");
}

#[test]
fn devices_are_written_in_place() {
    let sandbox = fixture::sandbox();
    let plan = "-f agent.yaml --snapshot cluster.json";
    for (flag, beginning) in [("--out", "{\n  \"apiVersion\""), ("--report", "<!doctype html>")] {
        let run = sandbox.ds_plan(&format!("{plan} {flag} /dev/stdout -o name"));
        assert_eq!(run.code, Some(0), "{run}");
        assert!(run.stdout.starts_with(beginning) || run.stdout.contains(beginning), "{run}");
        assert!(run.stdout.contains("logging/agent\n"), "{run}");
        let run = sandbox.ds_plan(&format!("{plan} {flag} /dev/null"));
        assert_eq!(run.code, Some(0), "{run}");
    }
    for device in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let script = format!(
            "'{}' {plan} --out {device} -o name >output && grep -q apiVersion output && grep -q logging/agent output",
            assert_cmd::cargo::cargo_bin!("ds-plan").display()
        );
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &script]).current_dir(sandbox.path(""));
        let run = sandbox.run(shell);
        assert_eq!(run.code, Some(0), "{device}: {run}");
    }
    let null = fs::metadata(Path::new("/dev/null")).unwrap();
    assert!(null.file_type().is_char_device());
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
}
