//! The pictures of the guide, `docs/src/comment.png` and `page.png`: made from the example fleet by
//! `UPDATE_PICTURES=1 cargo test --all-features --test it pictures`.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::fleet::repository;
use crate::web::Program;

/// Maximum size of a picture, in bytes.
const MOST: usize = 150 * 1024;

#[derive(Debug, Deserialize, PartialEq)]
struct Size {
    width: u32,
    height: u32,
}

/// The size of a picture, from the header of the PNG.
fn size_of(png: &[u8]) -> Size {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    Size { width: number(16), height: number(20) }
}

#[test]
fn the_pictures_of_the_guide_are_made_from_the_example_fleet() {
    let fleet = "plan --path examples/fleet/manifests --snapshot examples/fleet/cluster.json";
    let repository = repository();
    let output = |format: &str| repository.ds_plan(&format!("{fleet} -o {format}")).stdout;
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(&page, output("html")).unwrap();
    let mut browser = Program::start("pictures.mjs");
    let pictures: [(&str, Value); 2] = [
        ("comment.png", json!({"markdown": output("markdown"), "width": 1000, "most": 720})),
        ("page.png", json!({"page": page, "width": 1200, "most": 1050})),
    ];
    for (name, mut job) in pictures {
        let made = folder.path().join(name);
        job["to"] = made.display().to_string().into();
        let size: Size = browser.ask(&job);
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src").join(name);
        if crate::is_set("UPDATE_PICTURES") {
            fs::copy(&made, &kept).unwrap();
        }
        let kept = fs::read(&kept).unwrap();
        assert!(kept.len() <= MOST, "{name}: {} bytes", kept.len());
        // Fonts differ between machines, so the pixels are not compared.
        assert_eq!(size_of(&kept).width, size.width, "{name}");
    }
}
