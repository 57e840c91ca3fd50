//! The commit in `--version`, which the build script finds, and the version that the documentation
//! names.

use std::fs;
use std::path::Path;

use testkit::sandbox::Sandbox;

// The build script, of which a test uses all but the log of HEAD.
#[expect(dead_code, reason = "cargo alone needs the file to watch")]
#[path = "../../build/commit.rs"]
mod commit;

#[test]
fn the_commit_is_that_of_the_repository_or_of_the_package() {
    let sandbox = Sandbox::with(&[("archive/Cargo.toml", "")]);
    let root = sandbox.path("");
    assert_eq!(commit::of_repository(&root), None, "no repository");
    assert_eq!(commit::of_package(&root), None);
    sandbox.commit();
    let found = commit::of_repository(&root).unwrap();
    assert_eq!(found.len(), 12);
    let archive = sandbox.path("archive");
    assert_eq!(commit::of_repository(&archive), None, "an archive within another repository");
    let id = "4f2c9e1d0b5a4f2c9e1d0b5a4f2c9e1d0b5a1234";
    let info = format!("{{\n  \"git\": {{\n    \"sha1\": \"{id}\"\n  }}\n}}");
    sandbox.write("archive/.cargo_vcs_info.json", info);
    assert_eq!(commit::of_package(&archive).as_deref(), Some("4f2c9e1d0b5a"));
    assert_eq!(commit::short("not an id, but long enough"), None);
}

/// The versions of ds-plan that a page names: all with three numbers, except in what commands print,
/// which has those of images and servers.
fn versions(page: &str) -> Vec<&str> {
    let texts = page.split("```").filter(|text| !text.starts_with("console\n$ "));
    let is_end = |it: char| !it.is_ascii_alphanumeric() && it != '.';
    let words = texts.flat_map(|text| text.split(is_end));
    let is_version = |word: &&str| {
        let numbers = word.split('.');
        numbers.clone().count() == 3 && numbers.clone().all(|it| it.parse::<u32>().is_ok())
    };
    words.map(|word| word.trim_matches('.').trim_start_matches('v')).filter(is_version).collect()
}

#[test]
fn an_old_version_is_found_in_a_page() {
    let page = "Unpack `ds-plan-0.0.9-x86_64-unknown-linux-musl.tar.gz`. It is 0.0.8.\n\
                ```text\npodman pull ghcr.io/octo/ds-plan:v0.0.7\n```\n\
                ```console\n$ ds-plan\nagent:1.2.3\n```\nRust 1.95 at 10.0.0.1:6443\n";
    assert_eq!(versions(page), ["0.0.9", "0.0.8", "0.0.7"]);
}

#[test]
fn the_documentation_names_this_version() {
    for (name, least) in [
        ("README.md", 3),
        ("docs/src/install.md", 9),
        ("docs/src/in-cluster.md", 1),
        ("docs/src/command-line.md", 1),
        ("examples/ci/gitlab/ds-plan.gitlab-ci.yml", 1),
    ] {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let page = fs::read_to_string(page).unwrap();
        let found = versions(&page);
        assert!(found.len() >= least, "{name}: only {found:?}");
        for version in found {
            assert_eq!(version, env!("CARGO_PKG_VERSION"), "{name}");
        }
    }
}
