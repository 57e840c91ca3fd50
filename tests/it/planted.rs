//! All planted faults are in the list, and each is in the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ds_plan::planted::ALL;

#[test]
fn the_list_matches_the_code() {
    let mut found = BTreeSet::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if !path.ends_with("planted.rs") {
            found.extend(names(&fs::read_to_string(path).unwrap()));
        }
    }
    let listed: BTreeSet<String> = ALL.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(found, listed);
    assert_eq!(listed.len(), ALL.len(), "one is listed twice");
}

/// The names in `planted!`: the text before its arrow.
fn names(code: &str) -> Vec<String> {
    let calls = code.split("planted!(").skip(1);
    let name = |call: &str| {
        let (before, _) = call.split_once("\" =>").expect("an arrow after the name");
        before.rsplit('"').next().expect("text").to_owned()
    };
    calls.map(name).collect()
}
