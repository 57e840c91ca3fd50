//! Hints for errors of reading the files of manifests.

use source::{Error, FetchError, KustomizeError, RevisionError, STANDARD_INPUT};

/// Hint when no manifests were found.
pub(super) const WHERE_MANIFESTS_ARE: &str =
    "name the manifests: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)";

/// The hint for `error`; `None` if its message says enough.
pub(super) fn hint(error: &Error) -> Option<String> {
    let text = match error {
        Error::Revision(error) => revision_hint(error).into(),
        Error::Fetch(error) => return fetch_hint(error),
        Error::Kustomize(error) => return kustomize_hint(error).map(str::to_owned),
        Error::NoRepository { .. } => "name the files: `ds-plan -f DIR`".into(),
        Error::ForeignRepository { folder } => {
            let folder = quoted(folder);
            format!("if you trust it: `git config --global --add safe.directory {folder}`")
        }
        Error::EmbeddedRepository { .. } => {
            "to read it, clone it to a folder of its own: `git clone --bare`".into()
        }
        Error::RepositoryIsFile { .. } => {
            "read it with `-f`, or name the folder with `--repo` and the file with `--path`".into()
        }
        Error::OpenRepository { .. } => "read plain files of a working tree with `-f`".into(),
        Error::UnbornBranch { .. } => "commit first, or name another branch with `--rev`".into(),
        Error::EmptyRepository { .. } => "commit first, or read plain files with `-f`".into(),
        Error::PathNotInRevision { .. } => path_hint(error),
        Error::PathOutside { .. } => "read it as a plain file with `-f`".into(),
        Error::PathIsSymlink { .. } => "name the file that the link points to".into(),
        Error::PathIsSubmodule { .. } => "read it on its own: name its folder with `--repo`".into(),
        Error::ObjectMissing { partial: true, .. } => {
            "fetch what is missing: `git fetch --refetch --filter=blob:none --no-filter`".into()
        }
        Error::ObjectMissing { partial: false, .. } | Error::ObjectCorrupt { .. } => CHECK.into(),
        Error::EmptyPath => "is a variable of the command line empty?".into(),
        Error::NotFound { .. } => {
            "paths start at the current folder; for paths in git use `--path`".into()
        }
        Error::UrlAsFile { .. } => {
            "fetch it first and pipe it in: `curl -fsSL URL | ds-plan -f -`".into()
        }
        Error::TooLarge { path, .. } if path == STANDARD_INPUT => {
            "pass only the DaemonSets, and their policies".into()
        }
        Error::TooLarge { .. }
        | Error::TooManyFiles { .. }
        | Error::TooManyEntries { .. }
        | Error::TooMuch { .. }
        | Error::TooMuchToSearch { .. }
        | Error::TooDeep { .. } => "read less: name folders or files with `--path` or `-f`".into(),
        Error::NoManifests { not_followed: 1.., .. } => {
            "name the file itself: `-f` reads it through a link".into()
        }
        Error::NoManifests { .. } => WHERE_MANIFESTS_ARE.into(),
        Error::ForbiddenEntry { .. }
        | Error::Unreadable { .. }
        | Error::Special { .. }
        | Error::StandardInputTwice => return None,
    };
    Some(text)
}

/// Hint when git's objects are damaged.
const CHECK: &str = "check the repository: `git fsck`";

fn path_hint(error: &Error) -> String {
    match error {
        Error::PathNotInRevision { from_top: Some(path), .. } => {
            format!("paths start at the folder of --repo; from the top it is `{path}`")
        }
        Error::PathNotInRevision { path, .. } if path.contains(['*', '?']) => {
            "patterns are not expanded: name a folder, or give `--path` several times".into()
        }
        _ => "commit it first, or read plain files with `-f`".into(),
    }
}

fn revision_hint(error: &RevisionError) -> &'static str {
    match error {
        RevisionError::NotFound { .. } => {
            "fetch it first (`git fetch`), or name another with `--rev`"
        }
        RevisionError::Ambiguous { .. } => "give more digits of the commit",
        RevisionError::Invalid { .. } | RevisionError::NotACommit { .. } => {
            "give a branch, a tag or a commit to `--rev`"
        }
        RevisionError::BeyondShallow { .. } => "fetch the history: `git fetch --unshallow`",
        RevisionError::OfUrl { .. } | RevisionError::MergeBaseOfUrl { .. } => {
            "for anything else, clone the repository and use `--repo DIR`"
        }
        RevisionError::ReferenceNotFound { .. } => {
            "fetch it first (`git fetch`), or name another with `--require-ref`"
        }
        RevisionError::NotInHistory { shallow: true, .. } => {
            "this is a shallow clone; fetch the history: `git fetch --unshallow`"
        }
        RevisionError::NotInHistory { shallow: false, .. } => {
            "have it reviewed and merged, then plan again"
        }
        RevisionError::NoMergeBase { .. } => {
            "in a shallow clone, fetch the history: `git fetch --unshallow`"
        }
        RevisionError::Lookup { .. } => CHECK,
    }
}

fn fetch_hint(error: &FetchError) -> Option<String> {
    let text = match error {
        FetchError::CachedRepository { path, .. } => {
            return Some(format!("remove it: `rm -r {}`", quoted(path)));
        }
        FetchError::BadUrl { .. } | FetchError::UnsupportedScheme { .. } => {
            "use https:// or ssh://, or a folder"
        }
        FetchError::PlainHttp { .. } => "use https://",
        FetchError::NoCache => "set HOME or XDG_CACHE_HOME",
        FetchError::Cache { .. } => "set XDG_CACHE_HOME to a writable folder",
        FetchError::CacheBusy { .. } => "run again when it is done",
        FetchError::GitMissing { .. } => "install git, or clone elsewhere and use `--repo DIR`",
        FetchError::Timeout { .. } => "clone it with git and use `--repo DIR`",
        FetchError::Denied { .. } => "the installed git fetches it: does `git ls-remote URL` work?",
        FetchError::Failed { .. } => "does `git ls-remote URL` work?",
        FetchError::GitStart { .. } => return None,
    };
    Some(text.to_owned())
}

fn kustomize_hint(error: &KustomizeError) -> Option<&'static str> {
    Some(match error {
        KustomizeError::Missing => "install one of them, or read rendered manifests with `-f`",
        KustomizeError::Problem { .. } | KustomizeError::Timeout { .. } => {
            "if you trust it, render it yourself: `kubectl kustomize DIR | ds-plan -f -`"
        }
        KustomizeError::NotAKustomization { .. } => {
            "read plain manifests with `--path`; -k is for a folder with a kustomization.yaml"
        }
        KustomizeError::Output { .. } => "render less: an overlay for each cluster",
        KustomizeError::Failed { .. } => "does `kubectl kustomize DIR` work?",
        KustomizeError::Start { .. } => return None,
    })
}

/// A path, quoted for a shell.
fn quoted(path: &str) -> std::borrow::Cow<'_, str> {
    shlex::try_quote(path).unwrap_or("FOLDER".into())
}
