//! A control plane's folder: its data, certificates, kubeconfigs and logs.
//!
//! A killed test process leaves its folder behind, with an etcd data directory of about 130 MB.
//! Each folder therefore contains a file that its owner has locked, and the process that creates
//! the next folder removes those whose lock is free.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::cache;

const PREFIX: &str = "ds-plan-control-plane-";
const LOCK: &str = "in-use";

/// The folder, removed on drop unless `DS_PLAN_CONTROL_PLANE_KEEP` is set.
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: Option<File>,
}

impl Scratch {
    /// Creates a folder; removes those of dead owners.
    pub(crate) fn new() -> Self {
        remove_abandoned(&env::temp_dir());
        let mut folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir()
            .expect("a temporary folder can be made");
        let keep = env::var_os("DS_PLAN_CONTROL_PLANE_KEEP").is_some();
        folder.disable_cleanup(keep);
        Self {
            // Without a lock file, no process removes the folder.
            _lock: (!keep).then(|| claim(folder.path())),
            folder,
        }
    }

    /// The folder's path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Marks a folder as used by this process. The name appears only after the lock is acquired.
fn claim(folder: &Path) -> File {
    let unnamed = folder.join("claiming");
    let lock = cache::lock_file(&unnamed);
    lock.lock().expect("the lock's file is open");
    fs::rename(unnamed, folder.join(LOCK)).expect("the folder is ours");
    lock
}

/// Removes the folders whose owners are dead.
fn remove_abandoned(parent: &Path) {
    for folder in folders(parent) {
        let Ok(lock) = File::open(folder.join(LOCK)) else {
            continue; // being created, or owned by another user
        };
        if lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// The control planes' folders in `parent`.
fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .map(|entry| entry.path())
        .collect()
}

#[test]
fn only_folders_of_dead_owners_are_removed() {
    let parent = tempfile::tempdir().unwrap();
    let new = |name: &str| {
        let folder = parent.path().join(format!("{PREFIX}{name}"));
        fs::create_dir(&folder).unwrap();
        folder
    };
    let (alive, dead, unclaimed) = (new("alive"), new("dead"), new("unclaimed"));
    let _held = claim(&alive);
    drop(claim(&dead));
    remove_abandoned(parent.path());
    assert_eq!([alive.exists(), dead.exists(), unclaimed.exists()], [true, false, true]);
}
