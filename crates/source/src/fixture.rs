//! A home, a current folder and repositories for one test, so that no test depends on the machine's
//! configuration.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::{
    Environment, Error, FileName, Git, GitRequest, Kustomize, Read, Request, Streams, read,
};

/// Content of a wanted file in these tests.
pub(super) const WANTED: &str = "wanted: yes\n";

/// A temporary environment; removed when dropped.
pub(super) struct Fixture {
    root: TempDir,
    /// Timeout of each call of git.
    pub(super) timeout: Duration,
    /// `$PATH` for kustomize.
    pub(super) search: Option<OsString>,
    /// Additional environment variables for git.
    pub(super) variables: Vec<(OsString, OsString)>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let fixture =
            Self { root, timeout: Duration::from_mins(1), search: None, variables: Vec::new() };
        for folder in ["home", "cache", "work"] {
            fs::create_dir(fixture.path(folder)).unwrap();
        }
        fixture.write(
            "home/.gitconfig",
            "[user]\nname = Test\nemail = test@example.com\n[init]\ndefaultBranch = main\n\
             [protocol \"file\"]\nallow = always\n[advice]\ndetachedHead = false\n",
        );
        fixture
    }

    /// With a repository in `work`, the current folder.
    pub(super) fn with_repository() -> Self {
        let fixture = Self::new();
        fixture.git("work", &["init", "--quiet"]);
        // libgit2 reads the machine's global configuration as well; the repository's own wins.
        fixture.git("work", &["config", "core.autocrlf", "false"]);
        fixture.git("work", &["config", "core.excludesFile", "/dev/null"]);
        fixture
    }

    /// With one commit of these files, all wanted.
    pub(super) fn with_commit(files: &[&str]) -> Self {
        let fixture = Self::with_repository();
        fixture.commit(files, "first");
        fixture
    }

    /// Writes these files into `work` and commits everything there.
    pub(super) fn commit(&self, files: &[&str], subject: &str) -> String {
        for file in files {
            self.write(&format!("work/{file}"), WANTED);
        }
        self.git("work", &["add", "--all"]);
        self.git("work", &["commit", "--quiet", "--allow-empty", "--message", subject]);
        self.git("work", &["rev-parse", "HEAD"])
    }

    /// A path inside this environment.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file and creates its folders.
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs git in a folder and returns what it printed.
    pub(super) fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .env_clear()
            .envs(self.environment())
            .current_dir(self.path(folder))
            .args(arguments)
            .output()
            .expect("these tests need git");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Environment of git and its helpers.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        #[expect(clippy::disallowed_methods, reason = "a test has no shell that passes it")]
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut variables = vec![
            ("PATH".into(), path),
            ("HOME".into(), self.path("home").into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_AUTHOR_DATE".into(), "2026-01-01T00:00:00Z".into()),
            ("GIT_COMMITTER_DATE".into(), "2026-01-01T00:00:00Z".into()),
        ];
        variables.extend(self.variables.iter().cloned());
        variables
    }

    /// Reads with the given folder as the current one.
    pub(super) fn read_in(&self, folder: &str, request: &Request) -> Result<Read, Error> {
        self.read_with(folder, request, &mut std::io::empty())
    }

    /// Reads with a standard input.
    pub(super) fn read_with(
        &self,
        folder: &str,
        request: &Request,
        stdin: &mut dyn std::io::Read,
    ) -> Result<Read, Error> {
        self.read_of_command(folder, request, (stdin, &Streams::default()))
    }

    /// The same, where one command reads several times.
    pub(super) fn read_of_command(
        &self,
        folder: &str,
        request: &Request,
        (stdin, streams): (&mut dyn std::io::Read, &Streams),
    ) -> Result<Read, Error> {
        let git = Git {
            program: "git".into(),
            environment: self.environment(),
            terminal: false,
            timeout: self.timeout,
        };
        let kustomize = self.kustomize();
        let (current_dir, cache_dir) = (self.path(folder), Some(self.path("cache")));
        let streams = streams.clone();
        let mut environment =
            Environment { current_dir, cache_dir, stdin, streams, git, kustomize };
        read(request, &wanted, &mut environment)
    }

    /// Settings for kustomize.
    pub(super) fn kustomize(&self) -> Kustomize {
        Kustomize {
            search: self.search.clone(),
            timeout: self.timeout,
            parse: |bytes| manifest::single_document(bytes).map_err(|e| e.to_string()),
        }
    }

    /// Reads `HEAD` in `work`.
    pub(super) fn read_head(&self) -> Result<Read, Error> {
        self.read_in("work", &Request::Git(GitRequest::default()))
    }
}

fn wanted(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|six| six == b"wanted")
}

/// A request for some paths of `HEAD`.
pub(super) fn paths(paths: &[&str]) -> Request {
    let paths = paths.iter().map(PathBuf::from).collect();
    Request::Git(GitRequest { paths, ..GitRequest::default() })
}

/// A request for a revision of a repository.
pub(super) fn revision(repository: impl AsRef<Path>, revision: &str) -> Request {
    Request::Git(GitRequest {
        repository: Some(repository.as_ref().into()),
        revision: Some(revision.to_owned()),
        ..GitRequest::default()
    })
}

/// A request for plain files.
pub(super) fn files(names: &[&str], recursive: bool) -> Request {
    let names = names.iter().map(|name| FileName::from(OsString::from(name))).collect();
    Request::Files { names, recursive }
}

/// The paths of what was read.
pub(super) fn names(read: &Read) -> Vec<&str> {
    read.files.iter().map(|file| file.path.as_ref()).collect()
}
