//! A running Flux: its source-controller and its kustomize-controller, and the git repository that
//! it applies.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use testkit::sandbox::Sandbox;

use super::git_server::GitServer;
use super::{GitOps, Processes, install};
use crate::harness::go_build::{self, Tool};
use crate::harness::ports::Port;
use crate::harness::{ControlPlane, wait_until};

const KUSTOMIZE: (&str, &str) = ("kustomize-controller", "github.com/fluxcd/kustomize-controller");
const SOURCE: (&str, &str) = ("source-controller", "github.com/fluxcd/source-controller");
const TOOL: [Tool; 1] =
    [Tool { folder: "flux", programs: &[KUSTOMIZE, SOURCE], tags: "", cold: "6 minutes" }];
/// The namespace of its own objects, and the name of both.
const NAMESPACE: &str = "flux-system";
const NAME: &str = "fleet";
/// How often it compares the cluster with its source, and its source with the repository.
const INTERVAL: &str = "3s";
const SOON: Duration = Duration::from_mins(2);

/// The kinds of each of its controllers, as their files are named.
const KINDS: [(&str, &[&str]); 2] = [
    (KUSTOMIZE.1, &["kustomize.toolkit.fluxcd.io_kustomizations"]),
    (
        SOURCE.1,
        &[
            "source.toolkit.fluxcd.io_buckets",
            "source.toolkit.fluxcd.io_externalartifacts",
            "source.toolkit.fluxcd.io_gitrepositories",
            "source.toolkit.fluxcd.io_helmcharts",
            "source.toolkit.fluxcd.io_helmrepositories",
            "source.toolkit.fluxcd.io_ocirepositories",
        ],
    ),
];

/// Flux without its other controllers.
pub(super) struct Flux<'p> {
    plane: &'p ControlPlane,
    /// The repository.
    source: Sandbox,
    server: GitServer,
    processes: Processes,
    _ports: [Port; 3],
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
        let programs = go_build::folder_with(&TOOL, &[KUSTOMIZE.0, SOURCE.0]);
        let kinds = KINDS.into_iter().flat_map(|(package, kinds)| {
            let folder = go_build::sources_of(&TOOL[0], package).join("config/crd/bases");
            kinds.iter().map(move |it| fs::read_to_string(folder.join(format!("{it}.yaml"))))
        });
        install(plane, &kinds.collect::<Result<Vec<_>, _>>().unwrap(), NAMESPACE);
        let mut processes = Processes::none();
        let ports = [Port::free(), Port::free(), Port::free()];
        let address = |at: usize| format!("127.0.0.1:{}", ports[at].number());
        let kubeconfig = plane.kubeconfig_of(Self::USER);
        let storage = [
            format!("--storage-path={}", processes.folder.path().display()),
            format!("--storage-addr={}", address(2)),
            format!("--storage-adv-addr={}", address(2)),
        ];
        let mut start = |name: &'static str, health: usize, arguments: &[String]| {
            let mut command = Command::new(programs.join(name));
            command
                .args(["--watch-all-namespaces", "--enable-leader-election=false"])
                .args(["--metrics-addr=0", "--requeue-dependency=1s"])
                .arg(format!("--health-addr={}", address(health)))
                .args(arguments)
                .env("KUBECONFIG", &kubeconfig)
                .env("RUNTIME_NAMESPACE", NAMESPACE);
            processes.start(name, &mut command);
        };
        start(SOURCE.0, 0, &storage);
        start(KUSTOMIZE.0, 1, &[]);
        let source = Sandbox::new();
        let server = GitServer::start(source.path(""));
        Self { plane, source, server, processes, _ports: ports }
    }

    fn commit(&mut self, manifests: &str) {
        self.source.write("fleet.yaml", manifests);
        self.source.commit();
        let revision = format!("main@sha1:{}", self.source.git(&["rev-parse", "HEAD"]));
        self.plane.apply_yaml(&objects(&self.server.url()));
        let applied = "--output=jsonpath={.status.lastAppliedRevision}";
        let what = format!("Flux to apply {revision}");
        wait_until(&what, SOON, || {
            self.processes.all_run();
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
        let log = fs::read_to_string(self.processes.folder.path().join(KUSTOMIZE.0)).unwrap();
        log.matches("Reconciliation finished").count()
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(&[&["--namespace", NAMESPACE], arguments].concat())
    }
}

/// The source, and what is applied from it.
fn objects(url: &str) -> String {
    format!(
        "
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
spec: {{interval: {INTERVAL}, url: '{url}/.git', ref: {{branch: main}}}}
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
