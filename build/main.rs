//! The build script: tells the programs their version, with the commit in programs that are
//! released. It depends on the commit alone, so builds of one commit are equal.

mod commit;

use std::path::Path;

/// Names the commit where there is no repository, as in the build of an image.
const COMMIT: &str = "DS_PLAN_COMMIT";

#[expect(clippy::print_stdout, reason = "cargo reads the answers there")]
fn main() {
    // Not `env!`: checkouts that share a target folder also share the compiled build script.
    let folder = variable("CARGO_MANIFEST_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    if let Some(log) = commit::log_of_head(folder).filter(|_| is_release()) {
        println!("cargo::rerun-if-changed={log}");
    }
    let version = env!("CARGO_PKG_VERSION");
    match commit(folder) {
        Some(commit) => println!("cargo::rustc-env=DS_PLAN_VERSION={version} ({commit})"),
        None => println!("cargo::rustc-env=DS_PLAN_VERSION={version}"),
    }
}

fn commit(folder: &Path) -> Option<String> {
    let named = variable(COMMIT).and_then(|id| commit::short(&id));
    // Other builds leave it out: everything would be compiled again after each commit.
    let checked_out = || is_release().then(|| commit::of_repository(folder)).flatten();
    named.or_else(|| commit::of_package(folder)).or_else(checked_out)
}

fn is_release() -> bool {
    variable("PROFILE").is_some_and(|profile| profile == "release")
}

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by variables")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
