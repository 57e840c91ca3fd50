//! Files that are kept between test runs: the built programs and the locks of ports in use.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The folder, created if needed: `$DS_PLAN_CONTROL_PLANE_CACHE`, else below the user's cache.
pub(crate) fn folder() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let folder = if let Some(own) = set("DS_PLAN_CONTROL_PLANE_CACHE") {
        PathBuf::from(own)
    } else {
        set("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))
            .expect(
                "no folder for the built control plane: set DS_PLAN_CONTROL_PLANE_CACHE or HOME",
            )
            .join("ds-plan/control-plane")
    };
    make(&folder);
    fs::canonicalize(&folder).expect("a new folder has a path")
}

/// Creates a folder and its parents.
pub(crate) fn make(folder: &Path) {
    fs::create_dir_all(folder)
        .unwrap_or_else(|err| panic!("cannot create the folder {}: {err}", folder.display()));
}

/// Opens a file to lock it; its content has no meaning.
pub(crate) fn lock_file(path: &Path) -> File {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .unwrap_or_else(|err| panic!("cannot open the lock {}: {err}", path.display()))
}
