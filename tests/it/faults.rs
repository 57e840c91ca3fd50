//! The faults of `tests/faults` fit the code: `.ci/faults` applies them to a copy of the tree, to show
//! that the laws of the simulation can fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn patches() -> Vec<PathBuf> {
    let folder = Path::new(ROOT).join("tests/faults");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_fault_says_what_is_wrong() {
    for path in patches() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let (sentence, diff) = text.split_once("\n\n").unwrap();
        assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{name}: {sentence}");
        assert!(diff.starts_with("--- a/"), "{name}");
        let is_plain = |it: char| it.is_ascii_lowercase() || it == '-';
        assert!(name.strip_suffix(".patch").unwrap().chars().all(is_plain), "{name}");
    }
}

#[test]
fn every_fault_fits_the_code() {
    let patches = patches();
    assert!(patches.len() > 40, "{}", patches.len());
    for path in patches {
        let mut git = Command::new("git");
        git.args(["apply", "--check"]).arg(&path).current_dir(ROOT);
        let done = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}: {error}", path.display());
    }
}
