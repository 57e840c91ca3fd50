//! Runs the user's git, so that proxies, certificates, ssh and credential helpers are the user's,
//! with everything else turned off: no hooks, no other protocols, no maintenance, no prompt without
//! a terminal, and a timeout.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};

use git2::Oid;

use super::cache::Cache;
use super::login::{self, Login};
use crate::error::FetchError;
use crate::location::{Protocol, Remote};
use crate::{Error, Git, child, redact, shown};

/// Limit of git's output, in bytes.
const OUTPUT_LIMIT: u64 = 16 << 20;
/// Number of git's last lines that are quoted.
const QUOTED_LINES: usize = 4;

/// Environment variables that would make git use another repository than the cached copy.
const REPOSITORY_VARIABLES: [&str; 9] = [
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
];

/// Settings for every call.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.writeCommitGraph=false",
    // One pack for each fetch instead of many small files.
    "fetch.unpackLimit=1",
    // A silent server ends the call; git has no timeout of its own.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "protocol.ext.allow=never",
];

/// Loopback: no proxy, and no redirect to another machine.
const LOOPBACK_SETTINGS: [&str; 2] = ["http.proxy=", "http.followRedirects=false"];

/// Runs git for one URL.
pub(super) struct Client<'a> {
    pub(super) git: &'a Git,
    pub(super) remote: &'a Remote,
    pub(super) cache: &'a Cache,
}

/// The result of a call of git.
struct GitOutput {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Client<'_> {
    /// The object that a branch, tag or full reference name is on the server, in git's order of
    /// preference (upstream: `ref_rev_parse_rules`). `None` if there is no such name.
    pub(super) fn resolve(&self, revision: &str) -> Result<Option<Oid>, Error> {
        /// Exit code of `ls-remote --exit-code` without a match.
        const NOTHING: i32 = 2;
        let name = if revision == "@" { "HEAD" } else { revision };
        let (url, login) = login::apart(&self.remote.url);
        let arguments = ["ls-remote", "--exit-code", "--", &url, name];
        let outcome = self.run(&arguments.map(str::to_owned), login)?;
        if outcome.status.code() == Some(NOTHING) {
            return Ok(None);
        }
        self.succeeded(&outcome)?;
        let advertised: Vec<_> =
            outcome.stdout.lines().filter_map(|line| line.split_once('\t')).collect();
        let found = ["", "refs/", "refs/tags/", "refs/heads/"].into_iter().find_map(|prefix| {
            let full = format!("{prefix}{name}");
            advertised.iter().find(|(_, reference)| *reference == full)
        });
        let Some((id, _)) = found else { return Ok(None) };
        Oid::from_str(id).map(Some).map_err(|_| {
            Error::from(FetchError::Failed {
                url: self.remote.shown.clone(),
                output: "its object format is not SHA-1".to_owned(),
            })
        })
    }

    /// Fetches into the cached copy.
    pub(super) fn fetch(&self, options: &[&str], refspecs: &[String]) -> Result<(), Error> {
        let fixed = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc"];
        let fixed = fixed.into_iter().chain(["--no-recurse-submodules", "--no-prune-tags"]);
        let mut arguments: Vec<String> =
            fixed.chain(options.iter().copied()).map(str::to_owned).collect();
        let (url, login) = login::apart(&self.remote.url);
        arguments.extend(["--".to_owned(), url]);
        arguments.extend_from_slice(refspecs);
        let outcome = self.run(&arguments, login)?;
        self.succeeded(&outcome)
    }

    fn run(&self, arguments: &[String], login: Option<Login>) -> Result<GitOutput, Error> {
        let folder = &self.cache.folder;
        let output = || tempfile::tempfile_in(folder);
        let opened = output().and_then(|stdout| Ok((stdout, output()?)));
        let (mut stdout, mut stderr) = opened.map_err(|error| self.no_files(error))?;
        let mut command = self.command(arguments);
        command.envs(login.into_iter().flat_map(|it| it.variables(&self.git.environment)));
        let handles = stdout.try_clone().and_then(|out| Ok((out, stderr.try_clone()?)));
        let handles = handles.map_err(|error| self.no_files(error))?;
        command.stdin(Stdio::null()).stdout(handles.0).stderr(handles.1);
        let child = command.spawn().map_err(|source| self.not_started(source))?;
        let status = self.wait(child)?;
        let stdout = read_back(&mut stdout).map_err(|error| self.no_files(error))?;
        let stderr = read_back(&mut stderr).map_err(|error| self.no_files(error))?;
        Ok(GitOutput { status, stdout, stderr })
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.git.program);
        command.env_clear().envs(self.git.environment.iter().map(|(name, value)| (name, value)));
        for variable in REPOSITORY_VARIABLES {
            command.env_remove(variable);
        }
        // Its messages are matched by their English text.
        command.env("LC_ALL", "C").env("LANGUAGE", "C");
        let loopback = self.remote.protocol == Protocol::LoopbackHttp;
        // The user's `insteadOf` may turn https into ssh and back.
        command.env("GIT_ALLOW_PROTOCOL", if loopback { "http" } else { "https:ssh" });
        if !self.git.terminal {
            command.env("GIT_TERMINAL_PROMPT", "0");
        }
        let more: &[&str] = if loopback { &LOOPBACK_SETTINGS } else { &[] };
        for setting in SETTINGS.iter().chain(more) {
            command.args(["-c", setting]);
        }
        command.current_dir(&self.cache.folder).arg("--git-dir=.").args(arguments);
        command
    }

    fn wait(&self, started: Child) -> Result<ExitStatus, Error> {
        let after = self.git.timeout;
        let ended = child::wait(started, after).map_err(|source| self.not_started(source))?;
        ended.ok_or_else(|| {
            Error::from(FetchError::Timeout { url: self.remote.shown.clone(), after })
        })
    }

    fn succeeded(&self, outcome: &GitOutput) -> Result<(), Error> {
        if outcome.status.success() {
            return Ok(());
        }
        let url = self.remote.shown.clone();
        let output = match quoted(&outcome.stderr) {
            nothing if nothing.is_empty() => outcome.status.to_string(),
            lines => lines,
        };
        if is_denied(&outcome.stderr) {
            Err(Error::from(FetchError::Denied { url, output }))
        } else {
            Err(Error::from(FetchError::Failed { url, output }))
        }
    }

    fn not_started(&self, source: io::Error) -> Error {
        let program = shown::path(self.git.program.as_ref());
        match source.kind() {
            io::ErrorKind::NotFound => Error::from(FetchError::GitMissing { program }),
            _ => Error::from(FetchError::GitStart { program, source }),
        }
    }

    fn no_files(&self, source: io::Error) -> Error {
        Error::from(FetchError::Cache { path: shown::path(&self.cache.folder), source })
    }
}

fn read_back(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines of git's output, joined to one line that is safe to print. Includes messages of
/// the server (`remote: …`).
fn quoted(stderr: &str) -> String {
    let lines: Vec<_> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(QUOTED_LINES)..];
    shown::line(redact::credentials(&last.join("; ")).as_bytes())
}

/// Git has one exit code for all failures, so its text is matched. A miss costs only a hint.
fn is_denied(stderr: &str) -> bool {
    [
        "Authentication failed",
        "could not read Username",
        "could not read Password",
        "Permission denied",
        "returned error: 401",
        "returned error: 403",
    ]
    .into_iter()
    .any(|words| stderr.contains(words))
}
