//! `LICENSE-THIRD-PARTY` of an archive: the licences of what is compiled into the programs, with the
//! texts that the sources of the packages have.
//!
//! Not here: which licences are accepted (`deny.toml`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{ROOT, VERSION, finished, native, release, script};

/// The file in the archive of this processor.
fn licences() -> String {
    let mut tar = Command::new("tar");
    tar.arg("-xOzf").arg(finished().archive());
    tar.arg(format!("ds-plan-{VERSION}-{}/LICENSE-THIRD-PARTY", native()));
    String::from_utf8(tar.output().unwrap().stdout).unwrap()
}

/// The folder with the sources of a package.
fn sources(name: &str) -> PathBuf {
    let arguments = ["metadata", "--locked", "--format-version", "1", "--filter-platform"];
    let mut cargo = script("cargo".as_ref(), &arguments.map(Path::new));
    let metadata = cargo.arg(native()).current_dir(ROOT).output().unwrap().stdout;
    let metadata: Value = serde_json::from_slice(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let found = packages.iter().find(|package| package["name"] == name).expect(name);
    Path::new(found["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

#[test]
fn the_licences_are_those_of_every_package_in_the_list_of_components() {
    let licences = licences();
    let file = finished().path(&format!("ds-plan-{VERSION}-{}.cdx.json", native()));
    let list: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let (mut packages, mut without) = (0, Vec::new());
    for component in list["components"].as_array().unwrap() {
        let [name, version, licence] =
            [&component["name"], &component["version"], &component["licenses"][0]["expression"]]
                .map(|it| it.as_str().unwrap());
        let entry = format!("\n\n{name} {version}\n    licence: {licence}\n");
        // The project's own are in the two other files.
        assert_eq!(
            licences.matches(&entry).count(),
            usize::from(!name.starts_with("ds-plan-")),
            "{entry}"
        );
        if let Some((_, entry)) = licences.split_once(&entry) {
            packages += 1;
            let (entry, _) = entry.split_once("\n\n").unwrap();
            if entry.ends_with("    texts: none in its sources") {
                without.push((name, licence));
            }
        }
    }
    assert!(packages > 100, "{packages}");
    // The text of this one is there, of other packages. MIT and BSD have a line of their own in each.
    assert!(without.iter().all(|(_, licence)| *licence == "Apache-2.0"), "{without:?}");
}

#[test]
fn the_licences_of_c_code_are_there_once_and_as_in_its_sources() {
    let licences = licences();
    for (package, file) in [
        ("libgit2-sys", "libgit2/COPYING"),
        ("libgit2-sys", "libgit2/deps/llhttp/LICENSE-MIT"),
        ("libgit2-sys", "libgit2/deps/pcre2/LICENCE.md"),
        ("libmimalloc-sys", "c_src/mimalloc/v3/LICENSE"),
        ("libz-sys", "src/zlib/LICENSE"),
        ("ring", "LICENSE-BoringSSL"),
        ("ring", "third_party/fiat/LICENSE"),
    ] {
        let text = fs::read_to_string(sources(package).join(file)).unwrap();
        let text = text.replace('\r', "");
        let text = format!("\n\n{}\n", text.trim_end_matches('\n'));
        assert_eq!(licences.matches(&text).count(), 1, "{file} of {package}");
        let holder = |line: &str| {
            line.strip_prefix("    ").is_some_and(|line| line.starts_with(&format!("{package} ")))
                && line.ends_with(&format!(": {file}"))
        };
        assert!(licences.lines().any(holder), "{file} of {package}");
    }
    let musl = fs::read_to_string(Path::new(ROOT).join("release/licences.musl")).unwrap();
    assert!(licences.contains(&musl), "the C library of static programs");
    assert!(!licences.contains("COPYING.GPL"), "code that is compiled only for Windows");
}

#[test]
fn licences_printed_by_hand_are_those_of_the_release() {
    let run = finished().sandbox.run(release("licences", &[native().as_ref()]));
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout == licences(), "the same bytes each time");
    for folder in [Path::new(ROOT), &sources("ring")] {
        assert!(!run.stdout.contains(folder.to_str().unwrap()), "no path of this machine");
    }
}
