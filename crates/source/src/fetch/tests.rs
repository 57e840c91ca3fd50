//! Fetching from a real git server on the loopback address, with and without credentials, and from
//! hostile servers and settings.

mod surroundings;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::http_backend::{Mode, Server};
use crate::FetchError;
use crate::fixture::{Fixture, names, revision};
use crate::{Environment, Error, Git, GitRequest, Read, Request, read};

/// A repository of two commits, and its server.
struct World {
    fixture: Fixture,
    server: Server,
    /// The older commit.
    old: String,
}

impl World {
    fn new() -> Self {
        let fixture = Fixture::with_repository();
        let old = fixture.commit(&["a.yaml"], "one");
        fixture.git("work", &["tag", "light"]);
        fixture.git("work", &["tag", "--annotate", "--message=x", "v1"]);
        fixture.git("work", &["update-ref", "refs/pull/7/head", "HEAD"]);
        fixture.commit(&["b.yaml"], "two");
        fixture.git("work", &["branch", "feature/main", "HEAD~1"]);
        fixture.git("work", &["branch", "--force", "both"]);
        fixture.git("work", &["tag", "both", "HEAD~1"]);
        let server = Server::start(fixture.path(""), fixture.environment());
        Self { fixture, server, old }
    }

    fn url(&self) -> String {
        self.server.url("", "work/.git")
    }

    fn at(&self, expression: &str) -> Result<Read, Error> {
        self.from(&self.url(), expression)
    }

    fn from(&self, url: &str, expression: &str) -> Result<Read, Error> {
        self.fixture.read_in("home", &revision(url, expression))
    }

    /// The message of a failure, with the URL replaced by a fixed text.
    fn message(&self, result: Result<Read, Error>) -> String {
        result.unwrap_err().to_string().replace(&self.url(), "URL")
    }

    fn configure(&self, text: &str) {
        let path = self.fixture.path("home/.gitconfig");
        let before = fs::read_to_string(&path).unwrap();
        fs::write(path, before + text).unwrap();
    }

    /// A script that creates the file `sprung` when it runs.
    fn trap(&self, name: &str) -> PathBuf {
        let sprung = self.fixture.path("sprung");
        self.fixture.write(name, &format!("#!/bin/sh\ntouch {}\n", sprung.display()));
        let path = self.fixture.path(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn sprung(&self) -> bool {
        self.fixture.path("sprung").exists()
    }

    /// The folder of the cached copy.
    fn copy(&self) -> PathBuf {
        let all = fs::read_dir(self.fixture.path("cache/ds-plan/repositories")).unwrap();
        let mut paths = all.map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|e| e == "git")).unwrap()
    }
}

#[test]
fn a_revision_of_a_url_is_fetched() {
    let world = World::new();
    for (expression, expected) in [
        ("HEAD", &["a.yaml", "b.yaml"][..]),
        ("@", &["a.yaml", "b.yaml"]),
        ("main", &["a.yaml", "b.yaml"]),
        ("feature/main", &["a.yaml"]),
        ("refs/heads/main", &["a.yaml", "b.yaml"]),
        ("heads/both", &["a.yaml", "b.yaml"]),
        // As git does, and warns about: a tag before a branch.
        ("both", &["a.yaml"]),
        ("light", &["a.yaml"]),
        ("v1", &["a.yaml"]),
        ("refs/pull/7/head", &["a.yaml"]),
        (&world.old, &["a.yaml"]),
        (&world.old[..8], &["a.yaml"]),
    ] {
        let read = world.at(expression).unwrap();
        assert_eq!(names(&read), expected, "{expression}");
        assert_eq!(read.warnings, [], "{expression}");
        assert_eq!(read.origin.repository, Some(world.url()));
        let subject = if expected.len() == 1 { "one" } else { "two" };
        assert_eq!(read.origin.commit.unwrap().subject, subject, "{expression}");
    }
    let default = GitRequest { repository: Some(world.url().into()), ..GitRequest::default() };
    let read = world.fixture.read_in("home", &Request::Git(default)).unwrap();
    assert_eq!(names(&read), ["a.yaml", "b.yaml"]);
}

#[test]
fn a_commit_is_fetched_once_and_a_branch_is_looked_up_again() {
    let world = World::new();
    world.at(&world.old).unwrap();
    assert!(!world.server.requests().is_empty());
    world.at(&world.old).unwrap();
    assert_eq!(world.server.requests(), [] as [String; 0], "known, so no request");

    world.at("main").unwrap();
    let first = world.server.requests().len();
    world.at("main").unwrap();
    let second = world.server.requests().len();
    assert!(0 < second && second < first, "{second} of {first} requests for what is known");

    world.fixture.commit(&["c.yaml"], "three");
    assert_eq!(names(&world.at("main").unwrap()), ["a.yaml", "b.yaml", "c.yaml"]);
    world.fixture.git("work", &["reset", "--quiet", "--hard", "HEAD~2"]);
    assert_eq!(names(&world.at("main").unwrap()), ["a.yaml"], "a branch may be reset");
}

#[test]
fn one_commit_without_its_history_is_fetched() {
    let world = World::new();
    world.at("main").unwrap();
    let copy = world.copy();
    let copy = copy.strip_prefix(world.fixture.path("")).unwrap().to_str().unwrap();
    assert_eq!(world.fixture.git(copy, &["rev-list", "--all", "--count"]), "1");
    assert_eq!(world.fixture.git(copy, &["rev-parse", "--is-bare-repository"]), "true");
}

#[test]
fn an_old_server_serves_commits_with_their_branches() {
    let world = World::new();
    world.fixture.git("work", &["tag", "--delete", "light", "v1", "both"]);
    world.fixture.git("work", &["branch", "--delete", "--force", "feature/main"]);
    world.fixture.git("work", &["update-ref", "-d", "refs/pull/7/head"]);
    world.server.set(Mode::ServeOldProtocol);
    for expression in ["main", &world.old, &world.old[..8]] {
        assert!(names(&world.at(expression).unwrap()).contains(&"a.yaml"), "{expression}");
    }
    let gone = "0123456789012345678901234567890123456789";
    let expected = format!("revision `{gone}` not found in `URL`");
    assert_eq!(world.message(world.at(gone)), expected);
}

#[test]
fn revisions_that_a_server_does_not_have() {
    let world = World::new();
    let trap = world.trap("trap.sh");
    let option = format!("--upload-pack={}", trap.display());
    for (expression, expected) in [
        ("nonsense", "revision `nonsense` not found in `URL`".to_owned()),
        // `ls-remote` would take it for the end of `refs/heads/feature/main`.
        ("re/main", "revision `re/main` not found in `URL`".to_owned()),
        ("0123abcd", "revision `0123abcd` not found in `URL`".to_owned()),
        ("HEAD~1", "revision `HEAD~1` of a URL must be a branch, a tag or a commit".to_owned()),
        ("main@{1}", "revision `main@{1}` of a URL must be a branch, a tag or a commit".to_owned()),
        (
            "main:a.yaml",
            "revision `main:a.yaml` of a URL must be a branch, a tag or a commit".to_owned(),
        ),
        ("", "`` does not name one revision".to_owned()),
        ("a b", "`a b` does not name one revision".to_owned()),
        ("refs/heads/*", "`refs/heads/*` does not name one revision".to_owned()),
        ("main..both", "`main..both` does not name one revision".to_owned()),
        (&option, format!("`{option}` does not name one revision")),
    ] {
        assert_eq!(world.message(world.at(expression)), expected);
    }
    assert!(!world.sprung());
    world.fixture.git("work", &["tag", "of-file", "HEAD:a.yaml"]);
    let message = world.message(world.at("of-file"));
    assert!(message.ends_with("is a file, not a commit"), "{message}");
}

#[test]
fn an_empty_repository_has_no_head() {
    let world = World::new();
    world.fixture.git("", &["init", "--quiet", "--bare", "empty.git"]);
    let url = world.server.url("", "empty.git");
    let expected = format!("revision `HEAD` not found in `{url}`");
    assert_eq!(world.from(&url, "HEAD").unwrap_err().to_string(), expected);
}

#[test]
fn no_merge_base_without_history() {
    let world = World::new();
    let request = GitRequest {
        repository: Some(world.url().into()),
        instead: Some(crate::Instead::MergeBase("main".into())),
        ..GitRequest::default()
    };
    let result = world.fixture.read_in("home", &Request::Git(request));
    let expected = "the merge base of revisions needs a local clone of `URL`";
    assert_eq!(world.message(result), expected);
}

#[test]
fn credentials_are_the_users_own_and_stay_secret() {
    let world = World::new();
    world.server.set(Mode::Private);
    let denied = |url: &str| {
        let error = world.from(url, "main").unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::Fetch(FetchError::Denied { .. })), "{message}");
        assert!(!message.contains("wr0ng") && !message.contains("s3cret"), "{message}");
        message.replace(&world.url(), "URL")
    };
    let message = denied(&world.url());
    assert!(
        message.starts_with("`URL` refuses access: fatal: could not read Username"),
        "{message}"
    );
    let message = denied(&world.server.url("me:wr0ng@", "work/.git"));
    assert!(message.contains("Authentication failed"), "{message}");

    let read = world.from(&world.server.url("me:s3cret@", "work/.git"), "main").unwrap();
    assert_eq!(names(&read), ["a.yaml", "b.yaml"]);
    let shown = world.server.url("***@", "work/.git");
    assert_eq!(read.origin.repository, Some(shown));

    world.configure(
        "[credential]\nhelper = \"!f() { echo username=me; echo password=s3cret; }; f\"\n",
    );
    assert_eq!(names(&world.at("main").unwrap()), ["a.yaml", "b.yaml"]);
    world.configure(
        "[credential]\nhelper =\nhelper = \"!f() { echo username=me; echo password=wr0ng; }; f\"\n",
    );
    let message = denied(&world.url());
    assert!(message.contains("Authentication failed"), "{message}");
}

#[test]
fn a_password_in_a_url_is_not_in_the_arguments_of_a_process() {
    let mut world = World::new();
    world.server.set(Mode::Private);
    let trace = world.fixture.path("trace");
    world.fixture.variables.push(("GIT_TRACE".into(), trace.clone().into()));
    // Helpers of the user with another password are not used.
    world.configure("[credential]\nhelper = \"!f() { echo password=wr0ng; }; f\"\n");
    let read = world.from(&world.server.url("me:s3cret@", "work/.git"), "main").unwrap();
    assert_eq!(names(&read), ["a.yaml", "b.yaml"]);
    let trace = fs::read_to_string(trace).unwrap();
    assert!(trace.contains("run_command: git remote-http "), "{trace}");
    assert!(!trace.contains("s3cret"), "{trace}");
}

#[test]
fn server_messages_are_escaped() {
    let world = World::new();
    let body = "\x1b[2Jgo away\n";
    world.server.set(Mode::Answer(format!(
        "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )));
    let error = world.at("main").unwrap_err();
    assert!(matches!(error, Error::Fetch(FetchError::Denied { .. })), "{error}");
    let message = error.to_string();
    assert!(message.contains("go away") && !message.contains('\x1b'), "{message:?}");
}

#[test]
fn servers_that_fail() {
    let world = World::new();
    let missing = world.server.url("", "missing.git");
    let message = world.from(&missing, "main").unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot fetch `{missing}`: ")), "{message}");
    assert!(message.contains("not found"), "{message}");

    let answer = |status: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    };
    for (mode, expected) in [
        (answer("500 Oops"), "returned error: 500"),
        (
            answer("302 Found\r\nLocation: http://192.0.2.1/work/.git/info/refs"),
            "returned error: 302",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n".into(), "not valid"),
        ("nonsense".into(), "unable to access"),
    ] {
        world.server.set(Mode::Answer(mode));
        let message = world.message(world.at("main"));
        assert!(message.starts_with("cannot fetch `URL`: "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_repository_of_another_object_format() {
    let world = World::new();
    world.fixture.git("", &["init", "--quiet", "--object-format=sha256", "sha256"]);
    world.fixture.git("sha256", &["commit", "--quiet", "--allow-empty", "--message=x"]);
    let url = world.server.url("", "sha256/.git");
    let expected = format!("cannot fetch `{url}`: its object format is not SHA-1");
    assert_eq!(world.from(&url, "main").unwrap_err().to_string(), expected);
}

#[test]
fn a_server_that_never_answers_is_timed_out() {
    let mut world = World::new();
    world.fixture.timeout = Duration::from_millis(500);
    world.server.set(Mode::Silent("GET"));
    let expected = "fetching `URL` took more than 0 s";
    assert_eq!(world.message(world.at("main")), expected);
}

#[test]
fn an_interrupted_fetch_leaves_a_usable_copy() {
    let mut world = World::new();
    world.at(&world.old).unwrap();
    // Killed in the middle, at its second request.
    world.fixture.timeout = Duration::from_secs(1);
    world.server.set(Mode::Silent("POST"));
    assert!(matches!(world.at("main"), Err(Error::Fetch(FetchError::Timeout { .. }))));
    world.fixture.timeout = Duration::from_mins(1);
    world.server.set(Mode::Serve);
    // Leftovers of a killed git.
    let copy = world.copy();
    for left in ["shallow.lock", "HEAD.lock", "objects/pack/tmp_pack_x"] {
        fs::write(copy.join(left), "").unwrap();
    }
    fs::create_dir_all(copy.join("refs/ds-plan")).unwrap();
    let head = world.fixture.git("work", &["rev-parse", "HEAD"]);
    fs::write(copy.join(format!("refs/ds-plan/{head}.lock")), "").unwrap();
    assert_eq!(names(&world.at("main").unwrap()), ["a.yaml", "b.yaml"]);
    assert!(!copy.join("objects/pack/tmp_pack_x").exists());
}

#[test]
fn a_damaged_copy_is_created_again() {
    let world = World::new();
    for damage in ["HEAD", "objects", "config"] {
        world.at("main").unwrap();
        let path = world.copy().join(damage);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::write(path, "[not what git writes").unwrap();
        }
        assert_eq!(names(&world.at("main").unwrap()), ["a.yaml", "b.yaml"], "{damage}");
    }
}

#[test]
fn a_copy_does_not_grow_forever() {
    let world = World::new();
    world.at("main").unwrap();
    let packs = world.copy().join("objects/pack");
    let count = || fs::read_dir(&packs).unwrap().count();
    assert!(count() > 0);
    for number in 0..100 {
        fs::write(packs.join(format!("pack-{number}.pack")), "").unwrap();
    }
    world.at("main").unwrap();
    assert!(count() < 10, "{} files", count());
}

#[test]
fn runs_at_the_same_time_wait_for_each_other() {
    let world = World::new();
    let url = world.url();
    thread::scope(|scope| {
        let runs: Vec<_> = ["main", "light", "v1", &world.old]
            .into_iter()
            .map(|expression| {
                let (url, fixture) = (&url, &world.fixture);
                scope.spawn(move || fixture.read_in("home", &revision(url, expression)))
            })
            .collect();
        for run in runs {
            assert!(names(&run.join().unwrap().unwrap()).contains(&"a.yaml"));
        }
    });
}

#[test]
fn waiting_for_a_copy_in_use_has_a_timeout() {
    let mut world = World::new();
    world.at("main").unwrap();
    let lock = fs::File::open(world.copy().with_extension("lock")).unwrap();
    lock.lock().unwrap();
    world.fixture.timeout = Duration::from_millis(100);
    let expected = "another run is using the cached copy of `URL`";
    assert_eq!(world.message(world.at("main")), expected);
}

#[test]
fn the_cache_is_private_to_its_user() {
    let world = World::new();
    world.at("main").unwrap();
    let mode = |name: &str| fs::metadata(world.fixture.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("cache/ds-plan/repositories") & 0o777, 0o700);
}
