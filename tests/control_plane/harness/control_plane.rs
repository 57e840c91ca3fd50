//! A control plane for one test: started on free ports, removed when dropped.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use kube::Client;

use super::binaries::Binaries;
use super::client;
use super::component::{self, Component, Setting};
use super::options::{Options, User};
use super::ports::Port;
use super::scratch::Scratch;
use super::waiting::wait_until;
use super::watchdog::{self, Watched};

/// The start timeout of a server; seconds are usual, but the machine may be busy.
const START_LIMIT: Duration = Duration::from_mins(2);
/// How long a server may take to end after SIGTERM before it is killed. The API server and etcd
/// would wait longer for their clients.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// A running control plane.
pub(crate) struct ControlPlane {
    options: Options,
    servers: Mutex<Servers>,
    /// The last field, so that the folder is removed after all writers have ended.
    scratch: Scratch,
}

/// The running servers and their ports.
#[derive(Default)]
struct Servers {
    running: BTreeMap<Component, Watched>,
    ports: BTreeMap<Component, Port>,
}

/// The result of an attempt to start a server.
enum Attempt {
    Answers,
    PortTaken,
}

impl ControlPlane {
    /// Starts a control plane with all its servers.
    pub(crate) fn start() -> Self {
        Self::builder().start()
    }

    /// Options to set before the start.
    pub(crate) fn builder() -> Options {
        Options::default()
    }

    pub(super) fn with(options: Options) -> Self {
        let plane = Self { scratch: Scratch::new(), servers: Mutex::default(), options };
        plane.write_tokens();
        plane.write_audit_policy();
        for &component in plane.options.components() {
            plane.start_component(component);
        }
        plane
    }

    /// The control plane's folder; tests may write files into it.
    pub(crate) fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig_path(&self) -> PathBuf {
        self.kubeconfig_of("admin")
    }

    /// The kubeconfig of one of the users given to the builder.
    pub(crate) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        let path = component::kubeconfig(self.folder(), user);
        assert!(path.is_file(), "the control plane has no user {user}; add it with `.user(…)`");
        path
    }

    /// A client for the administrator.
    pub(crate) fn client(&self) -> Client {
        self.client_of("admin")
    }

    /// A client for one of the users.
    pub(crate) fn client_of(&self, user: &str) -> Client {
        client::client(&self.kubeconfig_of(user))
    }

    /// Starts a server, for the first time or again; returns when it answers.
    pub(crate) fn start_component(&self, component: Component) {
        let first = !self.servers().ports.contains_key(&component);
        for _ in 0..10 {
            match self.attempt(component) {
                Attempt::Answers => {
                    if component == Component::ApiServer {
                        self.wait_for_api(first);
                    }
                    return;
                }
                // Other servers already use the ports of etcd and the API server.
                Attempt::PortTaken if first => drop(self.servers().ports.remove(&component)),
                Attempt::PortTaken => thread::sleep(Duration::from_millis(500)),
            }
        }
        panic!("{component:?}: every port was in use");
    }

    /// Stops a server with SIGTERM and waits; kills it after a timeout.
    pub(crate) fn stop_component(&self, component: Component) {
        let mut server = self.take(component);
        server.signal("TERM");
        let start = Instant::now();
        while server.ended().is_none() && start.elapsed() < STOP_LIMIT {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills a server with SIGKILL, as a crash would.
    pub(crate) fn kill_component(&self, component: Component) {
        drop(self.take(component));
    }

    /// Sends a server a signal, by its name without `SIG`: `STOP` freezes it, `CONT` thaws it.
    pub(crate) fn signal_component(&self, component: Component, signal: &str) {
        let mut servers = self.servers();
        let server = servers.running.get_mut(&component);
        let server = server.unwrap_or_else(|| panic!("{component:?} does not run"));
        server.signal(signal);
    }

    /// Whether a server runs.
    pub(crate) fn runs(&self, component: Component) -> bool {
        let mut servers = self.servers();
        let server = servers.running.get_mut(&component);
        server.is_some_and(|server| server.ended().is_none())
    }

    /// The last lines that a server has printed.
    pub(crate) fn log_tail(&self, component: Component) -> String {
        watchdog::log_tail(&component::log(self.folder(), component))
    }

    /// The requests to the API server and their users, oldest first; requires `.audit()`.
    pub(crate) fn audit_log(&self) -> Vec<serde_json::Value> {
        assert!(self.options.audited(), "the builder needs `.audit()`");
        let text = fs::read_to_string(component::audit_log(self.folder())).unwrap_or_default();
        // A line that is being written has no line end yet.
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str(line).expect("the API server writes JSON lines"))
            .collect()
    }

    fn servers(&self) -> MutexGuard<'_, Servers> {
        // A test that panicked while starting a server left no partial state here.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, component: Component) -> Watched {
        let server = self.servers().running.remove(&component);
        server.unwrap_or_else(|| panic!("{component:?} does not run"))
    }

    /// Starts a server and waits until it listens.
    fn attempt(&self, component: Component) -> Attempt {
        assert!(!self.runs(component), "{component:?} runs already");
        let port = {
            let mut servers = self.servers();
            let port = servers.ports.entry(component).or_insert_with(Port::free);
            port.number()
        };
        let mut server = self.spawn(component);
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = server.ended() {
                let log = self.log_tail(component);
                if log.contains("address already in use") {
                    return Attempt::PortTaken;
                }
                panic!("{component:?} ended during its start, {status}; {log}");
            }
            if start.elapsed() > START_LIMIT {
                let log = self.log_tail(component);
                panic!("{component:?} did not listen within {START_LIMIT:?}; {log}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        self.servers().running.insert(component, server);
        Attempt::Answers
    }

    fn spawn(&self, component: Component) -> Watched {
        let ports = &self.servers().ports;
        let setting = Setting {
            folder: self.folder(),
            options: &self.options,
            ports: ports.iter().map(|(&of, port)| (of, port.number())).collect(),
        };
        let mut command = Command::new(Binaries::get().path(component.program()));
        command
            .args(setting.arguments(component))
            .current_dir(self.folder())
            .env("HOME", self.folder());
        Watched::spawn(&command, &component::log(self.folder(), component))
    }

    /// Waits until the API server is ready, and writes the kubeconfigs.
    fn wait_for_api(&self, first: bool) {
        if first {
            wait_until("the API server's certificate", START_LIMIT, || {
                self.certificate().is_file()
            });
            for user in self.options.users() {
                self.write_kubeconfig(user);
            }
        }
        let client = self.client();
        let start = Instant::now();
        while !answers(&client, "/readyz") || !answers(&client, "/api/v1/namespaces/default") {
            assert!(
                start.elapsed() < START_LIMIT && self.runs(Component::ApiServer),
                "the API server is not ready; {}",
                self.log_tail(Component::ApiServer)
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn certificate(&self) -> PathBuf {
        component::certificates(self.folder()).join("apiserver.crt")
    }

    fn write_tokens(&self) {
        let lines = self.options.users().iter().map(|user| {
            let (token, name, groups) = (user.token(), &user.name, user.groups.join(","));
            format!("{token},{name},{name},\"{groups}\"\n")
        });
        fs::write(component::tokens(self.folder()), lines.collect::<String>())
            .expect("the folder is ours");
    }

    fn write_audit_policy(&self) {
        const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";
        fs::write(component::audit_policy(self.folder()), POLICY).expect("the folder is ours");
    }

    fn write_kubeconfig(&self, user: &User) {
        let port = self.servers().ports[&Component::ApiServer].number();
        let (certificate, token) = (self.certificate(), user.token());
        let text = format!(
            "apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: '{}'}}
users:
- name: user
  user: {{token: '{token}'}}
contexts:
- name: test
  context: {{cluster: test, user: user}}
current-context: test
",
            certificate.display()
        );
        fs::write(component::kubeconfig(self.folder(), &user.name), text)
            .expect("the folder is ours");
    }
}

/// Whether the API server answers a GET with success.
fn answers(client: &Client, path: &'static str) -> bool {
    let client = client.clone();
    client::block_on(async move {
        let request = http::Request::get(path).body(Vec::new());
        let request = request.expect("the path is valid");
        client.request_text(request).await.is_ok()
    })
}
