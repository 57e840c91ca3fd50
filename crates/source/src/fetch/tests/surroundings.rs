//! The user's environment: programs, settings, variables, a cache folder.

use super::*;
use crate::Streams;

fn surroundings<'a>(
    world: &World,
    program: impl Into<OsString>,
    cache_dir: Option<PathBuf>,
    stdin: &'a mut std::io::Empty,
) -> Environment<'a> {
    let git = Git {
        program: program.into(),
        environment: world.fixture.environment(),
        terminal: false,
        timeout: Duration::from_mins(1),
    };
    Environment {
        current_dir: world.fixture.path("home"),
        cache_dir,
        stdin,
        streams: Streams::default(),
        git,
        kustomize: world.fixture.kustomize(),
    }
}

#[test]
fn missing_prerequisites_are_reported() {
    let world = World::new();
    let request = revision(world.url(), "main");
    let cache = world.fixture.path("cache");
    world.fixture.write("not-a-folder", "");
    world.fixture.write("not-a-program", "");
    let (no_folder, no_program) =
        (world.fixture.path("not-a-folder"), world.fixture.path("not-a-program"));
    for (program, cache_dir, expected) in [
        (
            "no-such-git".into(),
            Some(cache.clone()),
            "`no-such-git` is not installed; it is needed to fetch URLs",
        ),
        (no_program.into_os_string(), Some(cache), "cannot run `/not-a-program`"),
        ("git".into(), None, "no cache folder for fetched repositories"),
        (
            "git".into(),
            Some(no_folder),
            "cannot use the cache folder `/not-a-folder/ds-plan/repositories`",
        ),
    ] {
        let mut stdin = std::io::empty();
        let mut environment = surroundings(&world, program, cache_dir, &mut stdin);
        let error = read(&request, &|_| true, &mut environment).unwrap_err().to_string();
        assert_eq!(error.replace(world.fixture.path("").to_str().unwrap(), "/"), expected);
    }
}

#[test]
fn settings_of_the_user_cannot_make_a_fetch_run_programs() {
    let world = World::new();
    let trap = world.trap("hooks/reference-transaction");
    world.trap("template/hooks/reference-transaction");
    world.configure(&format!(
        "[core]\nhooksPath = {}\nfsmonitor = {}\n[init]\ntemplateDir = {}\n",
        trap.parent().unwrap().display(),
        trap.display(),
        world.fixture.path("template").display()
    ));
    world.at("main").unwrap();
    assert!(!world.sprung());
}

#[test]
fn a_url_cannot_be_rewritten_to_another_protocol() {
    for (target, protocol) in [("ext::{} ", "ext"), ("file://{}", "file"), ("ssh://{}", "ssh")] {
        let world = World::new();
        let trap = world.trap("trap.sh");
        let target = target.replace("{}", trap.to_str().unwrap());
        world.configure(&format!(
            "[protocol]\nallow = always\n[protocol \"ext\"]\nallow = always\n\
             [core]\nsshCommand = {}\n[url \"{target}\"]\ninsteadOf = {}\n",
            trap.display(),
            world.url()
        ));
        let message = world.message(world.at("main"));
        let expected = format!("transport '{protocol}' not allowed");
        assert!(message.contains(&expected), "{message}");
        assert!(!world.sprung(), "{protocol}");
    }
}

#[test]
fn the_environment_of_a_hook_is_ignored() {
    let mut world = World::new();
    for (name, value) in [
        ("GIT_DIR", "/nowhere"),
        ("GIT_WORK_TREE", "/nowhere"),
        ("GIT_INDEX_FILE", "/nowhere"),
        ("GIT_OBJECT_DIRECTORY", "/nowhere"),
        // Not to this machine.
        ("http_proxy", "http://192.0.2.1:9"),
        ("ALL_PROXY", "http://192.0.2.1:9"),
    ] {
        world.fixture.variables.push((name.into(), value.into()));
    }
    assert_eq!(names(&world.at("main").unwrap()), ["a.yaml", "b.yaml"]);
}

#[test]
fn ssh_is_the_users_own() {
    let mut world = World::new();
    // Runs the command as sshd would, on this machine.
    world.fixture.write(
        "ssh.sh",
        "#!/bin/sh\necho \"$@\" >> $HOME/../ssh.log\nshift $(($# - 1))\nexec sh -c \"$1\"\n",
    );
    let ssh = world.fixture.path("ssh.sh");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    world.fixture.variables.push(("GIT_SSH_COMMAND".into(), ssh.into()));
    world.fixture.variables.push(("GIT_SSH_VARIANT".into(), "simple".into()));
    let work = world.fixture.path("work");
    for (url, shown) in [
        (format!("git@fleet.example:{}", work.display()), None),
        (format!("ssh://git@fleet.example{}", work.display()), None),
        (
            format!("ssh://git:s3cret@fleet.example{}", work.display()),
            Some(format!("ssh://***@fleet.example{}", work.display())),
        ),
    ] {
        let read = world.from(&url, "main").unwrap();
        assert_eq!(names(&read), ["a.yaml", "b.yaml"], "{url}");
        assert_eq!(read.origin.repository, Some(shown.unwrap_or(url)));
    }
    let log = fs::read_to_string(world.fixture.path("ssh.log")).unwrap();
    assert!(log.starts_with("git@fleet.example git-upload-pack "), "{log}");
}
