//! One DaemonSet of agents on the real nodes, and `ds-apply` on it.

use std::process::Output;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::asking::{self, Asking};
use crate::harness::ports::Port;
use crate::harness::{AT_ONCE, Program, stdout, wait_for};
use crate::nodes::{NAMES, RealNodes};
use crate::witness::Witness;

/// The timeout for what the pods of an idle machine do in seconds.
const SOON: Duration = Duration::from_mins(2);

/// A DaemonSet in its own namespace, with a port on each node.
pub(crate) struct Fleet<'n> {
    pub(crate) nodes: &'n RealNodes,
    pub(crate) namespace: String,
    ports: Vec<Port>,
    pub(crate) witness: Witness,
}

/// The result of a run of `ds-apply`.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// Both output streams.
    pub(crate) reported: String,
    /// Its duration.
    pub(crate) took: Duration,
}

impl<'n> Fleet<'n> {
    /// Creates the namespace, applies the agent with `ds-apply`, and waits until all nodes answer.
    pub(crate) fn new(nodes: &'n RealNodes, namespace: &str, agent: &Agent) -> Self {
        nodes.plane.kubectl(&["create", "namespace", namespace]);
        let witness = Witness::begin(nodes.plane.client(), namespace);
        let ports = NAMES.iter().map(|_| Port::free()).collect();
        let fleet = Self { nodes, namespace: namespace.to_owned(), ports, witness };
        let created = fleet.apply(agent, &[]);
        assert_eq!(created.code, Some(0), "{}", created.reported);
        fleet.wait_until_all_answer(agent);
        fleet
    }

    /// The version that answers on each node.
    pub(crate) fn answers(&self) -> Vec<Option<String>> {
        self.ports().map(asking::ask).collect()
    }

    /// Waits until every node answers with this version.
    pub(crate) fn wait_until_all_answer(&self, agent: &Agent) {
        let all = vec![Some(agent.version.to_owned()); NAMES.len()];
        wait_for("the agents' answers", SOON, all, || self.answers());
    }

    /// Starts to ask all nodes.
    pub(crate) fn asking(&self) -> Asking {
        Asking::begin(self.ports())
    }

    /// `ds-apply --yes` of a version.
    pub(crate) fn apply(&self, agent: &Agent, flags: &[&str]) -> Ended {
        let begin = Instant::now();
        ended(&self.program(agent, flags).run(), begin)
    }

    /// The same, ready to be started.
    pub(crate) fn program(&self, agent: &Agent, flags: &[&str]) -> Program {
        self.program_of(agent, |manifest, _| manifest, flags)
    }

    /// The same, with a changed manifest; the function gets the address of the registry, too.
    pub(crate) fn program_of(
        &self,
        agent: &Agent,
        change: impl Fn(String, &str) -> String,
        flags: &[&str],
    ) -> Program {
        let ports: Vec<u16> = self.ports().collect();
        let registry = self.nodes.registry();
        let manifest = change(agent.manifest(&self.namespace, &registry, &ports), &registry);
        let arguments = [&["--yes", "-f", "agent.yaml"], flags].concat();
        at_its_pace(self.nodes.plane.ds_apply(&arguments, &[("agent.yaml", &manifest)]))
    }

    /// `ds-apply undo`.
    pub(crate) fn undo(&self) -> Ended {
        let begin = Instant::now();
        let name = format!("{}/agent", self.namespace);
        let undo = self.nodes.plane.ds_apply(&["undo", &name, "--yes"], &[]);
        ended(&at_its_pace(undo).run(), begin)
    }

    /// A field of the DaemonSet, by a JSON path.
    pub(crate) fn field(&self, path: &str) -> String {
        let output = format!("--output=jsonpath={{{path}}}");
        self.kubectl(&["get", "daemonset", "agent", &output])
    }

    /// kubectl in its namespace.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.nodes.plane.kubectl(&[&["--namespace", &self.namespace], arguments].concat())
    }

    fn ports(&self) -> impl Iterator<Item = u16> {
        self.ports.iter().map(Port::number)
    }
}

/// The result of a run that began at `begin`.
pub(crate) fn ended(output: &Output, begin: Instant) -> Ended {
    let errors = String::from_utf8_lossy(&output.stderr);
    let reported = format!("{}\n{}\n{errors}", output.status, stdout(output));
    Ended { code: output.status.code(), reported, took: begin.elapsed() }
}

/// `ds-apply` with its default pace: here pods have to stay Ready.
fn at_its_pace(mut program: Program) -> Program {
    for (name, _) in AT_ONCE {
        program.command.env_remove(name);
    }
    program
}
