//! Programs that Go builds for a test, at the versions that the modules in `tests/pipelines` pin.

use std::path::Path;
use std::process::Command;

/// Builds a package of the module of this name to this path. Go rebuilds only if needed.
pub(crate) fn build(module: &str, package: &str, output: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-o"])
        .arg(output)
        .arg(package)
        .current_dir(root.join("tests/pipelines").join(module))
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output()
        .unwrap_or_else(|error| panic!("this test builds {module} with Go: {error}"));
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}
