//! Three real nodes next to a control plane, removed when dropped, and also when the test is
//! killed.
//!
//! Each node is a process of the small program `node` (`tests/control_plane/tools/nodes`), which
//! runs its containerd, its kubelet and their children in their own process and mount namespaces.
//! It ends when the test process closes its pipe, and with it everything in the namespaces. The
//! nodes share the machine's network: pods use it, each on a port that depends on its node's name.

mod ability;
mod binaries;
mod config;
mod machine;

use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::cache;
use crate::harness::ports::Port;
use crate::harness::watchdog::Watched;
use crate::harness::{Component, ControlPlane, wait_for, wait_until};

use self::machine::Machine;

pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// How long the nodes may take to become ready; ten seconds are usual.
const START_LIMIT: Duration = Duration::from_mins(2);

/// How long a pull of a `slow` image takes.
pub(crate) const SLOW_PULL: Duration = Duration::from_secs(15);

/// A control plane, and the nodes on which it runs pods.
pub(crate) struct RealNodes {
    machines: Vec<Machine>,
    _registry: Watched,
    registry_port: Port,
    pub(crate) plane: ControlPlane,
    /// Two sets of nodes at a time would be too much for a small machine; the lock also covers
    /// other processes.
    _turn: File,
}

/// A part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Containerd,
    Kubelet,
}

impl Part {
    /// The program's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Kubelet => "kubelet",
        }
    }
}

impl RealNodes {
    /// Starts the nodes; returns `None` if this machine cannot run them, after printing what is
    /// missing.
    pub(crate) fn start() -> Option<Self> {
        let missing = ability::missing();
        if !missing.is_empty() {
            ability::report_skipped(&missing);
            return None;
        }
        let turn = cache::lock_file(&cache::folder().join("real-nodes.lock"));
        turn.lock().expect("the lock's file is open");
        // Built before the time limit starts.
        let _ = (binaries::own(), binaries::upstream());
        // These kubelets renew their leases, so a dead one is detected within seconds.
        let plane = ControlPlane::builder()
            .without(Component::Kwok)
            .flag(Component::ControllerManager, "--node-monitor-grace-period=12s")
            .flag(Component::ControllerManager, "--node-monitor-period=2s")
            .user("kubelet", &["system:masters"])
            .start();
        let begin = Instant::now();
        let registry_port = Port::free();
        let registry = registry(plane.folder(), registry_port.number());
        let kubeconfig = plane.kubeconfig_of("kubelet");
        let machine = |name: &str| {
            let folder = plane.folder().join("nodes").join(name);
            Machine::start(name, &folder, registry_port.number(), &kubeconfig)
        };
        let machines = NAMES.iter().map(|name| machine(name)).collect();
        let nodes = Self { machines, _registry: registry, registry_port, plane, _turn: turn };
        nodes.wait_until_ready();
        println!("three nodes ready after {} ms", begin.elapsed().as_millis());
        Some(nodes)
    }

    /// Waits until every node is ready for pods.
    pub(crate) fn wait_until_ready(&self) {
        let ready = "--output=jsonpath={range .items[*]}{.metadata.name}=\
                     {.status.conditions[?(@.type=='Ready')].status}{.spec.taints[*].key} {end}";
        wait_for("the nodes", START_LIMIT, "a=True b=True c=True ".to_owned(), || {
            self.plane.kubectl(&["get", "nodes", ready])
        });
    }

    /// The address of the image registry.
    pub(crate) fn registry(&self) -> String {
        format!("127.0.0.1:{}", self.registry_port.number())
    }

    /// Kills a part of a node with SIGKILL; `start_again` brings it back.
    pub(crate) fn kill(&self, node: &str, part: Part) {
        self.machine(node).signal(part, "KILL");
    }

    /// Starts a part that was killed.
    pub(crate) fn start_again(&self, node: &str, part: Part) {
        self.machine(node).start_part(part);
    }

    /// Suspends a part of a node until `thaw`.
    pub(crate) fn freeze(&self, node: &str, part: Part) {
        self.machine(node).signal(part, "STOP");
    }

    /// Continues a suspended part.
    pub(crate) fn thaw(&self, node: &str, part: Part) {
        self.machine(node).signal(part, "CONT");
    }

    fn machine(&self, node: &str) -> &Machine {
        let at = NAMES.iter().position(|name| *name == node).expect("a, b or c");
        &self.machines[at]
    }
}

/// Starts the registry; returns when its images are available.
fn registry(folder: &Path, port: u16) -> Watched {
    let programs = binaries::own();
    let mut command = Command::new(programs.join("registry"));
    command.current_dir(folder);
    command.args(["-address", &format!("127.0.0.1:{port}"), "-agent"]).arg(programs.join("agent"));
    command.args(["-slow", &format!("{}s", SLOW_PULL.as_secs())]);
    let registry = Watched::spawn(&command, &folder.join("registry.log"));
    wait_until("the registry", START_LIMIT, || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    });
    registry
}
