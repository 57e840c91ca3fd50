//! Errors of reading a source. Each variant names the problem and the place; hints are
//! in the root package.

use std::io;
use std::time::Duration;

use super::kustomize::problem::Problem as KustomizeProblem;

/// A message of libgit2, without its numeric class and code.
#[derive(Debug, thiserror::Error)]
#[error("{}", _0.message())]
pub struct GitFailure(git2::Error);

impl From<git2::Error> for GitFailure {
    fn from(error: git2::Error) -> Self {
        Self(error)
    }
}

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
    /// No branch, tag or commit has that name.
    #[error("revision `{revision}` not found in `{repository}`")]
    RevisionNotFound {
        /// The revision as given.
        revision: String,
        /// Folder or URL of the repository.
        repository: String,
    },
    /// An abbreviated object name that matches several objects.
    #[error("revision `{revision}` is ambiguous in `{repository}`")]
    RevisionAmbiguous {
        /// The revision as given.
        revision: String,
        /// Folder or URL of the repository.
        repository: String,
    },
    /// An expression that does not name exactly one commit.
    #[error("`{revision}` does not name one revision")]
    RevisionInvalid {
        /// The revision as given.
        revision: String,
    },
    /// A name for something else, such as a file or a folder.
    #[error("revision `{revision}` is a {kind}, not a commit")]
    NotACommit {
        /// The revision as given.
        revision: String,
        /// Type of the object.
        kind: &'static str,
    },
    /// The history that the expression walks is cut off in a shallow clone.
    #[error("revision `{revision}` not found in `{repository}`, which is a shallow clone")]
    RevisionBeyondShallow {
        /// The revision as given.
        revision: String,
        /// Folder or URL of the repository.
        repository: String,
    },
    /// An expression that needs history; only one commit of a URL is fetched.
    #[error("revision `{revision}` of a URL must be a branch, a tag or a commit")]
    RevisionOfUrl {
        /// The revision as given.
        revision: String,
    },
    /// A merge base needs history; only one commit of a URL is fetched.
    #[error("the merge base of revisions needs a local clone of `{url}`")]
    MergeBaseOfUrl {
        /// The URL, without credentials.
        url: String,
    },
    /// Two revisions without common history.
    #[error("revisions `{one}` and `{other}` have no common ancestor in `{repository}`")]
    NoMergeBase {
        /// The first revision.
        one: String,
        /// The second revision.
        other: String,
        /// Folder or URL of the repository.
        repository: String,
    },
    /// The reference of `--require-ref` does not exist.
    #[error("reference {reference} not found in `{repository}`")]
    ReferenceNotFound {
        /// Full name of the reference.
        reference: String,
        /// Folder or URL of the repository.
        repository: String,
    },
    /// The commit is not in the history of the required reference.
    #[error("commit {commit} is not in the history of {reference} in `{repository}`")]
    NotInHistory {
        /// Full id of the commit.
        commit: String,
        /// Full name of the reference.
        reference: String,
        /// Folder or URL of the repository.
        repository: String,
        /// `true` if the repository is a shallow clone, which has only a part of the history.
        shallow: bool,
    },
    /// Git failed to look up an object; usually a damaged repository.
    #[error("cannot look up `{revision}` in `{repository}`")]
    RevisionLookup {
        /// The revision as given.
        revision: String,
        /// Folder or URL of the repository.
        repository: String,
        /// The cause.
        source: GitFailure,
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

    // URLs.
    /// An invalid URL.
    #[error("`{url}` is not a usable repository URL: {reason}")]
    BadUrl {
        /// The URL, without credentials.
        url: String,
        /// The problem.
        reason: &'static str,
    },
    /// An unsupported protocol: `git://`, `ftp://`, `ext::` and the like.
    #[error("`{url}`: fetching by `{scheme}` is not supported")]
    UnsupportedScheme {
        /// The URL, without credentials.
        url: String,
        /// The protocol.
        scheme: String,
    },
    /// Unencrypted http to another machine.
    #[error("`{url}`: plain http is allowed only for loopback addresses")]
    PlainHttp {
        /// The URL, without credentials.
        url: String,
    },
    /// Neither `$XDG_CACHE_HOME` nor the home folder is set.
    #[error("no cache folder for fetched repositories")]
    NoCache,
    /// The cache folder cannot be read or written.
    #[error("cannot use the cache folder `{path}`")]
    Cache {
        /// Path of the folder or file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The cached copy cannot be opened, even after it was created again.
    #[error("cannot use the cached repository `{path}`")]
    CachedRepository {
        /// Folder of the repository.
        path: String,
        /// The cause.
        source: GitFailure,
    },
    /// Timeout while another run held the lock of the cached copy.
    #[error("another run is using the cached copy of `{url}`")]
    CacheBusy {
        /// The URL, without credentials.
        url: String,
    },
    /// Git is not installed.
    #[error("`{program}` is not installed; it is needed to fetch URLs")]
    GitMissing {
        /// Name or path of the program.
        program: String,
    },
    /// Git is installed but does not start.
    #[error("cannot run `{program}`")]
    GitStart {
        /// Name or path of the program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// Git was killed after its timeout.
    #[error("fetching `{url}` took more than {} s", after.as_secs())]
    FetchTimeout {
        /// The URL, without credentials.
        url: String,
        /// The timeout.
        after: Duration,
    },
    /// The server requires credentials, or rejects those given.
    #[error("`{url}` refuses access: {output}")]
    FetchDenied {
        /// The URL, without credentials.
        url: String,
        /// Last lines of git's output.
        output: String,
    },
    /// Git failed for another reason.
    #[error("cannot fetch `{url}`: {output}")]
    Fetch {
        /// The URL, without credentials.
        url: String,
        /// Last lines of git's output.
        output: String,
    },

    // Rendering.
    /// `-k` on a folder without a kustomization, or with more than one.
    #[error("`{path}` is not a folder with exactly one kustomization")]
    NotAKustomization {
        /// Path from the top of the repository.
        path: String,
    },
    /// A kustomization that is rejected before kustomize runs.
    #[error("`{path}` is not rendered: {problem}")]
    Kustomization {
        /// Path of the kustomization from the top of the repository.
        path: String,
        /// The problem.
        problem: KustomizeProblem,
    },
    /// Neither kustomize nor kubectl is installed.
    #[error("neither `kustomize` nor `kubectl` is installed; -k needs one of them")]
    KustomizeMissing,
    /// The program does not start, or its temporary folder cannot be created.
    #[error("cannot run `{program}`")]
    KustomizeStart {
        /// Name or path of the program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// Kustomize was killed after its timeout.
    #[error("rendering `{folder}` took more than {} s", after.as_secs())]
    KustomizeTimeout {
        /// The folder to render.
        folder: String,
        /// The timeout.
        after: Duration,
    },
    /// Kustomize printed more than the limit.
    #[error("the rendered output of `{folder}` is larger than {} MiB", limit >> 20)]
    KustomizeOutput {
        /// The folder to render.
        folder: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Kustomize failed.
    #[error("cannot render `{folder}`: {output}")]
    KustomizeFailed {
        /// The folder to render.
        folder: String,
        /// Last lines of its output.
        output: String,
    },
}
