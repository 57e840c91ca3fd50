//! The time that `ds-apply` takes to replace the pods of a DaemonSet, compared with the built-in
//! controller: `cargo bench --bench pace --features control-plane`.
//!
//! One DaemonSet on one control plane goes from version to version, by turns under the strategy
//! `RollingUpdate` and by `ds-apply`, with the same `maxUnavailable` and `minReadySeconds` (of which
//! `ds-apply` waits for 10 by default). An independent observer measures the time from the first
//! deleted pod to the last one that becomes Ready. Of `ds-apply` as a whole process, CPU time and
//! memory are measured, too, and the requests that the API server has counted. With five pairs it
//! takes an hour, nearly all of it waiting for pods to become Ready. The number of pairs, then that of
//! the nodes, and then the numbers of the rows can be given: `-- 1 3000 1 6`.

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
#[expect(dead_code, reason = "other benches show how long a process took")]
mod process;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use daemonset::model::{FIELD_MANAGER, IntOrPercent};

// The watcher also refers to the harness as `crate::harness`.
use control_plane::harness::{self, ControlPlane, FakeNode, wait_for};
use control_plane::watcher::{Gone, Watcher};
use process::Sampled;

/// The default number of rollouts of each kind.
const PAIRS: usize = 5;

/// The default number of nodes.
const NODES: usize = 60;

/// What is compared. The built-in controller has no ramp.
const CASES: [Case; 6] = [
    Case::of(IntOrPercent::Percent(10), 0),
    Case::of(IntOrPercent::Int(3), 0),
    Case::of(IntOrPercent::Percent(10), 4),
    Case::of(IntOrPercent::Percent(10), 10),
    Case { ramp: "double", ..Case::of(IntOrPercent::Percent(10), 0) },
    Case { gate: "pods", ..Case::of(IntOrPercent::Percent(10), 0) },
];

/// The user of `ds-apply`.
const RUNNER: &str = "runner";

/// The timeout of a rollout.
const LIMIT: Duration = Duration::from_mins(10);

/// The settings of a rollout.
#[derive(Clone, Copy)]
struct Case {
    /// `maxUnavailable`.
    budget: IntOrPercent,
    /// `minReadySeconds`.
    min_ready: u32,
    /// `--ramp` of `ds-apply`.
    ramp: &'static str,
    /// The gate of its policy, if there is one: `pods` are those of a second DaemonSet.
    gate: &'static str,
}

impl Case {
    const fn of(budget: IntOrPercent, min_ready: u32) -> Self {
        Self { budget, min_ready, ramp: "none", gate: "" }
    }
}

fn main() {
    let mut given = std::env::args().filter_map(|arg| arg.parse().ok());
    let (pairs, nodes) = (given.next().unwrap_or(PAIRS), given.next().unwrap_or(NODES));
    let plane = ControlPlane::builder().audit().user(RUNNER, &["system:masters"]).start();
    plane.create_nodes(FakeNode::many("node", nodes));
    println!(
        "{nodes} nodes, pods Ready after 3 s: medians of {pairs}, all ratios in parentheses.\n"
    );
    println!(
        "| maxUnavailable | minReadySeconds | ramp | gate | controller | ds-apply | ratio | CPU \
         | resident | requests |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let only: Vec<usize> = given.collect();
    let wanted = |(number, _): &(usize, Case)| only.is_empty() || only.contains(&(number + 1));
    for (number, case) in CASES.into_iter().enumerate().filter(wanted) {
        let namespace = format!("pace-{number}");
        println!("{}", Fleet::new(&plane, namespace, nodes, case).row(pairs));
    }
}

/// One DaemonSet on all nodes.
struct Fleet<'p> {
    plane: &'p ControlPlane,
    namespace: String,
    nodes: usize,
    case: Case,
    version: usize,
}

/// One rollout by `ds-apply`.
struct Taken {
    seconds: f64,
    sampled: Sampled,
    requests: usize,
}

impl<'p> Fleet<'p> {
    fn new(plane: &'p ControlPlane, namespace: String, nodes: usize, case: Case) -> Self {
        plane.kubectl(&["create", "namespace", &namespace]);
        if !case.gate.is_empty() {
            // Not in the same namespace, whose pods the observer counts.
            plane.kubectl(&["create", "namespace", NEIGHBOUR]);
            let other = manifest(NEIGHBOUR, NEIGHBOUR, Case::of(IntOrPercent::Int(1), 0), 0);
            plane.kubectl_stdin(&["apply", "--filename=-"], &other);
        }
        let fleet = Self { plane, namespace, nodes, case, version: 0 };
        fleet.by_controller();
        fleet.wait();
        fleet
    }

    /// Measures this many rollouts of each kind, alternately.
    fn row(mut self, pairs: usize) -> String {
        let mut measured = Vec::new();
        for _ in 0..pairs {
            let (controller, ()) = self.measure(Self::by_controller);
            let before = self.requests();
            let (seconds, sampled) = self.measure(Self::by_ds_apply);
            let requests = self.requests() - before;
            measured.push((controller, Taken { seconds, sampled, requests }));
        }
        let of_runs = |of: fn(&(f64, Taken)) -> f64| sorted(measured.iter().map(of));
        let ratios = of_runs(|(controller, taken)| taken.seconds / controller);
        let all: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
        let Case { budget, min_ready, ramp, gate } = self.case;
        #[expect(clippy::cast_precision_loss, reason = "shown without digits")]
        let [resident, requests] = [
            of_runs(|(_, taken)| (taken.sampled.resident >> 20) as f64),
            of_runs(|(_, taken)| taken.requests as f64),
        ];
        format!(
            "| {budget} | {min_ready} | {ramp} | {gate} | {:.1} s | {:.1} s | {:.3} ({}) | {:.1} s | {:.0} MiB \
             | {:.0} |",
            median(&of_runs(|(controller, _)| *controller)),
            median(&of_runs(|(_, taken)| taken.seconds)),
            median(&ratios),
            all.join(", "),
            median(&of_runs(|(_, taken)| taken.sampled.cpu.as_secs_f64())),
            median(&resident),
            median(&requests),
        )
    }

    /// The seconds of one rollout to the next version, and what it returns.
    fn measure<T>(&mut self, roll: fn(&Self) -> T) -> (f64, T) {
        self.version += 1;
        let watcher = Watcher::begin(self.plane.client(), &self.namespace, self.nodes);
        let result = roll(self);
        self.wait();
        let seen = watcher.end();
        let allowed = self.case.budget.scaled(self.nodes.try_into().unwrap());
        assert!(seen.most_unavailable <= allowed.try_into().unwrap(), "{}", seen.most_unavailable);
        let mut nodes = BTreeSet::new();
        let again: Vec<_> = seen.deleted.iter().filter(|node| !nodes.insert(*node)).collect();
        let of_these = |gone: &&Gone| again.contains(&&gone.node);
        let gone: Vec<_> = seen.gone.values().filter(of_these).collect();
        assert!(
            again.is_empty(),
            "{} pods deleted by version {}: {gone:?}",
            gone.len(),
            self.version
        );
        assert_eq!(nodes.len(), self.nodes, "each pod is replaced once");
        (seen.took().as_secs_f64(), result)
    }

    /// The requests of `ds-apply` so far, each once: a watch is logged when it begins and when it ends.
    fn requests(&self) -> usize {
        let log = self.plane.audit_log();
        let ours = log.iter().filter(|event| event["user"]["username"] == RUNNER);
        ours.map(|event| event["auditID"].to_string()).collect::<BTreeSet<_>>().len()
    }

    /// Writes the same fields as `ds-apply` does, under its field manager, so that there are no
    /// conflicts.
    fn by_controller(&self) {
        let manager = format!("--field-manager={FIELD_MANAGER}");
        let apply = ["apply", "--server-side", &manager, "--filename=-"];
        self.plane.kubectl_stdin(&apply, &self.manifest());
    }

    fn by_ds_apply(&self) -> Sampled {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.yaml");
        std::fs::write(&file, self.manifest_with_policy()).unwrap();
        let mut apply = Command::new(env!("CARGO_BIN_EXE_ds-apply"));
        // Its own default is to keep an eye on new pods for longer.
        apply.arg("--min-ready-seconds").arg(self.case.min_ready.to_string());
        apply.args(["--yes", "--ramp", self.case.ramp, "-f"]).arg(file);
        apply.arg("--kubeconfig").arg(self.plane.kubeconfig_of(RUNNER));
        process::run(apply.stdout(Stdio::null()).stderr(Stdio::null()), 0)
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
        let Self { plane: _, namespace, nodes: _, case, version } = self;
        manifest(namespace, AGENT, *case, *version)
    }

    /// The same, and the policy.
    fn manifest_with_policy(&self) -> String {
        let agent = self.manifest();
        if self.case.gate.is_empty() {
            return agent;
        }
        let namespace = &self.namespace;
        format!(
            "{agent}---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: watched}}
spec:
  selects: {{names: [{namespace}/{AGENT}]}}
  gates:
  - {{name: others, interval: 10s, pods: {{selector: {{matchLabels: {{app: {NEIGHBOUR}}}}}}}}}
"
        )
    }
}

/// The DaemonSet that is rolled out, and the one whose pods the gate looks at.
const AGENT: &str = "agent";
const NEIGHBOUR: &str = "neighbour";

fn manifest(namespace: &str, name: &str, case: Case, version: usize) -> String {
    let Case { budget, min_ready, ramp: _, gate: _ } = case;
    format!(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  minReadySeconds: {min_ready}
  selector: {{matchLabels: {{app: {name}}}}}
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: {budget}}}}}
  template:
    metadata: {{labels: {{app: {name}}}, annotations: {{ready-after: 3s}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: agent, image: 'cr.example/{name}:v{version}'}}]
"
    )
}

fn sorted(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
