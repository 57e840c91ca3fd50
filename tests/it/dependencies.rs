//! Each dependency has a reason in `docs/src/dependencies.md` and is used; one place has unsafe
//! code. Each package that is published carries the licences.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::rust_files;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Dependencies that no code names, each for the reason that the comment in its `Cargo.toml` has.
const UNNAMED: [(&str, &str); 1] = [("crates/cluster", "k8s-openapi")];

/// The names below the headings of a `Cargo.toml` that `wanted` accepts.
fn dependencies(manifest: &str, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut heading = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(text) = line.strip_prefix('[') {
            heading = text.trim_end_matches(']');
        } else if wanted(heading)
            && let Some(end) = line.find([' ', '.'])
            && line.starts_with(|first: char| first.is_ascii_lowercase())
        {
            found.insert(line[..end].to_owned());
        }
    }
    found
}

fn is_dev(heading: &str) -> bool {
    heading.ends_with("dev-dependencies")
}

fn is_normal(heading: &str) -> bool {
    heading.ends_with("dependencies") && !is_dev(heading) && heading != "workspace.dependencies"
}

fn text(path: &str) -> String {
    let found = fs::read_to_string(Path::new(ROOT).join(path));
    found.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The folder of each package, from the root.
fn packages() -> Vec<String> {
    let crates = fs::read_dir(Path::new(ROOT).join("crates")).unwrap();
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> = names.map(|name| format!("crates/{name}")).collect();
    found.sort();
    found.insert(0, ".".to_owned());
    found
}

/// The packages that are published: that of tests is part of no program.
fn published() -> impl Iterator<Item = String> {
    packages().into_iter().filter(|package| package != "crates/testkit")
}

#[test]
fn each_published_package_carries_the_licences() {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let licence = text(name);
        for package in published() {
            let copy = text(&format!("{package}/{name}"));
            assert!(copy == licence, "{package}/{name} is not that of the root");
        }
    }
}

#[test]
fn each_dependency_has_a_reason() {
    // Ours are described in ARCHITECTURE.md.
    let ours = |name: &str| Path::new(ROOT).join("crates").join(name).is_dir();
    let root = text("Cargo.toml");
    let named = dependencies(&root, |heading| heading == "workspace.dependencies");
    let mut of_programs = BTreeSet::new();
    for package in published() {
        of_programs.extend(dependencies(&text(&format!("{package}/Cargo.toml")), is_normal));
    }
    let wanted = named.iter().filter(|name| !ours(name)).map(|name| {
        let of = if of_programs.contains(name) { "programs" } else { "tests" };
        (name.clone(), of.to_owned())
    });
    let page = text("docs/src/dependencies.md");
    let (_, table) = page.split_once("| Dependency | Of | Reason |\n|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|')).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, of, reason] = cells[..] else { panic!("{line}") };
        assert!(reason.contains(' ') || reason.len() > 3, "{line}");
        (name.to_owned(), of.to_owned())
    });
    let (wanted, rows): (Vec<_>, Vec<_>) = (wanted.collect(), rows.collect());
    assert_eq!(rows, wanted, "docs/src/dependencies.md (left) and Cargo.toml (right)");
}

/// The Rust files below some folders of a package.
fn files_of(package: &str) -> Vec<PathBuf> {
    let folder = Path::new(ROOT).join(package);
    let folders = ["src", "tests", "benches", "examples", "build"];
    rust_files::below(folders.map(|name| folder.join(name)))
}

/// The examples in a package's README, which run as its tests.
fn examples_of(package: &str) -> String {
    let readme = fs::read_to_string(Path::new(ROOT).join(package).join("README.md"));
    let readme = readme.unwrap_or_default();
    let blocks = readme.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect()
}

/// The words of a code, without its comments.
fn words(code: &str) -> BTreeSet<&str> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split(|it: char| !it.is_alphanumeric() && it != '_')).collect()
}

#[test]
fn each_dependency_is_used() {
    let mut unused = BTreeSet::new();
    for package in packages() {
        let manifest = text(&format!("{package}/Cargo.toml"));
        let sources = files_of(&package);
        let sources = sources.iter().map(|file| fs::read_to_string(file).unwrap());
        let code: Vec<String> = sources.chain([examples_of(&package)]).collect();
        let used: BTreeSet<&str> = code.iter().flat_map(|code| words(code)).collect();
        for name in dependencies(&manifest, |heading| is_normal(heading) || is_dev(heading)) {
            if !used.contains(name.replace('-', "_").as_str()) {
                unused.insert((package.clone(), name));
            }
        }
    }
    let unused: Vec<(&str, &str)> =
        unused.iter().map(|(package, name)| (package.as_str(), name.as_str())).collect();
    assert_eq!(unused, UNNAMED);
}

#[test]
fn only_an_option_of_the_allocator_is_set_by_unsafe_code() {
    let root = text("Cargo.toml");
    assert!(root.contains("\nunsafe_code = \"deny\"\n"), "the lint of all crates");
    let mut uses =
        ["{", "fn ", "impl ", "trait ", "extern "].map(|it| ["unsafe", it].join(" ")).to_vec();
    uses.push(["#[", "unsafe("].concat());
    let (mut files, mut places) = (0, Vec::new());
    for package in packages() {
        let manifest = text(&format!("{package}/Cargo.toml"));
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{package}");
        for file in files_of(&package) {
            files += 1;
            let code = fs::read_to_string(&file).unwrap();
            let lines = code.lines().filter(|line| uses.iter().any(|it| line.contains(it)));
            let name = file.file_name().unwrap().display();
            places.extend(lines.map(|line| format!("{package}: {name}: {}", line.trim())));
        }
    }
    // Spelled so that this file is not found.
    let one = [".: ds-plan.rs: unsafe", "{"].join(" ");
    assert_eq!(places, [one]);
    assert!(files > 500, "only {files} files: have the crates moved?");
}

#[test]
fn dependencies_are_found_in_a_manifest() {
    let manifest = "[package]\nname = \"a\"\n\n[dependencies]\nb.workspace = true\n# c = 1\n\
                    [dev-dependencies]\nd = { workspace = true }\n\
                    [target.'cfg(unix)'.dependencies]\ne-f.workspace = true\n";
    let names = |wanted: fn(&str) -> bool| Vec::from_iter(dependencies(manifest, wanted));
    assert_eq!(names(is_normal), ["b", "e-f"]);
    assert_eq!(names(is_dev), ["d"]);
}
