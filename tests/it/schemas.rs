//! The checked-in schemas match their types. `UPDATE_SCHEMAS=1` writes them again.

use std::fs;
use std::path::Path;

use render::{Document, schema};

#[test]
fn schemas_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let update = crate::is_set("UPDATE_SCHEMAS");
    for document in Document::ALL {
        let path = folder.join(format!("{}.schema.json", document.name()));
        let wanted = schema(document).unwrap();
        if update {
            fs::write(&path, &wanted).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == wanted,
            "{} does not match the types: run `UPDATE_SCHEMAS=1 cargo test --test it schemas`",
            path.display()
        );
    }
}

#[test]
fn there_is_no_other_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    let mut wanted = Document::ALL.map(|it| format!("{}.schema.json", it.name()));
    files.sort();
    wanted.sort();
    assert_eq!(files, wanted);
}
