//! Upstream's own Go code, for comparisons: the programs next to the control plane's `go.mod`, and
//! the module's sources.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_plane/tools/kubernetes")
}

/// The output of the program in `folder` of the Go module after reading `input`.
#[track_caller]
pub(crate) fn ask(folder: &str, input: &str) -> String {
    let mut go = Command::new("go")
        .current_dir(module())
        .args(["run", &format!("./{folder}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Go is installed");
    let mut stdin = go.stdin.take().expect("stdin is a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = go.wait_with_output().expect("go is our own child");
    writer.join().expect("writing does not panic").expect("the program reads all");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

/// The folder of the sources of `k8s.io/kubernetes`.
#[track_caller]
pub(crate) fn kubernetes_sources() -> PathBuf {
    let output = Command::new("go")
        .current_dir(module())
        .args(["list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"])
        .output()
        .expect("Go is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}
