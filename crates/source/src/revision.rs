//! Resolves revision expressions to commits, by git's own rules (`gitrevisions`).

use git2::{Commit, ErrorCode, ObjectType, Repository};

use super::{Error, shown};
use crate::error::RevisionError;

/// The commit of `revision`; `name` is the repository, for messages. Annotated tags are peeled to
/// their commit.
pub(super) fn resolve<'r>(
    repository: &'r Repository,
    revision: &str,
    name: &str,
) -> Result<Commit<'r>, Error> {
    if revision.is_empty() {
        return Err(Error::from(RevisionError::Invalid { revision: String::new() }));
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

/// The commit of a branch or of another expression. A name is looked up as a remote branch, then as
/// a local branch, and only then by git's rules, which try tags first.
///
/// # Errors
/// The commit does not exist; also if the name begins with a remote's name and there is no such
/// remote branch.
pub(super) fn resolve_branch<'r>(
    repository: &'r Repository,
    revision: &str,
    name: &str,
) -> Result<Commit<'r>, Error> {
    let end = revision.find(['~', '^', '@', ':']).unwrap_or(revision.len());
    let (branch, rest) = revision.split_at(end);
    let exists = |reference: &str| repository.find_reference(reference).is_ok();
    let remote = format!("refs/remotes/{branch}");
    let local = format!("refs/heads/{branch}");
    let is_of_remote =
        branch.split_once('/').is_some_and(|(first, _)| repository.find_remote(first).is_ok());
    if exists(&remote) || is_of_remote {
        resolve(repository, &format!("{remote}{rest}"), name)
    } else if exists(&local) {
        resolve(repository, &format!("{local}{rest}"), name)
    } else {
        resolve(repository, revision, name)
    }
}

/// The best common ancestor of two revisions.
pub(super) fn merge_base<'r>(
    repository: &'r Repository,
    one: &Commit<'_>,
    other: &str,
    names: (&str, &str),
) -> Result<Commit<'r>, Error> {
    let (revision, name) = names;
    let base = resolve_branch(repository, other, name)?;
    let id = repository.merge_base(one.id(), base.id()).map_err(|source| match source.code() {
        ErrorCode::NotFound => Error::from(RevisionError::NoMergeBase {
            one: printable(revision),
            other: printable(other),
            repository: name.to_owned(),
        }),
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
        ErrorCode::Ambiguous => {
            Error::from(RevisionError::Ambiguous { revision: printable, repository: name })
        }
        ErrorCode::InvalidSpec => Error::from(RevisionError::Invalid { revision: printable }),
        ErrorCode::UnbornBranch => unborn_head(repository, name),
        ErrorCode::NotFound if revision.contains("..") => {
            Error::from(RevisionError::Invalid { revision: printable })
        }
        ErrorCode::NotFound if revision.starts_with("HEAD") && unborn() => {
            unborn_head(repository, name)
        }
        ErrorCode::NotFound if repository.is_shallow() => {
            Error::from(RevisionError::BeyondShallow { revision: printable, repository: name })
        }
        ErrorCode::NotFound => {
            Error::from(RevisionError::NotFound { revision: printable, repository: name })
        }
        _ => lookup_failed(revision, &name, source),
    }
}

/// The error for a `HEAD` on a branch without a commit; other branches may have some.
fn unborn_head(repository: &Repository, name: String) -> Error {
    let any = repository.references().is_ok_and(|mut all| all.next().is_some());
    if any {
        Error::UnbornBranch { repository: name }
    } else {
        Error::EmptyRepository { repository: name }
    }
}

fn not_a_commit(revision: &str, kind: &'static str) -> Error {
    Error::from(RevisionError::NotACommit { revision: printable(revision), kind })
}

pub(super) fn lookup_failed(revision: &str, name: &str, source: git2::Error) -> Error {
    let (revision, repository) = (printable(revision), name.to_owned());
    Error::from(RevisionError::Lookup { revision, repository, source: source.into() })
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Fixture, names, revision};
    use crate::{Error, GitRequest, Instead, Read, Request};

    /// A history of two commits with a branch, tags and a remote.
    fn history() -> Fixture {
        let fixture = Fixture::with_repository();
        fixture.commit(&["a.yaml"], "one");
        fixture.git("work", &["tag", "light"]);
        fixture.git("work", &["tag", "--annotate", "--message=x", "v1"]);
        fixture.git("work", &["tag", "--annotate", "--message=x", "of-file", "HEAD:a.yaml"]);
        fixture.git("work", &["update-ref", "refs/remotes/origin/main", "HEAD"]);
        fixture.git("work", &["update-ref", "refs/pull/7/head", "HEAD"]);
        fixture.commit(&["b.yaml"], "two");
        fixture
    }

    fn read_at(fixture: &Fixture, expression: &str) -> Result<Read, Error> {
        fixture.read_in("work", &revision(".", expression))
    }

    fn message(fixture: &Fixture, result: Result<Read, Error>) -> String {
        let text = result.unwrap_err().to_string();
        text.replace(fixture.path("").to_str().unwrap(), "/")
    }

    #[test]
    fn expressions_mean_what_they_mean_to_git() {
        let fixture = history();
        let id = fixture.git("work", &["rev-parse", "HEAD~1"]);
        for expression in [
            "HEAD~1",
            "HEAD^",
            "@~",
            "main~1",
            "light",
            "v1",
            "v1^{commit}",
            "tags/v1",
            "refs/tags/v1",
            "origin/main",
            "refs/pull/7/head",
            "HEAD@{1}",
            ":/one",
            &id,
            &id[..7],
        ] {
            let read = read_at(&fixture, expression).unwrap();
            assert_eq!(names(&read), ["a.yaml"], "{expression}");
            let commit = read.origin.commit.unwrap();
            assert_eq!((commit.id, commit.subject.as_str()), (id.clone(), "one"), "{expression}");
        }
        assert_eq!(names(&read_at(&fixture, "main").unwrap()), ["a.yaml", "b.yaml"]);
    }

    #[test]
    fn expressions_that_name_no_commit() {
        let fixture = history();
        for (expression, expected) in [
            ("", "`` does not name one revision"),
            ("nonsense", "revision `nonsense` not found in `/work`"),
            ("-x", "revision `-x` not found in `/work`"),
            ("HEAD~9", "revision `HEAD~9` not found in `/work`"),
            ("0123456789", "revision `0123456789` not found in `/work`"),
            ("main..light", "`main..light` does not name one revision"),
            ("main...light", "`main...light` does not name one revision"),
            ("HEAD:a.yaml", "revision `HEAD:a.yaml` is a file, not a commit"),
            ("HEAD^{tree}", "revision `HEAD^{tree}` is a folder, not a commit"),
            ("of-file", "revision `of-file` is a tag of something else, not a commit"),
            ("a\0b", "cannot look up `a\\u{0}b` in `/work`"),
            ("HEAD^{", "`HEAD^{` does not name one revision"),
            ("\u{1b}[2J", "`\\u{1b}[2J` does not name one revision"),
        ] {
            assert_eq!(message(&fixture, read_at(&fixture, expression)), expected);
        }
    }

    #[test]
    fn a_short_id_of_two_objects_is_ambiguous() {
        let fixture = Fixture::with_commit(&["a.yaml"]);
        let repository = git2::Repository::open(fixture.path("work")).unwrap();
        let mut seen = std::collections::HashSet::new();
        let short = (0..=100_000)
            .map(|n: u32| repository.blob(n.to_string().as_bytes()).unwrap().to_string())
            .map(|id| id[..4].to_owned())
            .find(|short| !seen.insert(short.clone()))
            .unwrap();
        let expected = format!("revision `{short}` is ambiguous in `/work`");
        assert_eq!(message(&fixture, read_at(&fixture, &short)), expected);
    }

    #[test]
    fn a_repository_without_a_commit() {
        let fixture = Fixture::with_repository();
        for expression in ["HEAD", "HEAD~1"] {
            let expected = "the git repository `/work` has no commit";
            assert_eq!(message(&fixture, read_at(&fixture, expression)), expected);
        }
        let expected = "revision `main` not found in `/work`";
        assert_eq!(message(&fixture, read_at(&fixture, "main")), expected);
        fixture.commit(&[], "one");
        fixture.git("work", &["checkout", "--quiet", "--orphan", "new"]);
        let expected = "`HEAD` of `/work` is a branch without a commit";
        assert_eq!(message(&fixture, read_at(&fixture, "HEAD")), expected);
        assert!(read_at(&fixture, "main").is_err_and(|error| error.to_string().starts_with("no ")));
    }

    #[test]
    fn a_shallow_clone_has_no_history() {
        let fixture = history();
        let work = format!("file://{}", fixture.path("work").display());
        fixture.git("", &["clone", "--quiet", "--depth=1", &work, "shallow"]);
        let read = fixture.read_in("shallow", &revision(".", "HEAD")).unwrap();
        assert_eq!(names(&read), ["a.yaml", "b.yaml"]);
        let result = fixture.read_in("shallow", &revision(".", "HEAD~1"));
        let expected = "revision `HEAD~1` not found in `/shallow`, which is a shallow clone";
        assert_eq!(message(&fixture, result), expected);
    }

    fn merge_base(one: &str, other: &str) -> Request {
        let (revision, instead) = (Some(one.to_owned()), Instead::MergeBase(other.to_owned()));
        Request::Git(GitRequest { revision, instead: Some(instead), ..GitRequest::default() })
    }

    #[test]
    fn the_merge_base_is_where_two_revisions_parted() {
        let fixture = history();
        fixture.git("work", &["checkout", "--quiet", "-b", "topic", "HEAD~1"]);
        fixture.commit(&["c.yaml"], "three");
        let read = fixture.read_in("work", &merge_base("topic", "main")).unwrap();
        assert_eq!(names(&read), ["a.yaml"]);
        assert_eq!(read.origin.commit.unwrap().subject, "one");

        fixture.git("work", &["checkout", "--quiet", "--orphan", "apart"]);
        fixture.commit(&[], "four");
        for (one, other, expected) in [
            ("apart", "main", "revisions `apart` and `main` have no common ancestor in `/work`"),
            ("main", "nonsense", "revision `nonsense` not found in `/work`"),
        ] {
            let result = fixture.read_in("work", &merge_base(one, other));
            assert_eq!(message(&fixture, result), expected);
        }
    }
}
