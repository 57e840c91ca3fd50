//! Full names of references (`refs/heads/main`), and the check that a commit is in the history of
//! one.
//!
//! A full name is unambiguous. A short one is looked up in several places, tags first, so anyone
//! who may push a tag could decide what it means.

use std::fmt;
use std::str::FromStr;

use git2::{Commit, ErrorCode, Oid, Reference, Repository};

use super::{Error, revision};
use crate::error::RevisionError;

/// The full name of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceName(String);

impl ReferenceName {
    /// The name as git writes it.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ReferenceName {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name.starts_with("refs/") && Reference::is_valid_name(name) {
            return Ok(Self(name.to_owned()));
        }
        Err("pass the full name of a reference, such as refs/heads/main or \
             refs/remotes/origin/main")
    }
}

impl fmt::Display for ReferenceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Rejects a commit that is not in the history of `reference` in this repository; `name` is the
/// repository for messages.
pub(super) fn require(
    repository: &Repository,
    commit: &Commit<'_>,
    reference: &ReferenceName,
    name: &str,
) -> Result<(), Error> {
    let found = repository.find_reference(reference.as_str());
    let tip =
        found.and_then(|found| found.peel_to_commit()).map_err(|source| match source.code() {
            ErrorCode::NotFound => Error::from(RevisionError::ReferenceNotFound {
                reference: reference.to_string(),
                repository: name.to_owned(),
            }),
            _ => revision::lookup_failed(reference.as_str(), name, source),
        })?;
    in_history(repository, commit.id(), tip.id(), reference, name)
}

/// Rejects a commit that is neither the tip of a reference nor an ancestor of it.
pub(super) fn in_history(
    repository: &Repository,
    commit: Oid,
    tip: Oid,
    reference: &ReferenceName,
    name: &str,
) -> Result<(), Error> {
    let after = || repository.graph_descendant_of(tip, commit);
    let found = commit == tip
        || after().map_err(|source| revision::lookup_failed(reference.as_str(), name, source))?;
    if found {
        return Ok(());
    }
    Err(Error::from(RevisionError::NotInHistory {
        commit: commit.to_string(),
        reference: reference.to_string(),
        repository: name.to_owned(),
        shallow: repository.is_shallow(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, names};
    use crate::{GitRequest, Read, Request};

    #[test]
    fn only_full_names_are_accepted() {
        for (name, full) in [
            ("refs/heads/main", true),
            ("refs/remotes/origin/HEAD", true),
            ("main", false),
            ("heads/main", false),
            ("origin/main", false),
            ("HEAD", false),
            ("refs/heads/main~1", false),
            ("refs/heads/../tags/x", false),
            ("refs/heads/main^{commit}", false),
            ("refs/heads/*", false),
            ("", false),
        ] {
            assert_eq!(name.parse::<ReferenceName>().is_ok(), full, "{name}");
        }
    }

    fn read(fixture: &Fixture, folder: &str, commit: &str, reference: &str) -> Result<Read, Error> {
        let request = GitRequest {
            revision: Some(commit.to_owned()),
            require_ref: Some(reference.parse().unwrap()),
            ..GitRequest::default()
        };
        fixture.read_in(folder, &Request::Git(request))
    }

    #[test]
    fn commits_outside_of_the_history_are_rejected() {
        let fixture = Fixture::with_repository();
        let old = fixture.commit(&["a.yaml"], "one");
        let new = fixture.commit(&["b.yaml"], "two");
        fixture.git("work", &["tag", "--annotate", "--message=x", "v2"]);
        fixture.git("work", &["checkout", "--quiet", "-b", "topic", &old]);
        let other = fixture.commit(&["c.yaml"], "three");
        // A tag of the same short name changes nothing.
        fixture.git("work", &["tag", "main", &other]);
        for (commit, reference, says) in [
            (&old, "refs/heads/main", None),
            (&new, "refs/heads/main", None),
            (&new, "refs/tags/v2", None),
            (&other, "refs/heads/topic", None),
            (&other, "refs/heads/main", Some("is not in the history of refs/heads/main in `")),
            (&new, "refs/heads/topic", Some("is not in the history of refs/heads/topic in `")),
            (&new, "refs/heads/none", Some("reference refs/heads/none not found in `")),
        ] {
            let error = read(&fixture, "work", commit, reference).err();
            let error = error.map(|error| error.to_string());
            assert_eq!(error.is_some(), says.is_some(), "{reference}: {error:?}");
            assert!(error.unwrap_or_default().contains(says.unwrap_or_default()), "{reference}");
        }
    }

    #[test]
    fn a_shallow_clone_knows_its_tip_alone() {
        let fixture = Fixture::with_repository();
        let old = fixture.commit(&["a.yaml"], "one");
        let new = fixture.commit(&["b.yaml"], "two");
        let work = format!("file://{}", fixture.path("work").display());
        fixture.git("", &["clone", "--quiet", "--depth=1", &work, "shallow"]);
        fixture.git("shallow", &["fetch", "--quiet", "--depth=1", "origin", &old]);
        let reference = "refs/remotes/origin/main";
        assert_eq!(names(&read(&fixture, "shallow", &new, reference).unwrap()).len(), 2);
        let error = read(&fixture, "shallow", &old, reference).unwrap_err();
        assert!(
            matches!(error, Error::Revision(RevisionError::NotInHistory { shallow: true, .. })),
            "{error}"
        );
    }
}
