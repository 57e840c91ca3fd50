//! A running kustomize-controller, and the source that it applies.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{GitOps, install};
use crate::harness::go_build::{self, Tool};
use crate::harness::ports::Port;
use crate::harness::watchdog::{Watched, log_tail};
use crate::harness::{ControlPlane, Served, wait_until};

const PACKAGE: &str = "github.com/fluxcd/kustomize-controller";
const TOOL: [Tool; 1] = [Tool {
    folder: "flux",
    programs: &[("kustomize-controller", PACKAGE)],
    tags: "",
    cold: "4 minutes",
}];
/// The namespace of its own objects, and the name of both.
const NAMESPACE: &str = "flux-system";
const NAME: &str = "fleet";
/// How often it compares the cluster with its source, in the notation of Flux.
const INTERVAL: &str = "3s";
const SOON: Duration = Duration::from_mins(2);

/// The kinds of its sources, each with its plural.
const SOURCES: [(&str, &str); 4] = [
    ("GitRepository", "gitrepositories"),
    ("OCIRepository", "ocirepositories"),
    ("Bucket", "buckets"),
    ("ExternalArtifact", "externalartifacts"),
];

/// Flux, without its source-controller: what that would have fetched from git is in a
/// `GitRepository` that the test writes, with an archive that the test serves. The dependencies of
/// the source-controller cannot be had everywhere; the one that applies is what matters here.
pub(super) struct Flux<'p> {
    plane: &'p ControlPlane,
    archive: Served,
    folder: TempDir,
    process: Watched,
    /// The number of commits.
    commits: u32,
}

impl<'p> GitOps<'p> for Flux<'p> {
    const NAME: &'static str = "Flux";
    const USER: &'static str = "flux";
    const MANAGER: &'static str = "kustomize-controller";
    const KEEPS: &'static str = "kustomize.toolkit.fluxcd.io/prune: disabled";
    const MARKS: &'static [(&'static str, &'static str)] = &[
        ("label", "kustomize.toolkit.fluxcd.io/name"),
        ("label", "kustomize.toolkit.fluxcd.io/namespace"),
    ];

    fn start(plane: &'p ControlPlane) -> Self {
        let program = go_build::folder_with(&TOOL, &["kustomize-controller"]);
        let sources = go_build::sources_of(&TOOL[0], PACKAGE);
        let own = sources.join("config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml");
        let mut kinds = vec![fs::read_to_string(own).unwrap()];
        kinds.extend(SOURCES.map(|(kind, plural)| source_kind(kind, plural).to_string()));
        install(plane, &kinds, NAMESPACE);
        let archive = Served::start("application/gzip");
        let folder = tempfile::tempdir().unwrap();
        let health = Port::free();
        let mut command = Command::new(program.join("kustomize-controller"));
        command
            .args(["--watch-all-namespaces", "--enable-leader-election=false"])
            .args(["--metrics-addr=0", "--requeue-dependency=1s"])
            .arg(format!("--health-addr=127.0.0.1:{}", health.number()))
            .env("KUBECONFIG", plane.kubeconfig_of(Self::USER))
            .env("RUNTIME_NAMESPACE", NAMESPACE)
            .env("TMPDIR", folder.path())
            .current_dir(folder.path());
        let process = Watched::spawn(&command, &folder.path().join("log"));
        Self { plane, archive, folder, process, commits: 0 }
    }

    fn commit(&mut self, manifests: &str) {
        self.commits += 1;
        let archive = archive_of(self.folder.path(), manifests);
        let digest = Sha256::digest(&archive).into_iter().map(|byte| format!("{byte:02x}"));
        let digest = format!("sha256:{}", digest.collect::<String>());
        let size = archive.len();
        self.archive.set(archive);
        let revision = format!("main@sha1:{:04}", self.commits);
        let artifact = json!({
            "url": format!("http://{}/{revision}.tar.gz", self.archive.address()),
            "path": format!("gitrepository/{NAMESPACE}/{NAME}/{revision}.tar.gz"),
            "revision": revision,
            "digest": digest,
            "size": size,
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        });
        self.plane.apply_yaml(&objects());
        let fetched =
            json!({"status": {"observedGeneration": 1, "artifact": artifact}}).to_string();
        let status = ["--subresource=status", "--type=merge", "-p", &fetched];
        self.kubectl(&[&["patch", "gitrepository", NAME], &status[..]].concat());
        let applied = "--output=jsonpath={.status.lastAppliedRevision}";
        let what = format!("Flux to apply {revision}");
        wait_until(&what, SOON, || {
            let log = self.folder.path().join("log");
            assert!(self.process.ended().is_none(), "Flux ended; {}", log_tail(&log));
            self.kubectl(&["get", "kustomization", NAME, applied]) == revision
        });
    }

    /// As `flux suspend` and `flux resume` do.
    fn suspend(&self, suspend: bool) {
        let patch = json!({"spec": {"suspend": suspend}}).to_string();
        self.kubectl(&["patch", "kustomization", NAME, "--type=merge", "-p", &patch]);
    }

    fn compares(&self) {
        let before = self.comparisons();
        // The first of these may have begun before.
        wait_until("Flux to compare twice", SOON, || self.comparisons() >= before + 2);
    }
}

impl Flux<'_> {
    /// The number of comparisons that it has finished since it was started.
    fn comparisons(&self) -> usize {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        log.matches("Reconciliation finished").count()
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(&[&["--namespace", NAMESPACE], arguments].concat())
    }
}

/// A kind of sources, with any fields.
fn source_kind(kind: &str, plural: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.source.toolkit.fluxcd.io")},
        "spec": {
            "group": "source.toolkit.fluxcd.io",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": any},
            }],
        },
    })
}

/// The source, and what is applied from it.
fn objects() -> String {
    format!(
        "
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
spec: {{interval: 1m, url: 'https://git.example/fleet'}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
spec:
  interval: {INTERVAL}
  path: ./
  prune: true
  sourceRef: {{kind: GitRepository, name: {NAME}}}
"
    )
}

/// A compressed archive with these manifests in one file.
fn archive_of(folder: &Path, manifests: &str) -> Vec<u8> {
    let root = folder.join("source");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("fleet.yaml"), manifests).unwrap();
    let tar = Command::new("tar").args(["-czf", "-", "-C"]).arg(&root).arg(".").output().unwrap();
    assert!(tar.status.success(), "{}", String::from_utf8_lossy(&tar.stderr));
    tar.stdout
}
