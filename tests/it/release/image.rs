//! The container image of a release, by the rules of the OCI image layout.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use testkit::sandbox::Sandbox;

use super::{VERSION, entries, finished};

/// The hexadecimal digest of these bytes.
fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The content of the blob that a descriptor means, which has that digest and size.
fn blob(layout: &Path, descriptor: &Value) -> (PathBuf, Vec<u8>) {
    let name = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let file = layout.join("blobs/sha256").join(name);
    let bytes = fs::read(&file).unwrap();
    assert_eq!(digest(&bytes), name);
    assert_eq!(descriptor["size"], bytes.len());
    (file, bytes)
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_image_has_the_two_programs_and_their_licences_for_each_processor() {
    let release = finished();
    let sandbox = Sandbox::new();
    let layout = sandbox.path("");
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(release.path(&format!("ds-plan-{VERSION}-image.tar")));
    assert!(unpack.arg("-C").arg(&layout).status().unwrap().success());
    let top = json(&fs::read(layout.join("index.json")).unwrap());
    assert_eq!(top["manifests"][0]["digest"], release.printed.trim());
    let index = json(&blob(&layout, &top["manifests"][0]).1);
    let mut processors = BTreeSet::new();
    for described in index["manifests"].as_array().unwrap() {
        let manifest = json(&blob(&layout, described).1);
        let config = json(&blob(&layout, &manifest["config"]).1);
        assert_eq!(config["architecture"], described["platform"]["architecture"]);
        assert_eq!(config["config"]["Entrypoint"][0], "/ds-plan");
        assert_eq!(config["config"]["User"], "65533:65533");
        processors.insert(config["architecture"].as_str().unwrap().to_owned());
        let (layer, _) = blob(&layout, &manifest["layers"][0]);
        let files = entries(&layer);
        let [plan, apply, licences @ ..] = &files[..] else { panic!("{files:?}") };
        assert!(plan.starts_with("-rwxr-xr-x 0/0 ") && plan.ends_with(" ds-plan"), "{plan}");
        assert!(apply.starts_with("-rwxr-xr-x 0/0 ") && apply.ends_with(" ds-apply"), "{apply}");
        let [apache, mit, others] = licences else { panic!("{licences:?}") };
        assert!(licences.iter().all(|line| line.starts_with("-rw-r--r-- 0/0 ")), "{licences:?}");
        assert!(apache.ends_with(" LICENSE-APACHE") && mit.ends_with(" LICENSE-MIT"), "{files:?}");
        assert!(others.ends_with(" LICENSE-THIRD-PARTY"), "{others}");
        let unpacked = Command::new("gzip").arg("-dc").arg(&layer).output().unwrap().stdout;
        let diff = format!("sha256:{}", digest(&unpacked));
        assert_eq!(config["rootfs"]["diff_ids"][0], diff);
    }
    assert_eq!(processors, BTreeSet::from(["amd64", "arm64"].map(str::to_owned)));
}
