//! Examples of the README, to be tested as they are shown.

use std::fs;

/// The README's first block of YAML with an object of this kind.
pub(crate) fn readmes_yaml(kind: &str) -> String {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let mut blocks = readme.split("```yaml\n").map(|rest| rest.split("```").next().unwrap());
    blocks.find(|block| block.contains(&format!("kind: {kind}\n"))).unwrap().to_owned()
}
