//! What is read: a commit, or files.

use std::ffi::OsString;
use std::path::PathBuf;

use super::reference::ReferenceName;

/// The path under which standard input is reported.
pub const STANDARD_INPUT: &str = "<stdin>";

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
