//! Errors: a revision, branch or reference cannot be resolved.

use super::git::GitFailure;
/// A revision, branch or reference cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum RevisionError {
    /// No branch, tag or commit has that name.
    #[error("revision `{revision}` not found in `{repository}`")]
    NotFound {
        /// The revision as given.
        revision: String,
        /// Folder or URL of the repository.
        repository: String,
    },
    /// An abbreviated object name that matches several objects.
    #[error("revision `{revision}` is ambiguous in `{repository}`")]
    Ambiguous {
        /// The revision as given.
        revision: String,
        /// Folder or URL of the repository.
        repository: String,
    },
    /// An expression that does not name exactly one commit.
    #[error("`{revision}` does not name one revision")]
    Invalid {
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
    BeyondShallow {
        /// The revision as given.
        revision: String,
        /// Folder or URL of the repository.
        repository: String,
    },
    /// An expression that needs history; only one commit of a URL is fetched.
    #[error("revision `{revision}` of a URL must be a branch, a tag or a commit")]
    OfUrl {
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
    Lookup {
        /// The revision as given.
        revision: String,
        /// Folder or URL of the repository.
        repository: String,
        /// The cause.
        source: GitFailure,
    },
}
