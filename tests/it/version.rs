//! The commit in `--version`, which the build script finds.

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
