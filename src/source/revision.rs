//! Which commit a revision expression names, by git's own rules (`gitrevisions`).

use git2::{Commit, ErrorCode, ObjectType, Repository};

use super::{Error, shown};

/// The commit that `revision` names; `name` is the repository, for messages. Annotated tags are
/// followed to their commit.
pub(super) fn resolve<'r>(
    repository: &'r Repository,
    revision: &str,
    name: &str,
) -> Result<Commit<'r>, Error> {
    if revision.is_empty() {
        return Err(Error::RevisionInvalid { revision: String::new() });
    }
    let object = repository
        .revparse_single(revision)
        .map_err(|error| not_resolved(repository, revision, name, error))?;
    let kind = object.kind();
    object.peel_to_commit().map_err(|source| match kind {
        Some(ObjectType::Tree) => not_a_commit(revision, "folder"),
        Some(ObjectType::Blob) => not_a_commit(revision, "file"),
        Some(ObjectType::Tag) if source.code() == ErrorCode::Peel => {
            not_a_commit(revision, "tag of something else")
        }
        Some(ObjectType::Tag | ObjectType::Commit | ObjectType::Any) | None => {
            lookup_failed(revision, name, source)
        }
    })
}

/// The best common ancestor of two revisions.
pub(super) fn merge_base<'r>(
    repository: &'r Repository,
    one: &Commit<'_>,
    other: &str,
    names: (&str, &str),
) -> Result<Commit<'r>, Error> {
    let (revision, name) = names;
    let base = resolve(repository, other, name)?;
    let id = repository.merge_base(one.id(), base.id()).map_err(|source| match source.code() {
        ErrorCode::NotFound => Error::NoMergeBase {
            one: printable(revision),
            other: printable(other),
            repository: name.to_owned(),
        },
        _ => lookup_failed(other, name, source),
    })?;
    repository.find_commit(id).map_err(|source| lookup_failed(other, name, source))
}

/// A revision for messages.
pub(super) fn printable(revision: &str) -> String {
    shown::name(revision.as_bytes())
}

fn not_resolved(repository: &Repository, revision: &str, name: &str, source: git2::Error) -> Error {
    let (printable, name) = (printable(revision), name.to_owned());
    let unborn = || repository.head().is_err_and(|e| e.code() == ErrorCode::UnbornBranch);
    match source.code() {
        ErrorCode::Ambiguous => Error::RevisionAmbiguous { revision: printable, repository: name },
        ErrorCode::InvalidSpec => Error::RevisionInvalid { revision: printable },
        ErrorCode::UnbornBranch => Error::EmptyRepository { repository: name },
        ErrorCode::NotFound if revision.contains("..") => {
            Error::RevisionInvalid { revision: printable }
        }
        ErrorCode::NotFound if revision.starts_with("HEAD") && unborn() => {
            Error::EmptyRepository { repository: name }
        }
        ErrorCode::NotFound if repository.is_shallow() => {
            Error::RevisionBeyondShallow { revision: printable, repository: name }
        }
        ErrorCode::NotFound => Error::RevisionNotFound { revision: printable, repository: name },
        _ => lookup_failed(revision, &name, source),
    }
}

fn not_a_commit(revision: &str, kind: &'static str) -> Error {
    Error::NotACommit { revision: printable(revision), kind }
}

fn lookup_failed(revision: &str, name: &str, source: git2::Error) -> Error {
    Error::RevisionLookup { revision: printable(revision), repository: name.to_owned(), source }
}
