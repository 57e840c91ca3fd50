//! Reads the bytes of manifests: from git objects at a revision, as they are or rendered by
//! kustomize; from files and folders; from standard input.
//!
//! A commit is read object by object: no checkout, no hooks, no filters, no attributes. Symbolic
//! links and submodules are never followed. A folder with a `Chart.yaml` or a kustomization does
//! not contain complete objects; it is skipped and reported as [`Unrendered`].
//!
//! This module does not parse manifests. The caller's `wanted` decides by the bytes of each file
//! whether to keep it; that bounds memory on repositories with many other files. Not here: parsing
//! (`manifest`), hints for an error (`cli`), reading the process's environment (`cli`, which passes
//! it in [`Surroundings`]).

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use daemonset::model::ManifestFile;

mod child;
mod disk;
mod error;
mod fetch;
#[cfg(test)]
mod fixture;
mod gather;
mod git;
mod kustomize;
mod location;
mod redact;
mod reference;
mod repository;
mod revision;
mod shown;
mod unrendered;
mod version;
mod warning;
mod worktree;

pub use child::wait as wait_for_child;
pub use error::{Error, GitFailure};
pub use kustomize::Problem as KustomizeProblem;
pub use reference::ReferenceName;
pub use unrendered::{Renderer, Unrendered};
pub use version::FilesVersion;
pub use warning::Warning;

/// The path under which standard input is reported.
pub const STANDARD_INPUT: &str = "<stdin>";

/// Size limit of one wanted file, in bytes; a larger file is an error.
pub const FILE_LIMIT: usize = 3 << 20;

/// Timeout of one call of `git`.
pub const FETCH_TIMEOUT: Duration = Duration::from_mins(5);

/// Timeout of kustomize.
pub const KUSTOMIZE_TIMEOUT: Duration = Duration::from_mins(1);

/// The manifests to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// One commit of a git repository.
    Git(GitRequest),
    /// Plain files, folders and standard input, by kubectl's rules for `-f`.
    Files {
        /// Files and folders, in the order in which they are read; a file reached twice is read
        /// once.
        names: Vec<FileName>,
        /// Descend into sub-folders (`-R`).
        recursive: bool,
    },
}

/// One commit of a git repository; by default `HEAD` of the repository around the current folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitRequest {
    /// A folder in a repository (bare or not; searched for upward, as git does), a `file://` URL,
    /// or an `https`, `ssh` or loopback `http` URL, which is fetched.
    pub repository: Option<OsString>,
    /// Any revision expression of git; for a URL a branch, a tag, a full reference name or a
    /// commit. Default: `HEAD`.
    pub revision: Option<String>,
    /// Read another commit instead, one that is found through a trusted branch.
    pub instead: Option<Instead>,
    /// Files and folders to read; none means all. As with `git -C FOLDER`, relative to the folder
    /// from which the repository was found, and to the top for a bare or a fetched one. An absolute
    /// path must lie in the working tree. Never outside the repository.
    pub paths: Vec<PathBuf>,
    /// Let the installed kustomize render this folder instead of reading `paths`.
    pub kustomize: Option<PathBuf>,
    /// Refuse a commit that is not in the history of this reference; for a URL, one of the server.
    pub require_ref: Option<ReferenceName>,
}

/// A commit that is read instead of the revision. A name is looked up as a remote branch first,
/// then as a local branch, and only then as anything else: anyone who can push could create a tag
/// with the name of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The merge base of the revision and this branch.
    MergeBase(String),
    /// The tip of this branch.
    Tip(String),
}

/// A value of `-f`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileName {
    /// `-`, standard input.
    StandardInput,
    /// A file or a folder. A symbolic link that is named here is followed, as kubectl does.
    Path(PathBuf),
}

impl From<OsString> for FileName {
    fn from(name: OsString) -> Self {
        if name == "-" { Self::StandardInput } else { Self::Path(name.into()) }
    }
}

/// Settings of the process that reading depends on; nothing in this module reads them itself.
pub struct Surroundings<'a> {
    /// The folder that relative paths are resolved against.
    pub current_dir: PathBuf,
    /// `$XDG_CACHE_HOME` or `~/.cache`; fetched repositories go to `ds-plan/repositories` in it.
    pub cache_dir: Option<PathBuf>,
    /// Standard input; read to its end when `-` is requested.
    pub stdin: &'a mut dyn io::Read,
    /// Settings for running git.
    pub git: Git,
    /// Settings for running kustomize.
    pub kustomize: Kustomize,
}

/// The user's own kustomize, or the one that is built into kubectl.
#[derive(Clone, Debug)]
pub struct Kustomize {
    /// `$PATH`, which is searched for the programs.
    pub search: Option<OsString>,
    /// Timeout of one rendering ([`KUSTOMIZE_TIMEOUT`]).
    pub timeout: Duration,
    /// Parses a file with exactly one YAML document as kubectl does; returns the problem otherwise.
    pub parse: fn(&[u8]) -> Result<serde_json::Value, String>,
}

/// The user's own git, which fetches URLs with the user's credentials and proxies.
#[derive(Clone, Debug)]
pub struct Git {
    /// `git`, or a path to it.
    pub program: OsString,
    /// The complete environment of git: that of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// `true` if git may ask for a password on the terminal.
    pub terminal: bool,
    /// Timeout of each call ([`FETCH_TIMEOUT`]).
    pub timeout: Duration,
}

/// The result of [`read`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The wanted files: from git sorted by path, otherwise in the order of the request.
    pub files: Vec<ManifestFile>,
    /// Number of manifest files that were searched and not wanted.
    pub passed_over: usize,
    /// Folders that must be rendered first, and were not read.
    pub unrendered: Vec<Unrendered>,
    /// The origin of the files, for provenance.
    pub origin: Origin,
    /// Warnings, for example about files that were skipped.
    pub warnings: Vec<Warning>,
}

/// The origin of manifests, for provenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The repository without credentials: the URL it was fetched from, else the `origin` remote
    /// of a local one, else its folder. `None` for plain files.
    pub repository: Option<String>,
    /// The commit that was read. `None` for plain files.
    pub commit: Option<Commit>,
    /// The paths that were read, from the top of the repository (empty: all of it), or the names
    /// given.
    pub paths: Vec<String>,
}

/// A commit, for provenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Full object name, 40 hexadecimal digits.
    pub id: String,
    /// First line of its message.
    pub subject: String,
}

/// Reads the requested manifests and keeps the files whose bytes are `wanted`.
///
/// # Errors
/// The first problem; a part of the input is never returned. See [`Error`].
pub fn read(
    request: &Request,
    wanted: &dyn Fn(&[u8]) -> bool,
    around: &mut Surroundings<'_>,
) -> Result<Read, Error> {
    match request {
        Request::Git(request) => git::read(request, wanted, around),
        Request::Files { names, recursive } => disk::read(names, *recursive, wanted, around),
    }
}
