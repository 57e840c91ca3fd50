//! Finds programs in the absolute folders of `$PATH` only. A relative or empty entry depends on the
//! current folder, which may be an untrusted repository.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// `path` without its relative and empty entries.
pub fn absolute(path: &OsStr) -> OsString {
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    // Entries of a split `$PATH` can always be joined again.
    env::join_paths(folders).unwrap_or_default()
}

/// The program of that name in the absolute folders of `path`.
pub fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    let mut folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_entries_do_not_count() {
        for (path, wanted) in [
            ("/usr/bin:/bin", "/usr/bin:/bin"),
            (".:/bin", "/bin"),
            (":/bin:", "/bin"),
            ("bin:./bin:../bin", ""),
            ("", ""),
        ] {
            assert_eq!(absolute(OsStr::new(path)), wanted, "{path}");
        }
        assert_eq!(find(OsStr::new(".:src"), "lib.rs"), None);
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        assert_eq!(find(OsStr::new(here), "lib.rs"), Some(PathBuf::from(here).join("lib.rs")));
    }
}
