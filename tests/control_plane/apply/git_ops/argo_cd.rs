//! A running Argo CD: its application controller and its repository server, and the git repository
//! that it applies.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use testkit::sandbox::Sandbox;

use super::{GitOps, Processes, install};
use crate::harness::go_build::{self, Tool};
use crate::harness::ports::Port;
use crate::harness::{ControlPlane, wait_until};

const PROGRAM: &str = "argo-cd";
const TOOL: [Tool; 1] =
    [Tool { folder: "argo_cd", programs: &[(PROGRAM, "./argo-cd")], tags: "", cold: "5 minutes" }];
/// The namespace of its own objects, and the name of its application.
const NAMESPACE: &str = "argocd";
const NAME: &str = "fleet";
/// How often it compares the cluster with its source, in seconds.
const INTERVAL: &str = "3";
const SOON: Duration = Duration::from_mins(2);

/// Argo CD without its API server and user interface.
pub(super) struct ArgoCd<'p> {
    plane: &'p ControlPlane,
    /// The repository.
    source: Sandbox,
    processes: Processes,
    _ports: Vec<Port>,
}

impl<'p> GitOps<'p> for ArgoCd<'p> {
    const NAME: &'static str = "Argo CD";
    const USER: &'static str = "argocd";
    const MANAGER: &'static str = "argocd-controller";
    const KEEPS: &'static str = "argocd.argoproj.io/sync-options: Prune=false";
    const MARKS: &'static [(&'static str, &'static str)] =
        &[("annotate", "argocd.argoproj.io/tracking-id")];

    fn start(plane: &'p ControlPlane) -> Self {
        let program = go_build::folder_with(&TOOL, &[PROGRAM]).join(PROGRAM);
        let sources = go_build::sources_of(&TOOL[0], "github.com/argoproj/argo-cd/v3");
        let kinds = ["application", "appproject"].map(|kind| {
            let file = sources.join(format!("manifests/crds/{kind}-crd.yaml"));
            fs::read_to_string(file).unwrap()
        });
        install(plane, &kinds, NAMESPACE);
        plane.apply_yaml(SETTINGS);
        let mut processes = Processes::none();
        let data = processes.folder.path().to_owned();
        let ports: Vec<Port> = std::iter::repeat_with(Port::free).take(4).collect();
        let [redis, repository, metrics, controller] = [0, 1, 2, 3].map(|at| ports[at].number());
        let address = |port: u16| format!("127.0.0.1:{port}");
        let kubeconfig = plane.kubeconfig_of(Self::USER);
        let mut start = |name: &'static str, arguments: &[&str]| {
            let mut command = Command::new(&program);
            command
                .arg(name)
                .args(arguments)
                .env("KUBECONFIG", &kubeconfig)
                // Its own cluster is the one of the kubeconfig.
                .env("ARGOCD_FAKE_IN_CLUSTER", "true")
                .env("ARGOCD_GPG_ENABLED", "false")
                .env("ARGOCD_TLS_DATA_PATH", &data)
                .env("ARGOCD_SSH_DATA_PATH", &data);
            processes.start(name, &mut command);
        };
        let redis_flag = format!("--redis={}", address(redis));
        start("redis", &[&address(redis)]);
        start(
            "argocd-repo-server",
            &[
                &redis_flag,
                "--address=127.0.0.1",
                &format!("--port={repository}"),
                "--metrics-address=127.0.0.1",
                &format!("--metrics-port={metrics}"),
                "--disable-tls",
                // Every comparison asks for the newest commit.
                "--revision-cache-expiration=1s",
            ],
        );
        start(
            "argocd-application-controller",
            &[
                &redis_flag,
                &format!("--namespace={NAMESPACE}"),
                &format!("--repo-server={}", address(repository)),
                "--repo-server-plaintext",
                &format!("--metrics-port={controller}"),
                &format!("--app-resync={INTERVAL}"),
                "--app-resync-jitter=0",
                "--self-heal-timeout-seconds=1",
            ],
        );
        Self { plane, source: Sandbox::new(), processes, _ports: ports }
    }

    fn commit(&mut self, manifests: &str) {
        self.source.write("fleet.yaml", manifests);
        self.source.commit();
        let commit = self.source.git(&["rev-parse", "HEAD"]);
        self.plane.apply_yaml(&application(&self.source.path(".git")));
        let applied = "--output=jsonpath={.status.operationState.phase} \
                       {.status.operationState.syncResult.revision}";
        let what = format!("Argo CD to apply {commit}");
        wait_until(&what, SOON, || {
            self.processes.all_run();
            self.application(applied) == format!("Succeeded {commit}")
        });
    }

    /// As in its user interface, *disable auto-sync*.
    fn suspend(&self, suspend: bool) {
        let patch = json!({"spec": {"syncPolicy": {"automated": {"enabled": !suspend}}}});
        let patch = ["--type=merge", "-p", &patch.to_string()];
        self.kubectl(&[&["patch", "application", NAME], &patch[..]].concat());
    }

    fn compares(&self) {
        // The first comparison may have begun before, and what it finds is applied after it.
        for _ in 0..3 {
            let compared = || self.application("--output=jsonpath={.status.reconciledAt}");
            let before = compared();
            wait_until("Argo CD to compare", SOON, || compared() != before);
        }
        wait_until("Argo CD to have applied", SOON, || {
            self.application("--output=jsonpath={.status.operationState.phase}") == "Succeeded"
        });
    }
}

impl ArgoCd<'_> {
    fn application(&self, output: &str) -> String {
        self.kubectl(&["get", "application", NAME, output])
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(&[&["--namespace", NAMESPACE], arguments].concat())
    }
}

/// What its installation creates: settings, and the project that applications are in by default.
const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: for-a-test}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ['*']
  destinations: [{namespace: '*', server: '*'}]
  clusterResourceWhitelist: [{group: '*', kind: '*'}]
";

/// The application: everything in the repository, applied at once and set back by itself.
fn application(repository: &Path) -> String {
    format!(
        "
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
spec:
  project: default
  source: {{repoURL: 'file://{}', path: ., targetRevision: main}}
  destination: {{server: 'https://kubernetes.default.svc'}}
  syncPolicy:
    automated: {{prune: true, selfHeal: true}}
    syncOptions: [ServerSideApply=true]
",
        repository.display()
    )
}
