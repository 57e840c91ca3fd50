//! A test file without a `mod` declaration would never run, and nobody would notice.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_test_file_is_declared() {
    for binary in ["it", "attacks", "control_plane", "real_nodes"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(binary);
        let undeclared = undeclared(&root, &root.join("main.rs"));
        assert!(undeclared.is_empty(), "no `mod` for {undeclared:?}");
    }
}

/// The Rust files below `folder` that their parent, `declaring` or a deeper one, does not declare.
fn undeclared(folder: &Path, declaring: &Path) -> Vec<PathBuf> {
    let parent = fs::read_to_string(declaring).unwrap_or_default();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(undeclared(&path, &path.with_extension("rs")));
        } else if path.extension().is_some_and(|it| it == "rs") && path != declaring {
            let module = path.file_stem().unwrap().to_str().unwrap();
            let line = format!("mod {module};");
            if !parent.lines().any(|it| it.trim_start_matches("pub(crate) ") == line) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn a_forgotten_file_is_found_at_any_depth() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let main = write("main.rs", "mod known;\n");
    write("known.rs", "");
    let forgotten = write("known/forgotten.rs", "");
    assert_eq!(undeclared(root.path(), &main), [forgotten]);
}
