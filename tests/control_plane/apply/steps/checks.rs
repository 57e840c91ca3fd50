//! Gates that a real Prometheus answers: it scrapes an exporter of each scenario once a second.

use super::*;
use crate::checks::{Exporter, Prometheus, scraped};

#[test]
fn gates_decide_by_what_prometheus_knows() {
    side_by_side(&[
        a_threshold_crossed_between_two_runs,
        prometheus_is_down,
        answers_without_a_number,
        answers_with_gaps,
        a_bad_second_series,
    ]);
}

/// A DaemonSet with one canary, whose gate is a query.
struct Gated<'p> {
    staged: Staged<'p>,
    exporter: Exporter,
    server: Prometheus,
}

impl<'p> Gated<'p> {
    /// Two nodes without errors. `gate` has the rest of the fields of the query.
    fn new(plane: &'p ControlPlane, namespace: &str, soak: &str, gate: &str) -> Self {
        let exporter = Exporter::start();
        let server = Prometheus::start(&[&exporter]);
        let address = server.address();
        // Of the others, only the answer counts, however slow this machine is.
        let unknown_for = if namespace == "gate-down" { "8s" } else { "1h" };
        let policy = format!(
            "  steps: [{{name: canary, nodes: 1, soak: {soak}}}]\n  gates:\n  - name: errors\n    \
             interval: 1s\n    unknownFor: {unknown_for}\n    prometheus: {{address: '{address}', {gate}}}"
        );
        let staged = Staged::new(plane, namespace, 2, &policy);
        let it = Self { staged, exporter, server };
        it.set(["0", "0"]);
        scraped(&it.server, "count(agent_errors)", 2.0);
        it
    }

    /// Sets the errors of both nodes.
    fn set(&self, errors: [&str; 2]) {
        let namespace = &self.staged.fleet.namespace;
        let line = |(at, value)| format!("agent_errors{{node=\"{namespace}-{at:02}\"}} {value}");
        let lines: Vec<String> = errors.into_iter().enumerate().map(line).collect();
        self.exporter.set(&lines.join("\n"));
    }

    /// Runs until the canary soaks, and returns the end of the soak.
    fn begins(&self) -> Timestamp {
        self.staged.soaks().until()
    }

    fn run(&self, code: i32, words: &[&str]) {
        ends(&self.staged.run("v2", &[]), code, words);
    }

    /// The good template is live again; the canary stays, to be looked at.
    fn is_aborted(&self) {
        assert_eq!(self.staged.live().image, "v1");
        assert_eq!(self.staged.nodes_with("v2").len(), 1);
    }

    /// The one canary is still there, and nothing else was touched.
    fn is_as_it_was(&self, canaries: &BTreeMap<String, String>) {
        assert_eq!(canaries.len(), 1);
        assert_eq!(self.staged.pods("v2"), *canaries);
        assert_eq!(self.staged.live().image, "v1");
    }
}

const OF_NODES: &str = "query: 'agent_errors{node=~\"{{nodes}}\"}', max: 0.01";

/// Nobody was running, and it is fine again when the next run comes.
fn a_threshold_crossed_between_two_runs(plane: &ControlPlane) {
    let it = Gated::new(plane, "gate-crossed", "10s", OF_NODES);
    let until = it.begins();
    let canary = it.staged.nodes_with("v2").pop_first().unwrap();
    it.set(["5", "5"]);
    scraped(&it.server, "min(agent_errors)", 5.0);
    it.set(["0", "0"]);
    scraped(&it.server, "max(agent_errors)", 0.0);
    sleep_past(until);
    it.run(
        4,
        &[
            "aborted: gate errors failed: 5 at ",
            ", at most 0.01 allowed, of {__name__=agent_errors, ",
            &format!("with new pods on 1 node ({canary})"),
        ],
    );
    it.is_aborted();
}

/// Neither on nor back; past `unknownFor` a person is called, and it continues when it can.
fn prometheus_is_down(plane: &ControlPlane) {
    let mut it = Gated::new(plane, "gate-down", "3s", OF_NODES);
    let until = it.begins();
    let canaries = it.staged.pods("v2");
    it.server.kill();
    sleep_past(until);
    it.run(8, &["errors", "cannot be reached: Connection refused"]);
    it.is_as_it_was(&canaries);
    thread::sleep(Duration::from_secs(9));
    it.run(4, &["unknown for ", "at most 8s allowed (`unknownFor`)", "cannot be reached"]);
    it.is_as_it_was(&canaries);
    it.server.restart();
    // Its last step needs a sample after its last pod, in the next second.
    ends(&it.staged.run("v2", &["--wait=1m"]), 0, &["done"]);
    it.staged.is_complete("v2");
}

fn answers_without_a_number(plane: &ControlPlane) {
    for (namespace, gate, sample, reason) in [
        ("gate-nan", OF_NODES, "NaN", "not a number at "),
        ("gate-misspelt", "query: agent_erors, max: 0.01", "0", "the query has no series"),
        (
            "gate-warned",
            "query: 'quantile(2, agent_errors)', max: 0.01",
            "0",
            "quantile value should be between 0 and 1",
        ),
    ] {
        let it = Gated::new(plane, namespace, "3s", gate);
        it.set([sample, sample]);
        thread::sleep(Duration::from_secs(2));
        ends(&it.staged.run("v2", &[]), 8, &[]);
        let canaries = it.staged.pods("v2");
        thread::sleep(Duration::from_secs(4));
        it.run(8, &[reason]);
        it.is_as_it_was(&canaries);
    }
}

/// More than a tenth of the samples is missing.
fn answers_with_gaps(plane: &ControlPlane) {
    let it = Gated::new(plane, "gate-gaps", "12s", OF_NODES);
    let until = it.begins();
    let canaries = it.staged.pods("v2");
    it.exporter.set("");
    thread::sleep(Duration::from_secs(5));
    it.set(["0", "0"]);
    sleep_past(until);
    it.run(8, &["samples missing"]);
    it.is_as_it_was(&canaries);
}

/// One series is fine, the other one is not.
fn a_bad_second_series(plane: &ControlPlane) {
    let it = Gated::new(plane, "gate-second", "3s", "query: agent_errors, max: 0.01");
    it.set(["0", "0.5"]);
    scraped(&it.server, "max(agent_errors)", 0.5);
    thread::sleep(Duration::from_secs(1));
    it.run(4, &["aborted: gate errors failed: 0.5 at ", "node=gate-second-01"]);
    it.is_aborted();
}
