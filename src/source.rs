//! Where manifest bytes come from: git objects at a revision, as they are or rendered by kustomize;
//! files and folders; standard input.
//!
//! A commit is read object by object: no checkout, no hooks, no filters, no attributes. Symbolic
//! links and submodules are never followed. A folder with a `Chart.yaml` or a kustomization holds
//! no whole objects; it is passed over and reported as [`Unrendered`].
//!
//! This room does not know what a manifest says. The caller's `wanted` looks at the bytes of each
//! file and says whether to keep them; that bounds memory on repositories with many other files.
//! Not here: parsing (`manifest`), advice and words around an error (`cli`), reading the process's
//! environment (`cli`, which hands it over in [`Surroundings`]).

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::model::ManifestFile;

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

pub(crate) use child::wait as wait_for_child;
pub use error::{Error, GitFailure};
pub use kustomize::Problem as KustomizeProblem;
pub use reference::ReferenceName;
pub use unrendered::{Renderer, Unrendered};
pub use version::FilesVersion;
pub use warning::Warning;

/// The path under which standard input is reported.
pub const STANDARD_INPUT: &str = "<stdin>";

/// A file larger than this is refused when the caller wants it, in bytes.
pub const FILE_LIMIT: usize = 3 << 20;

/// How long one call of `git` may take before it is ended.
pub const FETCH_TIMEOUT: Duration = Duration::from_mins(5);

/// How long kustomize may take before it is ended.
pub const KUSTOMIZE_TIMEOUT: Duration = Duration::from_mins(1);

/// What to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// One commit of a git repository.
    Git(GitRequest),
    /// Plain files, folders and standard input, by kubectl's rules for `-f`.
    Files {
        /// Read in this order; a file reached twice is read once.
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
    /// Read another commit instead, which a branch that is trusted leads to.
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

/// A commit that is read instead of the revision. A name is that of a remote branch, or else of a
/// local one, before it is anything else: whoever can push may call a tag as a branch is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// Where the revision and this one parted.
    MergeBase(String),
    /// This one itself.
    Tip(String),
}

/// A file as `-f` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileName {
    /// `-`
    StandardInput,
    /// A file or a folder. A symbolic link that is named here is followed, as kubectl does.
    Path(PathBuf),
}

impl From<OsString> for FileName {
    fn from(name: OsString) -> Self {
        if name == "-" { Self::StandardInput } else { Self::Path(name.into()) }
    }
}

/// What the process hands over, so that nothing here reads it by itself.
pub struct Surroundings<'a> {
    /// Relative paths start here.
    pub current_dir: PathBuf,
    /// `$XDG_CACHE_HOME` or `~/.cache`; fetched repositories go to `ds-plan/repositories` in it.
    pub cache_dir: Option<PathBuf>,
    /// Read to its end when `-` is asked for.
    pub stdin: &'a mut dyn io::Read,
    /// How to run git.
    pub git: Git,
    /// How to run kustomize.
    pub kustomize: Kustomize,
}

/// The user's own kustomize, or the one that is built into kubectl.
#[derive(Clone, Debug)]
pub struct Kustomize {
    /// `$PATH`: where the programs are looked for.
    pub search: Option<OsString>,
    /// How long it may take ([`KUSTOMIZE_TIMEOUT`]).
    pub timeout: Duration,
    /// Reads the only YAML document of a file as kubectl does; or says what is wrong with it.
    pub parse: fn(&[u8]) -> Result<serde_json::Value, String>,
}

/// The user's own git, which fetches URLs with the user's credentials and proxies.
#[derive(Clone, Debug)]
pub struct Git {
    /// `git`, or the path of one.
    pub program: OsString,
    /// Its whole environment, as the process has it.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether git may ask for a password on the terminal.
    pub terminal: bool,
    /// How long each call may take ([`FETCH_TIMEOUT`]).
    pub timeout: Duration,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The files that the caller wanted: from git by path, else in the order of the request.
    pub files: Vec<ManifestFile>,
    /// Manifest files that were looked at and not wanted.
    pub passed_over: usize,
    /// Folders that need rendering first.
    pub unrendered: Vec<Unrendered>,
    /// Where all of it came from.
    pub origin: Origin,
    /// What the reader should know although nothing failed.
    pub warnings: Vec<Warning>,
}

/// Where manifests came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The repository without credentials: the URL it was fetched from, else the `origin` remote
    /// of a local one, else its folder. `None` for plain files.
    pub repository: Option<String>,
    /// The commit that was read. `None` for plain files.
    pub commit: Option<Commit>,
    /// What was read: paths from the top of the repository (none: all of it), or the names given.
    pub paths: Vec<String>,
}

/// A commit, as far as provenance needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Full object name, 40 hexadecimal digits.
    pub id: String,
    /// First line of its message.
    pub subject: String,
}

/// Reads what is asked for and keeps the files whose bytes are `wanted`.
///
/// # Errors
/// The first thing that stands in the way; never half of the input. See [`Error`].
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
