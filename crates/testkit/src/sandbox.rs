//! A folder for one test, and the programs run in it isolated from this machine: empty environment,
//! own home, fixed width.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    /// An empty sandbox.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Self { folder }
    }

    /// A sandbox with files in it.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let sandbox = Self::new();
        for (name, text) in files {
            sandbox.write(name, text);
        }
        sandbox
    }

    /// The path of `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and creates its folders.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Commits everything; creates the repository if there is none.
    pub fn commit(&self) {
        self.git(&["init", "-q", "-b", "main"]);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "a commit"]);
    }

    /// Runs git with a fixed author and time, so commits have fixed ids; returns its output without the
    /// line end.
    pub fn git(&self, args: &[&str]) -> String {
        let mut git = self.command(Path::new("git"), args);
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Test");
            git.env(format!("GIT_{who}_EMAIL"), "test@example.com");
            git.env(format!("GIT_{who}_DATE"), "2026-01-02T03:04:05Z");
        }
        let done = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Runs `ds-plan`; the arguments must not contain spaces.
    pub fn ds_plan(&self, line: &str) -> Run {
        self.run(self.ds_plan_command(line))
    }

    /// `ds-plan`, ready to run.
    pub fn ds_plan_command(&self, line: &str) -> Command {
        self.command(&program("ds-plan"), &line.split_whitespace().collect::<Vec<_>>())
    }

    /// `ds-apply` with these arguments.
    pub fn ds_apply_command(&self, line: &str) -> Command {
        self.command(&program("ds-apply"), &line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs `ds-apply`.
    pub fn ds_apply(&self, line: &str) -> Run {
        self.run(self.ds_apply_command(line))
    }

    #[expect(clippy::disallowed_methods, reason = "git is found on the PATH")]
    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null()).env_clear();
        command.env("HOME", self.path("home")).env("COLUMNS", "100");
        // To find git.
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, mut command: Command) -> Run {
        let done = command.output().unwrap();
        let folder = self.folder.path().canonicalize().unwrap();
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(folder.to_str().unwrap(), "[dir]")
        };
        let stderr = without_age(&text(done.stderr));
        Run { code: done.status.code(), stdout: text(done.stdout), stderr }
    }
}

/// Leaves out the warning about the age of a recording: the fixtures grow older each day.
pub fn without_age(stderr: &str) -> String {
    let is_age = |line: &&str| line.starts_with("warning: the recording is ");
    stderr.split_inclusive('\n').filter(|line| !is_age(line)).collect()
}

/// A program of the package that is tested, which cargo has built.
#[expect(clippy::disallowed_methods, reason = "cargo tells tests where the programs are")]
fn program(name: &str) -> PathBuf {
    let variable = format!("CARGO_BIN_EXE_{name}");
    std::env::var_os(&variable).unwrap_or_else(|| panic!("cargo sets {variable}")).into()
}

/// The exit code and output of a program; its `Display` is used for golden files.
#[must_use]
pub struct Run {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit {}", self.code.map_or("by signal".to_owned(), |code| code.to_string()))?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                writeln!(f, "--- {name}\n{}", text.trim_end_matches('\n'))?;
            }
        }
        Ok(())
    }
}
