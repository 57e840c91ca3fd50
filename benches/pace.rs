//! The time that `ds-apply` takes to replace the pods of a DaemonSet, compared with the built-in
//! controller: `cargo bench --bench pace --features control-plane`.
//!
//! One DaemonSet on one control plane goes from version to version, alternately under the strategy
//! `RollingUpdate` and by `ds-apply`, with the same budget. An independent observer measures the
//! time from the first deleted pod to the last one that becomes available. It takes fifteen
//! minutes, nearly all of them waiting for pods to become ready. The number of pairs, and then that
//! of the nodes, can be given: `-- 1 12`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed bench panics")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock and settings of its own")]
#![allow(clippy::print_stdout, reason = "what it measures goes to standard output")]

#[path = "../tests/control_plane"]
#[expect(dead_code, unused_imports, reason = "the tests use all of it")]
mod control_plane {
    pub(crate) mod harness;
    #[path = "apply/watcher.rs"]
    pub(crate) mod watcher;
}

use std::time::Duration;

use daemonset::model::{FIELD_MANAGER, IntOrPercent};

// The watcher also refers to the harness as `crate::harness`.
use control_plane::harness::{self, ControlPlane, FakeNode, wait_for};
use control_plane::watcher::Watcher;

/// The default number of rollouts of each kind.
const PAIRS: usize = 5;

/// The default number of nodes.
const NODES: usize = 60;

/// The values of `maxUnavailable`.
const BUDGETS: [IntOrPercent; 2] = [IntOrPercent::Percent(10), IntOrPercent::Int(3)];

/// The timeout of a rollout.
const LIMIT: Duration = Duration::from_mins(10);

fn main() {
    let mut given = std::env::args().filter_map(|arg| arg.parse().ok());
    let (pairs, nodes) = (given.next().unwrap_or(PAIRS), given.next().unwrap_or(NODES));
    let plane = ControlPlane::start();
    plane.create_nodes(FakeNode::many("node", nodes));
    println!("From the first delete to the last available pod, pods ready after 3 s: medians.\n");
    println!("| nodes | maxUnavailable | controller | ds-apply | ratio (all {pairs}) |");
    println!("|---|---|---|---|---|");
    for (number, budget) in BUDGETS.into_iter().enumerate() {
        let namespace = format!("pace-{number}");
        println!("{}", Fleet::new(&plane, namespace, nodes, budget).row(pairs));
    }
}

/// One DaemonSet on all nodes.
struct Fleet<'p> {
    plane: &'p ControlPlane,
    namespace: String,
    nodes: usize,
    budget: IntOrPercent,
    version: usize,
}

impl<'p> Fleet<'p> {
    fn new(plane: &'p ControlPlane, namespace: String, nodes: usize, budget: IntOrPercent) -> Self {
        plane.kubectl(&["create", "namespace", &namespace]);
        let fleet = Self { plane, namespace, nodes, budget, version: 0 };
        fleet.by_controller();
        fleet.wait();
        fleet
    }

    /// Measures this many rollouts of each kind, alternately.
    fn row(mut self, pairs: usize) -> String {
        let pair = |_| (self.measure(Self::by_controller), self.measure(Self::by_ds_apply));
        let measured: Vec<(f64, f64)> = (0..pairs).map(pair).collect();
        let controller = sorted(measured.iter().map(|(controller, _)| *controller));
        let ds_apply = sorted(measured.iter().map(|(_, ds_apply)| *ds_apply));
        let ratios = sorted(measured.iter().map(|(controller, ds_apply)| ds_apply / controller));
        let all: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
        format!(
            "| {} | {} | {:.1} s | {:.1} s | {:.3} ({}) |",
            self.nodes,
            self.budget,
            median(&controller),
            median(&ds_apply),
            median(&ratios),
            all.join(", ")
        )
    }

    /// The seconds of one rollout to the next version.
    fn measure(&mut self, roll: fn(&Self)) -> f64 {
        self.version += 1;
        let watcher = Watcher::begin(self.plane.client(), &self.namespace, self.nodes);
        roll(self);
        self.wait();
        let seen = watcher.end();
        let allowed = self.budget.scaled(self.nodes.try_into().unwrap());
        assert!(seen.most_unavailable <= allowed.try_into().unwrap(), "{}", seen.most_unavailable);
        assert_eq!(seen.deleted.len(), self.nodes, "each pod is replaced once");
        seen.took().as_secs_f64()
    }

    /// Writes the same fields as `ds-apply` does, under its field manager, so that there are no
    /// conflicts.
    fn by_controller(&self) {
        let manager = format!("--field-manager={FIELD_MANAGER}");
        let apply = ["apply", "--server-side", &manager, "--filename=-"];
        self.plane.kubectl_stdin(&apply, &self.manifest());
    }

    fn by_ds_apply(&self) {
        let files = [("agent.yaml", self.manifest())];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let output = self.plane.ds_apply(&["--yes", "-f", "agent.yaml"], &files).run();
        assert!(output.status.success(), "{output:?}");
    }

    /// Waits until each node has an available pod of this version.
    fn wait(&self) {
        let status = "--output=jsonpath={.metadata.generation}={.status.observedGeneration} \
                      {.status.updatedNumberScheduled} {.status.numberAvailable}";
        let get = ["--namespace", &self.namespace, "get", "daemonset", "agent", status];
        let nodes = self.nodes.to_string();
        wait_for("the rollout to complete", LIMIT, [true; 3], || {
            let status = self.plane.kubectl(&get);
            let mut words = status.split(' ');
            let seen = words.next().and_then(|generations| generations.split_once('='));
            let seen = seen.is_some_and(|(written, seen)| written == seen);
            [seen, words.next() == Some(&nodes), words.next() == Some(&nodes)]
        });
    }

    fn manifest(&self) -> String {
        let Self { plane: _, namespace, nodes: _, budget, version } = self;
        format!(
            "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: {budget}}}}}
  template:
    metadata: {{labels: {{app: agent}}, annotations: {{ready-after: 3s}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: agent, image: 'cr.example/agent:v{version}'}}]
"
        )
    }
}

fn sorted(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
