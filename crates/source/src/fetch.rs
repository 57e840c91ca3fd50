//! Fetches one commit of a URL with git, at depth 1, into a cached bare repository that is never
//! checked out.
//!
//! First, `git ls-remote` resolves a branch or tag by its exact name; then that object is fetched
//! by its id, unless the cached copy has it. A server that does not serve commits by id, and an
//! abbreviated id, need all branches and tags with their history: the second attempt. Not here: the
//! cached copy (`cache`), running git (`client`), the rules for URLs (`location`).

use std::fs::File;
use std::ops::RangeInclusive;

use git2::{ErrorCode, Oid, Repository};

use super::location::Remote;
use super::{Environment, Error, ReferenceName, reference, revision};
use crate::error::{FetchError, RevisionError};
use cache::Cache;
use client::Client;

mod cache;
mod client;
#[cfg(test)]
mod http_backend;
mod login;
#[cfg(test)]
mod tests;

/// A depth larger than any history; unlike `--unshallow` it is valid on a complete copy too.
const WHOLE_HISTORY: &str = "--depth=2147483647";

/// Reference in the cached copy for the last required reference.
const REQUIRED: &str = "refs/ds-plan/required";

/// A fetched commit in a local repository.
pub(super) struct Fetched {
    /// The cached copy.
    pub(super) repository: Repository,
    /// The commit, or an annotated tag of it.
    pub(super) commit: Oid,
    /// The lock that keeps other runs from changing the copy while it is read.
    pub(super) lock: File,
}

/// Updates the cached copy to what `revision` is on the server now, and checks that it is in the
/// history of the required reference, if there is one.
pub(super) fn fetch(
    remote: &Remote,
    (revision, require_ref): (&str, Option<&ReferenceName>),
    environment: &Environment<'_>,
) -> Result<Fetched, Error> {
    check(revision)?;
    let (cache, lock) = Cache::lock(remote, environment)?;
    let repository = cache.open()?;
    let client = Client { git: &environment.git, remote, cache: &cache };
    let commit = if is_id(revision, FULL_ID..=FULL_ID) {
        full_id(&client, &repository, revision)?
    } else if let Some(id) = client.resolve(revision)? {
        if !holds(&repository, id) {
            by_id(&client, id)?;
        }
        id
    } else if is_id(revision, SHORTEST_ID..=FULL_ID) {
        from_history(&client, &repository, revision)?
    } else {
        return Err(not_found(remote, revision));
    };
    if let Some(reference) = require_ref {
        require(&client, commit, reference)?;
    }
    // Opened again: libgit2 reads the shallow boundary only once.
    let repository = cache.open()?;
    Ok(Fetched { repository, commit, lock })
}

/// Hexadecimal digits of a full object id.
const FULL_ID: usize = 40;
/// Minimum digits of an abbreviated id (upstream: `MINIMUM_ABBREV`).
const SHORTEST_ID: usize = 4;

/// Rejects a revision that does not name exactly one object on the server, before git sees it.
fn check(revision: &str) -> Result<(), Error> {
    let printable = revision::printable(revision);
    let invalid = revision.is_empty()
        || revision.starts_with('-')
        || revision.contains("..")
        || revision.chars().any(|c| c.is_control() || c.is_whitespace() || "*?[\\".contains(c));
    if invalid {
        return Err(Error::from(RevisionError::Invalid { revision: printable }));
    }
    if revision.contains(['~', '^', ':', '{']) {
        return Err(Error::from(RevisionError::OfUrl { revision: printable }));
    }
    Ok(())
}

/// The reference that marks an object as completely fetched. Git writes it last, so an interrupted
/// fetch leaves none.
fn mark(id: Oid) -> String {
    format!("refs/ds-plan/{id}")
}

fn holds(repository: &Repository, id: Oid) -> bool {
    repository.refname_to_id(&mark(id)).is_ok_and(|marked| marked == id)
}

fn by_id(client: &Client<'_>, id: Oid) -> Result<(), Error> {
    client.fetch(&["--depth=1", "--no-prune"], &[format!("+{id}:{}", mark(id))])
}

/// A commit by its full id: from the copy, from the server, or from the history of all branches if
/// the server does not serve commits by id.
fn full_id(client: &Client<'_>, repository: &Repository, revision: &str) -> Result<Oid, Error> {
    let id = Oid::from_str(revision).map_err(|_| not_found(client.remote, revision))?;
    if holds(repository, id) {
        return Ok(id);
    }
    match by_id(client, id) {
        Ok(()) => Ok(id),
        Err(Error::Fetch(FetchError::Failed { .. })) => from_history(client, repository, revision),
        Err(error) => Err(error),
    }
}

/// Rejects a commit that is not in the history of the reference as it is on the server now.
fn require(client: &Client<'_>, commit: Oid, reference: &ReferenceName) -> Result<(), Error> {
    client.fetch(&[WHOLE_HISTORY, "--no-prune"], &[format!("+{reference}:{REQUIRED}")])?;
    let repository = client.cache.open()?;
    let name = &client.remote.shown;
    let failed = |source| revision::lookup_failed(reference.as_str(), name, source);
    let object = repository.find_object(commit, None).map_err(failed)?;
    let commit = object.peel_to_commit().map_err(failed)?;
    let tip = repository.find_reference(REQUIRED).and_then(|it| it.peel_to_commit());
    let tip = tip.map_err(failed)?;
    reference::in_history(&repository, commit.id(), tip.id(), reference, name)
}

/// Fetches all branches and tags with their history, and looks up the object there.
fn from_history(
    client: &Client<'_>,
    repository: &Repository,
    revision: &str,
) -> Result<Oid, Error> {
    let all = ["heads", "tags"].map(|kind| format!("+refs/{kind}/*:refs/remote/{kind}/*"));
    client.fetch(&[WHOLE_HISTORY, "--prune"], &all)?;
    let object = repository.revparse_single(revision).map_err(|error| match error.code() {
        ErrorCode::Ambiguous => Error::from(RevisionError::Ambiguous {
            revision: revision.to_owned(),
            repository: client.remote.shown.clone(),
        }),
        _ => not_found(client.remote, revision),
    })?;
    Ok(object.id())
}

fn is_id(revision: &str, digits: RangeInclusive<usize>) -> bool {
    digits.contains(&revision.len()) && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn not_found(remote: &Remote, revision: &str) -> Error {
    let revision = revision::printable(revision);
    Error::from(RevisionError::NotFound { revision, repository: remote.shown.clone() })
}
