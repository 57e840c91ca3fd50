//! A bare repository among the files of another one: its configuration is not the user's, and its
//! history was never reviewed (git: `safe.bareRepository=explicit`).

use std::fs;

use testkit::fixture;
use testkit::sandbox::Sandbox;

/// A repository with a bare one in `vendor/embedded`, whose `main` has another image.
fn sandbox() -> Sandbox {
    let sandbox = fixture::sandbox();
    let other = Sandbox::with(&[("agent.yaml", &fixture::AGENT.replace("agent:1", "evil:1"))]);
    fs::remove_dir(other.path("home")).unwrap();
    other.commit();
    fs::create_dir_all(sandbox.path("vendor")).unwrap();
    let from = other.path(".git");
    sandbox.git(&["clone", "-q", "--bare", from.to_str().unwrap(), "vendor/embedded"]);
    sandbox.write("vendor/embedded/deploy/agent.yaml", fixture::AGENT);
    sandbox.git(&["init", "-q", "-b", "main"]);
    sandbox.git(&["add", "-A", "-f", "."]);
    sandbox.git(&["commit", "-q", "-m", "x"]);
    sandbox
}

#[test]
fn an_embedded_repository_is_not_used_as_the_repository() {
    let sandbox = sandbox();
    for folder in ["vendor/embedded", "vendor/embedded/deploy", "vendor/embedded/refs"] {
        // From inside of it, and by its path.
        let mut command = sandbox.ds_plan_command("--snapshot ../cluster.json");
        command.current_dir(sandbox.path(folder));
        command.arg("--snapshot").arg(sandbox.path("cluster.json"));
        let mut command = sandbox.ds_plan_command("");
        command.arg("--snapshot").arg(sandbox.path("cluster.json"));
        command.current_dir(sandbox.path(folder));
        let inside = sandbox.run(command);
        let named = sandbox.ds_plan(&format!("--repo {folder} --snapshot cluster.json"));
        for run in [inside, named] {
            assert_eq!(run.code, Some(1), "{folder}: {run}");
            assert!(
                run.stderr.contains("is a bare repository inside of the working tree"),
                "{run}"
            );
            assert!(!run.stdout.contains("evil"), "{folder}: {run}");
        }
    }
}

/// Its own configuration claims that it is not bare.
#[test]
fn its_own_configuration_is_ignored() {
    let sandbox = sandbox();
    let config = sandbox.path("vendor/embedded/config");
    for settings in [
        "[core]\n\tbare = false\n",
        "[core]\n\tbare = false\n\tworktree = deploy\n",
        "[core]\n\tworktree = ../..\n",
    ] {
        fs::write(&config, format!("{settings}\trepositoryformatversion = 0\n")).unwrap();
        let run = sandbox.ds_plan("--repo vendor/embedded --snapshot cluster.json");
        assert_eq!(run.code, Some(1), "{settings}: {run}");
        assert!(run.stderr.contains("is a bare repository inside of the working tree"), "{run}");
    }
}

/// Plain files below it do not count as files of its commit.
#[test]
fn plain_files_are_not_of_its_commit() {
    let sandbox = sandbox();
    let config = sandbox.path("vendor/embedded/config");
    fs::write(config, "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n")
        .unwrap();
    sandbox.write("vendor/embedded/agent.yaml", fixture::AGENT.replace("agent:1", "evil:1"));
    let line = "-f vendor/embedded/agent.yaml --snapshot cluster.json --out plan.json";
    assert_eq!(sandbox.ds_plan(line).code, Some(0));
    let rehearsed = sandbox.ds_apply(
        "-f vendor/embedded/agent.yaml --snapshot cluster.json --rehearse --save after.json --yes",
    );
    assert_eq!(rehearsed.code, Some(0), "{rehearsed}");
    let embedded = fs::read_to_string(sandbox.path("vendor/embedded/packed-refs")).unwrap();
    let id = embedded.lines().find_map(|line| line.strip_suffix(" refs/heads/main")).unwrap();
    let after = fs::read(sandbox.path("after.json")).unwrap();
    assert!(!String::from_utf8_lossy(&after).contains(id), "the commit of the embedded repository");
}

/// A standalone bare repository is read, by its path or from inside.
#[test]
fn a_standalone_bare_repository_is_read() {
    let sandbox = sandbox();
    let of_its_own = Sandbox::new();
    fs::copy(sandbox.path("cluster.json"), of_its_own.path("cluster.json")).unwrap();
    let from = sandbox.path("vendor/embedded");
    of_its_own.git(&["clone", "-q", "--bare", from.to_str().unwrap(), "bare.git"]);
    let run = of_its_own.ds_plan("--repo bare.git --snapshot cluster.json -o name");
    assert_eq!(run.stdout, "logging/agent\n", "{run}");
}
