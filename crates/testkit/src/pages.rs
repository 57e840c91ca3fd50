//! README.md and the pages of the guide.

use std::fs;
use std::path::{Path, PathBuf};

/// README.md, then the pages of the guide by name; each with its text.
pub fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let guide = fs::read_dir(root.join("docs/src")).unwrap();
    let files = guide.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    paths.sort();
    paths.insert(0, root.join("README.md"));
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}
