//! The manifests of both kubectl plugins, validated and installed by krew itself, which Go builds at
//! the version that `tests/pipelines/krew` pins.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::sandbox::Sandbox;

use super::{finished, script};
use crate::go_tools;

/// The folder of `krew` and `validate-krew-manifest`.
fn programs() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("krew");
    fs::create_dir_all(&folder).unwrap();
    go_tools::build("krew", "tool", &folder);
    folder
}

#[test]
fn krew_accepts_and_installs_both_plugins() {
    let (release, programs, sandbox) = (finished(), programs(), Sandbox::new());
    for plugin in ["ds-plan", "ds-apply"] {
        let manifest = release.path(&format!("{plugin}.yaml"));
        let validate = |manifest: &Path| {
            let mut validate = script(&programs.join("validate-krew-manifest"), &[]);
            validate.arg("-skip-install").arg("-manifest").arg(manifest);
            sandbox.run(validate)
        };
        let run = validate(&manifest);
        assert_eq!(run.code, Some(0), "{run}");
        let text = fs::read_to_string(&manifest).unwrap();
        sandbox.write(&format!("broken/{plugin}.yaml"), text.replace("sha256: ", "sha256: 0"));
        let run = validate(&sandbox.path(&format!("broken/{plugin}.yaml")));
        assert!(run.code != Some(0) && run.stderr.contains("`sha256` value 0"), "{run}");

        let mut install = script(&programs.join("krew"), &["install".as_ref()]);
        install.arg(format!("--manifest={}", manifest.display()));
        install.arg(format!("--archive={}", release.archive().display()));
        install.env("KREW_ROOT", sandbox.path("krew"));
        let run = sandbox.run(install);
        assert_eq!(run.code, Some(0), "{run}");
        // kubectl starts a plugin by the name of the link.
        let link = sandbox.path(&format!("krew/bin/kubectl-{}", plugin.replace('-', "_")));
        let mut help = script(&link, &[]);
        help.arg("--help");
        let run = sandbox.run(help);
        assert!(run.stdout.contains(&format!("Usage: kubectl {plugin} ")), "{run}");
    }
}
