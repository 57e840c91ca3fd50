//! The cached copies of fetched repositories: one bare repository for each URL, used by one run at
//! a time.
//!
//! The folder is only a cache: a damaged copy is removed and created again. Git adds to it in steps
//! that are safe against a crash (packs and references are renamed into place); leftovers of a
//! killed git are removed by the next run, which holds the lock and so knows that no other git is
//! running.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use git2::{Repository, RepositoryInitOptions};
use sha2::{Digest, Sha256};

use crate::error::FetchError;
use crate::location::Remote;
use crate::{Environment, Error, shown};

/// Each fetch adds a pack; a copy with this many is created again instead of repacked.
const PACKS: usize = 64;
const LOCK_POLL: Duration = Duration::from_millis(50);

/// The cached copy of one URL.
pub(super) struct Cache {
    /// The bare repository.
    pub(super) folder: PathBuf,
}

impl Cache {
    /// Waits until no other run uses the copy of this URL, at most for twice the timeout of a git
    /// call. The copy is locked until the file is dropped.
    pub(super) fn lock(
        remote: &Remote,
        environment: &Environment<'_>,
    ) -> Result<(Self, File), Error> {
        let all = environment.cache_dir.as_ref().ok_or(Error::from(FetchError::NoCache))?;
        let all = all.join("ds-plan").join("repositories");
        create_private(&all).map_err(|source| failed(&all, source))?;
        let name = digest(&remote.shown);
        let lock = all.join(format!("{name}.lock"));
        let file = File::options().create(true).append(true).open(&lock);
        let file = file.map_err(|source| failed(&lock, source))?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(&lock, source)),
                Err(TryLockError::WouldBlock) if waited > environment.git.timeout * 2 => {
                    return Err(Error::from(FetchError::CacheBusy { url: remote.shown.clone() }));
                }
                Err(TryLockError::WouldBlock) => {
                    thread::sleep(LOCK_POLL);
                    waited += LOCK_POLL;
                }
            }
        }
        let cache = Self { folder: all.join(format!("{name}.git")) };
        cache.sweep().map_err(|source| failed(&cache.folder, source))?;
        Ok((cache, file))
    }

    /// Opens the copy; creates an empty one if there is none, or if it cannot be opened.
    pub(super) fn open(&self) -> Result<Repository, Error> {
        if let Ok(repository) = Repository::open_bare(&self.folder) {
            return Ok(repository);
        }
        self.remove().map_err(|source| failed(&self.folder, source))?;
        let mut options = RepositoryInitOptions::new();
        // No template: it could bring hooks.
        options.bare(true).external_template(false).mkpath(true);
        Repository::init_opts(&self.folder, &options).map_err(|source| {
            Error::from(FetchError::CachedRepository {
                path: shown::path(&self.folder),
                source: source.into(),
            })
        })
    }

    /// Removes leftovers of a killed git (lock files and unfinished packs) and copies with too many
    /// packs.
    fn sweep(&self) -> io::Result<()> {
        let packs = self.folder.join("objects").join("pack");
        let is_lock = |name: &str| Path::new(name).extension().is_some_and(|e| e == "lock");
        let mut pack_count = 0;
        for (folder, is_left) in [
            (&self.folder, &is_lock as &dyn Fn(&str) -> bool),
            (&self.folder.join("refs").join("ds-plan"), &is_lock),
            (&packs, &|name: &str| name.starts_with("tmp_")),
        ] {
            for entry in list(folder)? {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if is_left(&name) {
                    fs::remove_file(entry.path())?;
                } else if name.ends_with(".pack") {
                    pack_count += 1;
                }
            }
        }
        if pack_count > PACKS { self.remove() } else { Ok(()) }
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// A folder's entries; none if there is no folder.
fn list(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Creates a folder with access for its user only: it contains copies of private repositories.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text);
    let number = digest.iter().take(16).fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
    format!("{number:032x}")
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::from(FetchError::Cache { path: shown::path(path), source })
}
