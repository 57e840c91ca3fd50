//! Errors of reading a source. Each variant names the problem and the place; hints are
//! in the root package.

mod fetch;
mod git;
mod kustomize;
mod revision;

use std::io;

pub use fetch::FetchError;
pub use git::GitFailure;
pub use kustomize::KustomizeError;
pub use revision::RevisionError;

/// A failed read. All text in it is safe to print: no credentials, no control characters.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    // Finding a repository.
    /// No folder from here up to the root of the file system is a repository.
    #[error("no git repository at `{folder}` or above it")]
    NoRepository {
        /// Folder in which the search began.
        folder: String,
    },
    /// Git's `safe.directory` rule: the configuration of another user is not trusted.
    #[error("the git repository at `{folder}` belongs to another user")]
    ForeignRepository {
        /// The folder to add to `safe.directory`.
        folder: String,
    },
    /// A bare repository among the files of another one: it comes from the author of those files.
    #[error("`{folder}` is a bare repository inside of the working tree `{around}`")]
    EmbeddedRepository {
        /// Folder of the repository.
        folder: String,
        /// Folder of the working tree, which contains the `.git`.
        around: String,
    },
    /// `--repo` names a file.
    #[error("`{path}` is a file, not a repository")]
    RepositoryIsFile {
        /// The path as given.
        path: String,
    },
    /// A repository that cannot be opened, for example in a newer format.
    #[error("cannot open the git repository at `{folder}`")]
    OpenRepository {
        /// Folder in which the search began.
        folder: String,
        /// The cause.
        source: GitFailure,
    },

    // Finding a commit.
    /// A repository without any commit.
    #[error("the git repository `{repository}` has no commit")]
    EmptyRepository {
        /// Folder or URL of the repository.
        repository: String,
    },
    /// `HEAD` is a branch without a commit; other branches have some.
    #[error("`HEAD` of `{repository}` is a branch without a commit")]
    UnbornBranch {
        /// Folder of the repository.
        repository: String,
    },

    // Reading a commit.
    /// The path does not exist in the commit.
    #[error("path `{path}` is not in revision `{revision}`")]
    PathNotInRevision {
        /// Path from the top of the repository.
        path: String,
        /// The revision that was read.
        revision: String,
        /// The path as given, if it exists relative to the top of the repository.
        from_top: Option<String>,
    },
    /// The path is outside the repository.
    #[error("path `{path}` is outside the repository")]
    PathOutside {
        /// The path as given.
        path: String,
    },
    /// A path that is, or goes through, a symbolic link; links are not followed in git.
    #[error("path `{path}` is a symbolic link")]
    PathIsSymlink {
        /// The link, from the top of the repository.
        path: String,
    },
    /// A path that is, or lies in, a submodule.
    #[error("path `{path}` is a submodule")]
    PathIsSubmodule {
        /// The submodule, from the top of the repository.
        path: String,
    },
    /// A name that git itself refuses to check out.
    #[error("the commit contains an entry with the forbidden name `{path}`")]
    ForbiddenEntry {
        /// Path from the top of the repository.
        path: String,
    },
    /// A file or folder whose object the repository does not have.
    #[error("the content of `{path}` is missing from the repository{}", if *partial { ", which is a partial clone" } else { "" })]
    ObjectMissing {
        /// Path from the top of the repository; empty for the top itself.
        path: String,
        /// `true` if the repository is a partial clone (`--filter`).
        partial: bool,
    },
    /// An object of the repository is damaged.
    #[error("cannot read `{path}` from the repository")]
    ObjectCorrupt {
        /// Path from the top of the repository; empty for the top itself.
        path: String,
        /// The cause.
        source: GitFailure,
    },

    // Reading files.
    /// An empty path, often from an unset shell variable.
    #[error("an empty path was given")]
    EmptyPath,
    /// No such file or folder.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The path as given.
        path: String,
    },
    /// A file or folder without read permission, or one that vanished meanwhile.
    #[error("cannot read `{path}`")]
    Unreadable {
        /// Path of the file, or `<stdin>`.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A named pipe, socket or device; opening one can block forever.
    #[error("`{path}` is neither a file nor a folder")]
    Special {
        /// The path as given.
        path: String,
    },
    /// `-` was given twice.
    #[error("standard input cannot be read twice")]
    StandardInputTwice,
    /// A URL for `-f`, which unlike kubectl's reads files only.
    #[error("`{url}` is a URL, not a file")]
    UrlAsFile {
        /// The URL, without credentials.
        url: String,
    },

    // Limits.
    /// A wanted file exceeds the size limit.
    #[error("`{path}` is larger than {} MiB", limit >> 20)]
    TooLarge {
        /// Path of the file.
        path: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Too many manifest files.
    #[error("more than {limit} manifest files")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// Too many files and folders of any kind.
    #[error("more than {limit} files and folders")]
    TooManyEntries {
        /// The limit.
        limit: usize,
    },
    /// The wanted files exceed their total size limit.
    #[error("more than {} MiB of manifests", limit >> 20)]
    TooMuch {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The manifest files to search exceed their total size limit.
    #[error("more than {} MiB of manifest files to search", limit >> 20)]
    TooMuchToSearch {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Folders are nested too deeply.
    #[error("`{path}` is nested more than {limit} folders deep")]
    TooDeep {
        /// Folder at which the limit was reached.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// No file with the extension of a manifest.
    #[error("no .yaml, .yml or .json file in {place}{}", if *not_followed > 0 { "; symbolic links were not followed" } else { "" })]
    NoManifests {
        /// Description of the place that was searched.
        place: String,
        /// Number of skipped symbolic links with the extension of a manifest.
        not_followed: usize,
    },
    /// A revision, branch or reference cannot be resolved.
    #[error(transparent)]
    Revision(#[from] RevisionError),
    /// A repository cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A kustomization cannot be rendered.
    #[error(transparent)]
    Kustomize(#[from] KustomizeError),
}
