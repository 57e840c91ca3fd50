//! The servers of a control plane, and the command line of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::binaries::Program;
use super::options::Options;

/// A server of the control plane, in start order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Component {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    /// The kubelets of fake nodes.
    Kwok,
}

impl Component {
    /// All servers, each after those that it needs.
    pub(crate) const ALL: [Self; 5] =
        [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    pub(crate) fn program(self) -> Program {
        match self {
            Self::Etcd => Program::Etcd,
            Self::ApiServer => Program::KubeApiserver,
            Self::ControllerManager => Program::KubeControllerManager,
            Self::Scheduler => Program::KubeScheduler,
            Self::Kwok => Program::Kwok,
        }
    }

    /// Its user name at the API server, so the audit log distinguishes the servers.
    pub(crate) fn user(self) -> Option<&'static str> {
        match self {
            Self::Etcd | Self::ApiServer => None,
            Self::ControllerManager => Some("system:kube-controller-manager"),
            Self::Scheduler => Some("system:kube-scheduler"),
            Self::Kwok => Some("kwok"),
        }
    }
}

/// The inputs of the command lines.
pub(crate) struct Setting<'a> {
    /// The control plane's folder.
    pub(crate) folder: &'a Path,
    /// The options of the test.
    pub(crate) options: &'a Options,
    /// Each server's port.
    pub(crate) ports: BTreeMap<Component, u16>,
}

impl Setting<'_> {
    /// The arguments of `component`, the test's own last: of two equal flags the last one wins.
    pub(crate) fn arguments(&self, component: Component) -> Vec<String> {
        let mut arguments = match component {
            Component::Etcd => self.etcd(),
            Component::ApiServer => self.api_server(),
            Component::ControllerManager => self.controller_manager(),
            Component::Scheduler => self.client_and_server(Component::Scheduler),
            Component::Kwok => self.kwok(),
        };
        arguments.extend(self.options.flags_of(component).map(str::to_owned));
        arguments
    }

    fn port(&self, component: Component) -> u16 {
        self.ports[&component]
    }

    fn etcd(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.port(Component::Etcd));
        vec![
            format!("--data-dir={}", self.folder.join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            // No peers: any port works, and no client dials the address in the member list.
            "--listen-peer-urls=http://127.0.0.1:0".into(),
            // A test's data need not survive a power failure.
            "--unsafe-no-fsync".into(),
        ]
    }

    fn api_server(&self) -> Vec<String> {
        let own = certificates(self.folder);
        // It creates its certificate first and reads this key after that, so one key serves both.
        let key = own.join("apiserver.key").display().to_string();
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.port(Component::Etcd)),
            format!("--secure-port={}", self.port(Component::ApiServer)),
            "--bind-address=127.0.0.1".into(),
            // Explicit, because the default is the address of a network that may not exist.
            "--advertise-address=127.0.0.1".into(),
            "--endpoint-reconciler-type=none".into(),
            format!("--cert-dir={}", own.display()),
            format!("--service-account-key-file={key}"),
            format!("--service-account-signing-key-file={key}"),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--token-auth-file={}", tokens(self.folder).display()),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            "--allow-privileged=true".into(),
        ];
        arguments.extend(self.options.admission_flags());
        if self.options.audited() {
            arguments.push(format!("--audit-policy-file={}", audit_policy(self.folder).display()));
            arguments.push(format!("--audit-log-path={}", audit_log(self.folder).display()));
            arguments.push("--audit-log-mode=blocking".into());
            // In MiB. It is rotated at 100 otherwise, and what was logged before is not counted.
            arguments.push("--audit-log-maxsize=1000000".into());
        }
        arguments
    }

    fn controller_manager(&self) -> Vec<String> {
        let mut arguments = self.client_and_server(Component::ControllerManager);
        arguments.push(format!("--controllers={}", self.options.controllers()));
        // The fake kubelets renew no leases, so all would be considered dead within a minute.
        arguments.push("--node-monitor-grace-period=1h".into());
        arguments
    }

    /// The flags that the controller manager and the scheduler have in common.
    fn client_and_server(&self, component: Component) -> Vec<String> {
        vec![
            self.kubeconfig_of(component),
            format!("--secure-port={}", self.port(component)),
            "--bind-address=127.0.0.1".into(),
            "--leader-elect=false".into(),
            "--kube-api-qps=500".into(),
            "--kube-api-burst=1000".into(),
        ]
    }

    fn kwok(&self) -> Vec<String> {
        let mut arguments = vec![
            self.kubeconfig_of(Component::Kwok),
            format!("--server-address=127.0.0.1:{}", self.port(Component::Kwok)),
            "--manage-all-nodes=true".into(),
        ];
        arguments.extend(stages().iter().map(|it| format!("--config={}", it.display())));
        arguments
    }

    fn kubeconfig_of(&self, component: Component) -> String {
        let user = component.user().expect("only clients have a kubeconfig");
        format!("--kubeconfig={}", kubeconfig(self.folder, user).display())
    }
}

/// The folder of the certificate that the API server creates for itself.
pub(crate) fn certificates(folder: &Path) -> PathBuf {
    folder.join("apiserver")
}

/// The API server's token file.
pub(crate) fn tokens(folder: &Path) -> PathBuf {
    folder.join("tokens.csv")
}

/// The audit policy.
pub(crate) fn audit_policy(folder: &Path) -> PathBuf {
    folder.join("audit-policy.yaml")
}

/// The audit log of the API server.
pub(crate) fn audit_log(folder: &Path) -> PathBuf {
    folder.join("audit.log")
}

/// The output of a server, over all its starts.
pub(crate) fn log(folder: &Path, component: Component) -> PathBuf {
    folder.join(format!("{}.log", component.program().file_name()))
}

/// The kubeconfig of a user, whose name may contain colons and slashes.
pub(crate) fn kubeconfig(folder: &Path, user: &str) -> PathBuf {
    folder.join(format!("{}.kubeconfig", user.replace([':', '/'], "_")))
}

/// The documents that define the behaviour of fake nodes and pods for kwok.
fn stages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_plane/stages");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the stages are part of the sources")
        .map(|entry| entry.expect("a folder of ours can be read").path())
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .collect();
    files.sort();
    files
}
