//! Errors of libgit2.

/// A message of libgit2, without its numeric class and code.
#[derive(Debug, thiserror::Error)]
#[error("{}", _0.message())]
pub struct GitFailure(git2::Error);

impl From<git2::Error> for GitFailure {
    fn from(error: git2::Error) -> Self {
        Self(error)
    }
}
