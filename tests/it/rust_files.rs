//! The Rust files of the project, for tests that read its code.

use std::fs;
use std::path::PathBuf;

/// All Rust files below these folders, of which some may not exist.
pub(crate) fn below(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), Vec::from_iter(folders));
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    files
}
