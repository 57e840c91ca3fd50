//! The build of the `Containerfile`, as far as a machine without containers can do it: the files
//! that it copies, and the command it runs, for the static target of its base image.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]
#![allow(clippy::disallowed_methods, reason = "tests may use the clock and the environment")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const CONTAINERFILE: &str = include_str!("../../Containerfile");

/// The folder of the built programs in the image.
const BUILT: &str = "/build/target/release/";

/// The lines of an instruction in a stage, without the instruction.
fn instructions<'a>(stage: &'a str, instruction: &str) -> Vec<&'a str> {
    stage.lines().filter_map(|line| line.strip_prefix(instruction)).map(str::trim).collect()
}

/// The output of a command; panics with its error and `help` if it fails.
fn output(command: &mut Command, help: &str) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}; {help}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}\n{help}");
    String::from_utf8(output.stdout).unwrap()
}

/// The files that the build stage copies, in a new folder.
fn copied(stage: &str, folder: &Path) {
    for line in instructions(stage, "COPY ") {
        let mut names: Vec<&str> = line.split_whitespace().collect();
        let to = folder.join(names.pop().unwrap());
        let from: Vec<PathBuf> = names.iter().map(|name| Path::new(ROOT).join(name)).collect();
        let mut copy = Command::new("cp");
        output(copy.arg("-r").args(from).arg(to), "`cp` copies what the image is built from");
    }
}

/// The target of the base image, built with the C compiler of Debian's `musl-tools`.
fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

#[test]
fn the_image_has_two_static_programs() {
    let (build, image) = CONTAINERFILE.split_once("\nFROM scratch\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    copied(build, folder.path());
    let command = *instructions(build, "RUN cargo ").last().unwrap();
    let target_folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(command.split_whitespace())
        .arg(format!("--target={}", target()))
        .env("CARGO_TARGET_DIR", &target_folder)
        .env(format!("CC_{}", target().replace('-', "_")), "musl-gcc")
        .current_dir(folder.path());
    let help =
        format!("it needs `rustup target add {}` and `apt-get install musl-tools`", target());
    output(&mut cargo, &help);

    let root = tempfile::tempdir().unwrap();
    let copy = instructions(image, "COPY --from=build ")[0];
    let programs: Vec<&str> =
        copy.split_whitespace().filter_map(|path| path.strip_prefix(BUILT)).collect();
    assert_eq!(programs, ["ds-plan", "ds-apply"]);
    for program in programs {
        let file = root.path().join(program);
        fs::copy(target_folder.join(target()).join("release").join(program), &file).unwrap();
        let headers =
            output(Command::new("readelf").arg("--program-headers").arg(&file), "binutils");
        assert!(!headers.contains("INTERP"), "{program} needs a loader: {headers}");
        let version = output(Command::new(&file).arg("--version").env_clear(), "");
        assert_eq!(version, format!("{program} {}\n", env!("CARGO_PKG_VERSION")));
    }
    // A whole plan, including threads, with an empty environment.
    let fleet = Path::new(ROOT).join("examples/fleet");
    let mut plan = Command::new(root.path().join("ds-plan"));
    plan.args(["-R", "-o", "name", "-f"]).arg(fleet.join("manifests"));
    plan.arg("--snapshot").arg(fleet.join("cluster.json")).env_clear();
    assert!(output(&mut plan, "").contains("kube-system/overlay-agent"));
}

/// Those of other packages are in the image of a release only.
#[test]
fn the_image_has_the_licences_of_the_project() {
    let (_, image) = CONTAINERFILE.split_once("\nFROM scratch\n").unwrap();
    let copies =
        instructions(image, "COPY ").into_iter().filter(|line| !line.starts_with("--from="));
    let words: Vec<&str> = copies.flat_map(str::split_whitespace).collect();
    let [apache, mit, "/"] = words[..] else { panic!("{words:?}") };
    for (name, own) in [(apache, "LICENSE-APACHE"), (mit, "LICENSE-MIT")] {
        assert!(name == own && Path::new(ROOT).join(name).is_file(), "{words:?}");
    }
}
