//! Pipes and devices in place of files in a repository or a folder: opening one would block for
//! ever.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::watched::Watched;
use testkit::fixture;
use testkit::sandbox::Sandbox;

const HANG: Duration = Duration::from_secs(30);

fn pipe(sandbox: &Sandbox, name: &str) {
    let path = sandbox.path(name);
    let _ = fs::remove_file(&path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
}

#[test]
fn a_pipe_in_a_repository_does_not_block() {
    for name in [
        ".git/index",
        ".git/config",
        ".git/HEAD",
        ".git/packed-refs",
        ".git/refs/heads/main",
        ".git/commondir",
        ".git/shallow",
        ".git/info/exclude",
        ".git/info/attributes",
        ".git/objects/info/alternates",
        ".gitignore",
        ".gitattributes",
        "deploy/.gitignore",
        "deploy/.gitattributes",
        "deploy/new.yaml",
        "agent.yaml",
    ] {
        let sandbox = fixture::sandbox();
        sandbox.write("deploy/other.yaml", fixture::AGENT.replace("agent", "other"));
        sandbox.commit();
        // Changed, so that it has to be compared.
        sandbox.write("deploy/other.yaml", fixture::AGENT.replace("agent", "others"));
        pipe(&sandbox, name);
        let line = "--path agent.yaml --path deploy --snapshot cluster.json -o name";
        let run = Watched::run(sandbox.ds_plan_command(line), HANG);
        assert!(run.status.is_some(), "{name}: {run}");
        let read_all_the_same = run.stdout == "logging/agent\nlogging/other\n";
        assert!(read_all_the_same || run.stderr.contains("error: "), "{name}: {run}");
    }
}

#[test]
fn a_loose_object_that_is_a_pipe_does_not_block() {
    let sandbox = fixture::sandbox();
    sandbox.commit();
    let mut objects = Vec::new();
    for folder in fs::read_dir(sandbox.path(".git/objects")).unwrap() {
        let folder = folder.unwrap().file_name().into_string().unwrap();
        if folder.len() == 2 {
            for object in fs::read_dir(sandbox.path(&format!(".git/objects/{folder}"))).unwrap() {
                let object = object.unwrap().file_name().into_string().unwrap();
                objects.push(format!(".git/objects/{folder}/{object}"));
            }
        }
    }
    for object in objects {
        let before = fs::read(sandbox.path(&object)).unwrap();
        pipe(&sandbox, &object);
        let run = Watched::run(sandbox.ds_plan_command("--snapshot cluster.json"), HANG);
        assert!(run.status.is_some(), "{object}: {run}");
        fs::remove_file(sandbox.path(&object)).unwrap();
        sandbox.write(&object, before);
    }
}

/// A repository may declare any folder as its working tree; only the folder around it is read.
#[test]
fn a_working_tree_elsewhere_is_not_read() {
    for elsewhere in ["/", "..", "../elsewhere", "home"] {
        let sandbox = Sandbox::new();
        let all = fixture::sandbox();
        sandbox.write("elsewhere/secret.yaml", "a: b\n");
        sandbox.write("repo/home/secret.yaml", "a: b\n");
        sandbox.write("repo/agent.yaml", fixture::AGENT);
        fs::copy(all.path("cluster.json"), sandbox.path("cluster.json")).unwrap();
        sandbox.git(&["init", "-q", "-b", "main", "repo"]);
        sandbox.git(&["-C", "repo", "add", "agent.yaml"]);
        sandbox.git(&["-C", "repo", "commit", "-q", "-m", "x"]);
        let line = if elsewhere.starts_with('/') {
            elsewhere.to_owned()
        } else {
            format!("../{elsewhere}")
        };
        sandbox.git(&["-C", "repo", "config", "core.worktree", &line]);
        let line = "--repo repo --snapshot cluster.json";
        let run = Watched::run(sandbox.ds_plan_command(line), HANG);
        run.expect(0, 300);
        assert!(run.stdout.contains("DaemonSet logging/agent"), "{elsewhere}: {run}");
        assert!(run.stderr.contains("core.worktree"), "{elsewhere}: {run}");
        assert!(!run.stderr.contains("secret"), "{elsewhere}: {run}");
        // Paths are still relative to the folder around it.
        let line = format!(
            "--repo repo --path {} --snapshot cluster.json -o name",
            sandbox.path("repo/agent.yaml").display()
        );
        assert_eq!(sandbox.ds_plan(&line).stdout, "logging/agent\n", "{elsewhere}");
    }
}
