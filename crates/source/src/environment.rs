//! What reading needs of the process: folders, standard input, git and kustomize.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Timeout of one call of `git`.
pub const FETCH_TIMEOUT: Duration = Duration::from_mins(5);

/// Timeout of kustomize.
pub const KUSTOMIZE_TIMEOUT: Duration = Duration::from_mins(1);

/// Settings of the process that reading depends on; nothing in this module reads them itself.
pub struct Environment<'a> {
    /// The folder that relative paths are resolved against.
    pub current_dir: PathBuf,
    /// `$XDG_CACHE_HOME` or `~/.cache`; fetched repositories go to `ds-plan/repositories` in it.
    pub cache_dir: Option<PathBuf>,
    /// Standard input; read to its end when `-` is requested.
    pub stdin: &'a mut dyn io::Read,
    /// What was read before from there and from pipes.
    pub streams: Streams,
    /// Settings for running git.
    pub git: Git,
    /// Settings for running kustomize.
    pub kustomize: Kustomize,
}

/// The content of standard input and of pipes of the shell, which can be read only once, while one command
/// may need them several times. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct Streams(Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>);

impl Streams {
    /// The content under this path, which is read the first time.
    pub(super) fn content<E>(
        &self,
        path: &Path,
        read: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        // What panics while it reads has inserted nothing.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = known.get(path) {
            return Ok(bytes.clone());
        }
        let bytes = read()?;
        known.insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

/// The user's own kustomize, or the one that is built into kubectl.
#[derive(Clone, Debug)]
pub struct Kustomize {
    /// `$PATH`, which is searched for the programs.
    pub search: Option<OsString>,
    /// Timeout of one rendering ([`KUSTOMIZE_TIMEOUT`]).
    pub timeout: Duration,
    /// Parses a file with exactly one YAML document as kubectl does; returns the problem otherwise.
    pub parse: fn(&[u8]) -> Result<serde_json::Value, String>,
}

/// The user's own git, which fetches URLs with the user's credentials and proxies.
#[derive(Clone, Debug)]
pub struct Git {
    /// `git`, or a path to it.
    pub program: OsString,
    /// The complete environment of git: that of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// `true` if git may ask for a password on the terminal.
    pub terminal: bool,
    /// Timeout of each call ([`FETCH_TIMEOUT`]).
    pub timeout: Duration,
}
