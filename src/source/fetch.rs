//! How one commit of a URL becomes a local repository: asked for by git, at depth 1, into a cached
//! bare copy that is never checked out.
//!
//! First `git ls-remote` says which object a branch or tag is, by exact name; then that object is
//! fetched by its id, unless the cached copy has it. A server that does not give out a commit by its
//! id, and a shortened id, need all branches and tags with their history: the second try.
//! Not here: the cached copy (`cache`), running git (`client`), which URLs are allowed (`location`).

use std::fs::File;
use std::ops::RangeInclusive;

use git2::{ErrorCode, Oid, Repository};

use super::location::Remote;
use super::{Error, ReferenceName, Surroundings, reference, revision};
use cache::Cache;
use client::Client;

mod cache;
mod client;
#[cfg(test)]
mod http_backend;
mod login;
#[cfg(test)]
mod tests;

/// Deeper than any history; on a complete copy it changes nothing, unlike `--unshallow`.
const WHOLE_HISTORY: &str = "--depth=2147483647";

/// Where the cached copy has the reference that was demanded last.
const REQUIRED: &str = "refs/ds-plan/required";

/// A commit that is now in a local repository.
pub(super) struct Fetched {
    /// The cached copy.
    pub(super) repository: Repository,
    /// The commit, or an annotated tag of it.
    pub(super) commit: Oid,
    /// Keeps other runs from changing the copy while it is read.
    pub(super) lock: File,
}

/// Makes sure that the cached copy has what `revision` is on the server now, and that this is in the
/// history of the reference, if one is demanded.
pub(super) fn fetch(
    remote: &Remote,
    (revision, require_ref): (&str, Option<&ReferenceName>),
    around: &Surroundings<'_>,
) -> Result<Fetched, Error> {
    check(revision)?;
    let (cache, lock) = Cache::lock(remote, around)?;
    let repository = cache.open()?;
    let client = Client { git: &around.git, remote, cache: &cache };
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
    // Opened anew: libgit2 reads where history was cut off only once.
    let repository = cache.open()?;
    Ok(Fetched { repository, commit, lock })
}

/// Hexadecimal digits of a whole object id.
const FULL_ID: usize = 40;
/// Fewer are not taken for an id (upstream: `MINIMUM_ABBREV`).
const SHORTEST_ID: usize = 4;

/// Refuses what is not the name of one thing on the server, before git sees it.
fn check(revision: &str) -> Result<(), Error> {
    let printable = revision::printable(revision);
    let invalid = revision.is_empty()
        || revision.starts_with('-')
        || revision.contains("..")
        || revision.chars().any(|c| c.is_control() || c.is_whitespace() || "*?[\\".contains(c));
    if invalid {
        return Err(Error::RevisionInvalid { revision: printable });
    }
    if revision.contains(['~', '^', ':', '{']) {
        return Err(Error::RevisionOfUrl { revision: printable });
    }
    Ok(())
}

/// Where the cached copy notes that an object and all it needs were fetched. Git writes it last, so
/// an interrupted fetch leaves none.
fn mark(id: Oid) -> String {
    format!("refs/ds-plan/{id}")
}

fn holds(repository: &Repository, id: Oid) -> bool {
    repository.refname_to_id(&mark(id)).is_ok_and(|marked| marked == id)
}

fn by_id(client: &Client<'_>, id: Oid) -> Result<(), Error> {
    client.fetch(&["--depth=1", "--no-prune"], &[format!("+{id}:{}", mark(id))])
}

/// A commit by its whole id: from the copy, from the server, or from a server that gives out
/// commits only with the branches that lead to them.
fn full_id(client: &Client<'_>, repository: &Repository, revision: &str) -> Result<Oid, Error> {
    let id = Oid::from_str(revision).map_err(|_| not_found(client.remote, revision))?;
    if holds(repository, id) {
        return Ok(id);
    }
    match by_id(client, id) {
        Ok(()) => Ok(id),
        Err(Error::Fetch { .. }) => from_history(client, repository, revision),
        Err(error) => Err(error),
    }
}

/// Refuses a commit that is not in the history of what the reference is on the server now.
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

/// Fetches all branches and tags with their history, and looks for the object there.
fn from_history(
    client: &Client<'_>,
    repository: &Repository,
    revision: &str,
) -> Result<Oid, Error> {
    let all = ["heads", "tags"].map(|kind| format!("+refs/{kind}/*:refs/remote/{kind}/*"));
    client.fetch(&[WHOLE_HISTORY, "--prune"], &all)?;
    let object = repository.revparse_single(revision).map_err(|error| match error.code() {
        ErrorCode::Ambiguous => Error::RevisionAmbiguous {
            revision: revision.to_owned(),
            repository: client.remote.shown.clone(),
        },
        _ => not_found(client.remote, revision),
    })?;
    Ok(object.id())
}

fn is_id(revision: &str, digits: RangeInclusive<usize>) -> bool {
    digits.contains(&revision.len()) && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn not_found(remote: &Remote, revision: &str) -> Error {
    let revision = revision::printable(revision);
    Error::RevisionNotFound { revision, repository: remote.shown.clone() }
}
