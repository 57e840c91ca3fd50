//! Errors: a repository cannot be fetched.

use std::io;
use std::time::Duration;

use super::git::GitFailure;
/// A repository cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    // URLs.
    /// An invalid URL.
    #[error("`{url}` is not a usable repository URL: {reason}")]
    BadUrl {
        /// The URL, without credentials.
        url: String,
        /// The problem.
        reason: &'static str,
    },
    /// An unsupported protocol: `git://`, `ftp://`, `ext::` and the like.
    #[error("`{url}`: fetching by `{scheme}` is not supported")]
    UnsupportedScheme {
        /// The URL, without credentials.
        url: String,
        /// The protocol.
        scheme: String,
    },
    /// Unencrypted http to another machine.
    #[error("`{url}`: plain http is allowed only for loopback addresses")]
    PlainHttp {
        /// The URL, without credentials.
        url: String,
    },
    /// Neither `$XDG_CACHE_HOME` nor the home folder is set.
    #[error("no cache folder for fetched repositories")]
    NoCache,
    /// The cache folder cannot be read or written.
    #[error("cannot use the cache folder `{path}`")]
    Cache {
        /// Path of the folder or file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The cached copy cannot be opened, even after it was created again.
    #[error("cannot use the cached repository `{path}`")]
    CachedRepository {
        /// Folder of the repository.
        path: String,
        /// The cause.
        source: GitFailure,
    },
    /// Timeout while another run held the lock of the cached copy.
    #[error("another run is using the cached copy of `{url}`")]
    CacheBusy {
        /// The URL, without credentials.
        url: String,
    },
    /// Git is not installed.
    #[error("`{program}` is not installed; it is needed to fetch URLs")]
    GitMissing {
        /// Name or path of the program.
        program: String,
    },
    /// Git is installed but does not start.
    #[error("cannot run `{program}`")]
    GitStart {
        /// Name or path of the program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// Git was killed after its timeout.
    #[error("fetching `{url}` took more than {} s", after.as_secs())]
    Timeout {
        /// The URL, without credentials.
        url: String,
        /// The timeout.
        after: Duration,
    },
    /// The server requires credentials, or rejects those given.
    #[error("`{url}` refuses access: {output}")]
    Denied {
        /// The URL, without credentials.
        url: String,
        /// Last lines of git's output.
        output: String,
    },
    /// Git failed for another reason.
    #[error("cannot fetch `{url}`: {output}")]
    Failed {
        /// The URL, without credentials.
        url: String,
        /// Last lines of git's output.
        output: String,
    },
}
