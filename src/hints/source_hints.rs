//! Hints for errors of reading the files of manifests.

use source::Error;

/// Hint when no manifests were found.
pub(super) const WHERE_MANIFESTS_ARE: &str =
    "name the manifests: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)";

/// The hint for `error`; `None` if its message says enough.
pub(super) fn hint(error: &Error) -> Option<String> {
    let text = match error {
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
        Error::RevisionNotFound { .. } => {
            "fetch it first (`git fetch`), or name another with `--rev`".into()
        }
        Error::RevisionAmbiguous { .. } => "give more digits of the commit".into(),
        Error::RevisionInvalid { .. } | Error::NotACommit { .. } => {
            "give a branch, a tag or a commit to `--rev`".into()
        }
        Error::RevisionBeyondShallow { .. } => "fetch the history: `git fetch --unshallow`".into(),
        Error::RevisionOfUrl { .. } | Error::MergeBaseOfUrl { .. } => {
            "for anything else, clone the repository and use `--repo DIR`".into()
        }
        Error::ReferenceNotFound { .. } | Error::NotInHistory { .. } => {
            reference_hint(error).into()
        }
        Error::NoMergeBase { .. } => {
            "in a shallow clone, fetch the history: `git fetch --unshallow`".into()
        }
        Error::PathNotInRevision { from_top: Some(path), .. } => {
            format!("paths start at the folder of --repo; from the top it is `{path}`")
        }
        Error::PathNotInRevision { path, .. } if path.contains(['*', '?']) => {
            "patterns are not expanded: name a folder, or give `--path` several times".into()
        }
        Error::PathNotInRevision { from_top: None, .. } => {
            "commit it first, or read plain files with `-f`".into()
        }
        Error::PathOutside { .. } => "read it as a plain file with `-f`".into(),
        Error::PathIsSymlink { .. } => "name the file that the link points to".into(),
        Error::PathIsSubmodule { .. } => "read it on its own: name its folder with `--repo`".into(),
        Error::ObjectMissing { partial: true, .. } => {
            "fetch what is missing: `git fetch --refetch --filter=blob:none --no-filter`".into()
        }
        Error::ObjectMissing { partial: false, .. }
        | Error::ObjectCorrupt { .. }
        | Error::RevisionLookup { .. } => "check the repository: `git fsck`".into(),
        Error::EmptyPath => "is a variable of the command line empty?".into(),
        Error::NotFound { .. } => {
            "paths start at the current folder; for paths in git use `--path`".into()
        }
        Error::UrlAsFile { .. } => {
            "fetch it first and pipe it in: `curl -fsSL URL | ds-plan -f -`".into()
        }
        Error::TooLarge { .. }
        | Error::TooManyFiles { .. }
        | Error::TooManyEntries { .. }
        | Error::TooMuch { .. }
        | Error::TooMuchToSearch { .. }
        | Error::TooDeep { .. } => "read less: name folders or files with `--path` or `-f`".into(),
        Error::NoManifests { .. } => WHERE_MANIFESTS_ARE.into(),
        Error::BadUrl { .. } | Error::UnsupportedScheme { .. } => {
            "use https:// or ssh://, or a folder".into()
        }
        Error::PlainHttp { .. } => "use https://".into(),
        Error::NoCache => "set HOME or XDG_CACHE_HOME".into(),
        Error::Cache { .. } => "set XDG_CACHE_HOME to a writable folder".into(),
        Error::CachedRepository { path, .. } => format!("remove it: `rm -r {}`", quoted(path)),
        Error::CacheBusy { .. } => "run again when it is done".into(),
        Error::GitMissing { .. } => "install git, or clone elsewhere and use `--repo DIR`".into(),
        Error::FetchTimeout { .. } => "clone it with git and use `--repo DIR`".into(),
        Error::FetchDenied { .. } => {
            "the installed git fetches it: does `git ls-remote URL` work?".into()
        }
        Error::Fetch { .. } => "does `git ls-remote URL` work?".into(),
        Error::KustomizeMissing => {
            "install one of them, or read rendered manifests with `-f`".into()
        }
        Error::Kustomization { .. } | Error::KustomizeTimeout { .. } => {
            "if you trust it, render it yourself: `kubectl kustomize DIR | ds-plan -f -`".into()
        }
        Error::NotAKustomization { .. } => {
            "read plain manifests with `--path`; -k is for a folder with a kustomization.yaml"
                .into()
        }
        Error::KustomizeOutput { .. } => "render less: an overlay for each cluster".into(),
        Error::KustomizeFailed { .. } => "does `kubectl kustomize DIR` work?".into(),
        Error::ForbiddenEntry { .. }
        | Error::Unreadable { .. }
        | Error::Special { .. }
        | Error::StandardInputTwice
        | Error::GitStart { .. }
        | Error::KustomizeStart { .. } => return None,
    };
    Some(text)
}

/// The hint for a commit that is not in the history of `--require-ref`.
fn reference_hint(error: &Error) -> &'static str {
    match error {
        Error::NotInHistory { shallow: true, .. } => {
            "this is a shallow clone; fetch the history: `git fetch --unshallow`"
        }
        Error::NotInHistory { shallow: false, .. } => {
            "have it reviewed and merged, then plan again"
        }
        _ => "fetch it first (`git fetch`), or name another with `--require-ref`",
    }
}

/// A path, quoted for a shell.
fn quoted(path: &str) -> std::borrow::Cow<'_, str> {
    shlex::try_quote(path).unwrap_or("FOLDER".into())
}
