//! Reads the bytes of manifests: from git objects at a revision, as they are or rendered by
//! kustomize; from files and folders; from standard input.
//!
//! A commit is read object by object: no checkout, no hooks, no filters, no attributes. Symbolic
//! links and submodules are never followed. A folder with a `Chart.yaml` or a kustomization does
//! not contain complete objects; it is skipped and reported as [`Unrendered`].
//!
//! This module does not parse manifests. The caller's `wanted` decides by the bytes of each file
//! whether to keep it; that bounds memory on repositories with many other files. Not here: parsing
//! (`manifest`), hints for an error, reading the process's environment (the root package passes
//! it in [`Environment`]).

mod child;
mod disk;
mod environment;
mod error;
mod fetch;
mod file_collector;
#[cfg(test)]
mod fixture;
mod found;
mod git;
mod kustomize;
mod location;
mod objects;
mod redact;
mod reference;
mod repository;
mod request;
mod revision;
mod shown;
mod tree;
mod unrendered;
mod version;
mod warning;
mod worktree;

pub use child::wait as wait_for_child;
pub use environment::{Environment, FETCH_TIMEOUT, Git, KUSTOMIZE_TIMEOUT, Kustomize, Streams};
pub use error::{Error, FetchError, GitFailure, KustomizeError, RevisionError};
pub use found::{Commit, FILE_LIMIT, Origin, Read};
pub use kustomize::problem::Problem as KustomizeProblem;
pub use reference::ReferenceName;
pub use request::{FileName, GitRequest, Instead, Request, STANDARD_INPUT};
pub use unrendered::{Renderer, Unrendered};
pub use version::FilesVersion;
pub use warning::Warning;

/// Reads the requested manifests and keeps the files whose bytes are `wanted`.
///
/// # Errors
/// The first problem; a part of the input is never returned. See [`Error`].
pub fn read(
    request: &Request,
    wanted: &dyn Fn(&[u8]) -> bool,
    environment: &mut Environment<'_>,
) -> Result<Read, Error> {
    match request {
        Request::Git(request) => git::read(request, wanted, environment),
        Request::Files { names, recursive } => disk::read(names, *recursive, wanted, environment),
    }
}
