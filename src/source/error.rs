//! Why a source could not be read. Each variant says what and where; advice is `cli`'s.

use std::io;
use std::time::Duration;

use super::KustomizeProblem;

/// What libgit2 says, without the numbers of its classes and codes.
#[derive(Debug, thiserror::Error)]
#[error("{}", _0.message())]
pub struct GitFailure(git2::Error);

impl From<git2::Error> for GitFailure {
    fn from(error: git2::Error) -> Self {
        Self(error)
    }
}

/// What stood in the way. All text in it is safe to print: no credentials, no control characters.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    // Finding a repository.
    /// No folder from here up to the root of the file system is a repository.
    #[error("no git repository at `{folder}` or above it")]
    NoRepository {
        /// Where the search began.
        folder: String,
    },
    /// Git's `safe.directory` rule: somebody else's configuration is not to be trusted.
    #[error("the git repository at `{folder}` belongs to another user")]
    ForeignRepository {
        /// Its folder, as the rule wants it.
        folder: String,
    },
    /// A bare repository among the files of another one: whoever wrote those wrote it.
    #[error("`{folder}` is a bare repository inside of the working tree `{around}`")]
    EmbeddedRepository {
        /// Its folder.
        folder: String,
        /// The folder with the `.git`.
        around: String,
    },
    /// `--repo` names a file.
    #[error("`{path}` is a file, not a repository")]
    RepositoryIsFile {
        /// As given.
        path: String,
    },
    /// A repository that cannot be opened, for example in a newer format.
    #[error("cannot open the git repository at `{folder}`")]
    OpenRepository {
        /// Where the search began.
        folder: String,
        /// Why.
        source: GitFailure,
    },

    // Finding a commit.
    /// There is no commit yet.
    #[error("the git repository `{repository}` has no commit")]
    EmptyRepository {
        /// Its folder or URL.
        repository: String,
    },
    /// There are commits, but none on the branch that `HEAD` is.
    #[error("`HEAD` of `{repository}` is a branch without a commit")]
    UnbornBranch {
        /// Its folder.
        repository: String,
    },
    /// No branch, tag or commit is called that.
    #[error("revision `{revision}` not found in `{repository}`")]
    RevisionNotFound {
        /// As asked for.
        revision: String,
        /// Folder or URL.
        repository: String,
    },
    /// A shortened object name that fits several objects.
    #[error("revision `{revision}` is ambiguous in `{repository}`")]
    RevisionAmbiguous {
        /// As asked for.
        revision: String,
        /// Folder or URL.
        repository: String,
    },
    /// Not an expression for one commit.
    #[error("`{revision}` does not name one revision")]
    RevisionInvalid {
        /// As asked for.
        revision: String,
    },
    /// A name for something else, such as a file or a folder.
    #[error("revision `{revision}` is a {kind}, not a commit")]
    NotACommit {
        /// As asked for.
        revision: String,
        /// What it is.
        kind: &'static str,
    },
    /// The history that the expression walks was cut off when the repository was cloned.
    #[error("revision `{revision}` not found in `{repository}`, which is a shallow clone")]
    RevisionBeyondShallow {
        /// As asked for.
        revision: String,
        /// Folder or URL.
        repository: String,
    },
    /// An expression that needs history, for a URL, of which one commit is fetched.
    #[error("revision `{revision}` of a URL must be a branch, a tag or a commit")]
    RevisionOfUrl {
        /// As asked for.
        revision: String,
    },
    /// A merge base needs history; of a URL one commit is fetched.
    #[error("the merge base of revisions needs a local clone of `{url}`")]
    MergeBaseOfUrl {
        /// Without credentials.
        url: String,
    },
    /// Two revisions without common history.
    #[error("revisions `{one}` and `{other}` have no common ancestor in `{repository}`")]
    NoMergeBase {
        /// One of them.
        one: String,
        /// The other.
        other: String,
        /// Folder or URL.
        repository: String,
    },
    /// A reference that a commit has to be in the history of is not there.
    #[error("there is no reference {reference} in `{repository}`")]
    ReferenceNotFound {
        /// Its full name.
        reference: String,
        /// Folder or URL.
        repository: String,
    },
    /// A commit that is not in the history of the reference that was demanded.
    #[error("commit {commit} is not in the history of {reference} in `{repository}`")]
    NotInHistory {
        /// Its full id.
        commit: String,
        /// The reference's full name.
        reference: String,
        /// Folder or URL.
        repository: String,
        /// The repository is a shallow clone, which has only a part of the history.
        shallow: bool,
    },
    /// Git failed to look something up; mostly a damaged repository.
    #[error("cannot look up `{revision}` in `{repository}`")]
    RevisionLookup {
        /// As asked for.
        revision: String,
        /// Folder or URL.
        repository: String,
        /// Why.
        source: GitFailure,
    },

    // Reading a commit.
    /// A path that the commit does not have.
    #[error("path `{path}` is not in revision `{revision}`")]
    PathNotInRevision {
        /// From the top of the repository.
        path: String,
        /// The revision that was read.
        revision: String,
        /// The path as given, when it would exist from the top of the repository.
        from_top: Option<String>,
    },
    /// A path that leads out of the repository.
    #[error("path `{path}` is outside the repository")]
    PathOutside {
        /// As given.
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
    #[error("the commit holds an entry with the forbidden name `{path}`")]
    ForbiddenEntry {
        /// From the top of the repository.
        path: String,
    },
    /// A file or folder whose object the repository does not have.
    #[error("the content of `{path}` is missing from the repository{}", if *partial { ", which is a partial clone" } else { "" })]
    ObjectMissing {
        /// From the top of the repository; empty for the top itself.
        path: String,
        /// Whether the repository was cloned without all of its objects.
        partial: bool,
    },
    /// A damaged object.
    #[error("cannot read `{path}` from the repository")]
    ObjectCorrupt {
        /// From the top of the repository; empty for the top itself.
        path: String,
        /// Why.
        source: GitFailure,
    },

    // Reading files.
    /// An empty name, mostly from an unset shell variable.
    #[error("an empty path was given")]
    EmptyPath,
    /// No such file or folder.
    #[error("`{path}` does not exist")]
    NotFound {
        /// As given.
        path: String,
    },
    /// A file or folder that may not be read, or vanished meanwhile.
    #[error("cannot read `{path}`")]
    Unreadable {
        /// Its path, or `<stdin>`.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A named pipe, socket or device; opening one can block for ever.
    #[error("`{path}` is neither a file nor a folder")]
    Special {
        /// As given.
        path: String,
    },
    /// Standard input has only one end.
    #[error("standard input cannot be read twice")]
    StandardInputTwice,
    /// `-f` reads files; kubectl's `-f URL` does not exist here.
    #[error("`{url}` is a URL, not a file")]
    UrlAsFile {
        /// Without credentials.
        url: String,
    },

    // Bounds.
    /// A wanted file beyond the limit.
    #[error("`{path}` is larger than {} MiB", limit >> 20)]
    TooLarge {
        /// Its path.
        path: String,
        /// In bytes.
        limit: usize,
    },
    /// Too many manifest files.
    #[error("more than {limit} manifest files")]
    TooManyFiles {
        /// How many are read at most.
        limit: usize,
    },
    /// Too many files and folders of any kind.
    #[error("more than {limit} files and folders")]
    TooManyEntries {
        /// How many are looked at, at most.
        limit: usize,
    },
    /// Too much wanted content.
    #[error("manifests of more than {} MiB altogether", limit >> 20)]
    TooMuch {
        /// In bytes.
        limit: usize,
    },
    /// Too much content to search for what is wanted.
    #[error("manifest files of more than {} MiB to search altogether", limit >> 20)]
    TooMuchToSearch {
        /// In bytes.
        limit: usize,
    },
    /// Folders within folders within folders.
    #[error("`{path}` is nested more than {limit} folders deep")]
    TooDeep {
        /// Where the walk ended.
        path: String,
        /// How deep it goes.
        limit: usize,
    },
    /// Nothing there has a manifest's name.
    #[error("no .yaml, .yml or .json file in {place}{}", if *not_followed > 0 { "; symbolic links were not followed" } else { "" })]
    NoManifests {
        /// What was searched, in words.
        place: String,
        /// How many links with a manifest's name were passed over.
        not_followed: usize,
    },

    // URLs.
    /// Not a URL that makes sense.
    #[error("`{url}` is not a usable repository URL: {reason}")]
    BadUrl {
        /// Without credentials.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A way of fetching that is not offered: `git://`, `ftp://`, `ext::` and the like.
    #[error("`{url}`: repositories are not fetched by `{scheme}`")]
    UnsupportedScheme {
        /// Without credentials.
        url: String,
        /// The way.
        scheme: String,
    },
    /// Unencrypted fetching from another machine.
    #[error("`{url}`: plain http is for this machine only")]
    PlainHttp {
        /// Without credentials.
        url: String,
    },
    /// Neither `$XDG_CACHE_HOME` nor a home folder is known.
    #[error("no folder for fetched repositories")]
    NoCache,
    /// The cache cannot be written.
    #[error("cannot use the cache folder `{path}`")]
    Cache {
        /// The folder or file in question.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The cached copy cannot be opened, not even anew.
    #[error("cannot use the cached repository `{path}`")]
    CachedRepository {
        /// Its folder.
        path: String,
        /// Why.
        source: GitFailure,
    },
    /// Another run has held the cached copy all the time.
    #[error("another run is using the cached copy of `{url}`")]
    CacheBusy {
        /// Without credentials.
        url: String,
    },
    /// There is no git to fetch with.
    #[error("`{program}` is not installed; URLs are fetched with it")]
    GitMissing {
        /// What was looked for.
        program: String,
    },
    /// Git is there but does not start.
    #[error("cannot run `{program}`")]
    GitStart {
        /// What was run.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Git was ended because it took too long.
    #[error("fetching `{url}` took more than {} s", after.as_secs())]
    FetchTimeout {
        /// Without credentials.
        url: String,
        /// The time that it had.
        after: Duration,
    },
    /// The server wants other credentials, or any.
    #[error("`{url}` refuses access: {output}")]
    FetchDenied {
        /// Without credentials.
        url: String,
        /// The last lines that git printed.
        output: String,
    },
    /// Git says no for another reason.
    #[error("cannot fetch `{url}`: {output}")]
    Fetch {
        /// Without credentials.
        url: String,
        /// The last lines that git printed.
        output: String,
    },

    // Rendering.
    /// `-k` on a folder without a kustomization, or with more than one.
    #[error("`{path}` is no folder with one kustomization")]
    NotAKustomization {
        /// From the top of the repository.
        path: String,
    },
    /// A kustomization that is not given to kustomize.
    #[error("`{path}` is not rendered: {problem}")]
    Kustomization {
        /// Its path from the top of the repository.
        path: String,
        /// What is wrong with it.
        problem: KustomizeProblem,
    },
    /// Neither of the programs that render is there.
    #[error("neither `kustomize` nor `kubectl` is installed; -k renders with one of them")]
    KustomizeMissing,
    /// The program is there but does not start, or its folder cannot be made.
    #[error("cannot run `{program}`")]
    KustomizeStart {
        /// What was run.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It was ended because it took too long.
    #[error("rendering `{folder}` took more than {} s", after.as_secs())]
    KustomizeTimeout {
        /// The folder.
        folder: String,
        /// The time that it had.
        after: Duration,
    },
    /// It was ended because it printed too much.
    #[error("`{folder}` is rendered to more than {} MiB", limit >> 20)]
    KustomizeOutput {
        /// The folder.
        folder: String,
        /// In bytes.
        limit: usize,
    },
    /// It says no.
    #[error("cannot render `{folder}`: {output}")]
    KustomizeFailed {
        /// The folder.
        folder: String,
        /// The last lines that it printed.
        output: String,
    },
}
