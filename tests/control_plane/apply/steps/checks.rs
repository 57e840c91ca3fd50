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
        a_rehearsal_of_a_recorded_series,
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
    let asked = it.staged.fleet.checks(&it.staged.version("v1"), &[]);
    ends(&asked, 0, &["gate errors: pass", "the last good template is live already"]);
    // The commit before comes again, while the canary has errors: they say nothing about it.
    it.set(["5", "5"]);
    scraped(&it.server, "min(agent_errors)", 5.0);
    ends(&it.staged.run("v1", &[]), 0, &["the last good template is live already", "done"]);
    it.staged.is_complete("v1");
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

/// What a run of `-o json` did, as far as a rehearsal can predict it.
#[derive(Debug, PartialEq)]
struct Course {
    deleted: Vec<String>,
    /// Kind and step of each wait.
    waits: Vec<(String, String)>,
    exit: i64,
    /// Name, code of the reason, and value of the gate that failed.
    gate: [Value; 3],
}

impl Course {
    /// The course, and the seconds from the first delete to the end.
    fn of(output: &Output) -> (Self, i64) {
        let text = stdout(output);
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let events: Vec<Value> = events.collect();
        let of = |kind: &'static str| events.iter().filter(move |event| event["event"] == kind);
        let time = |event: &Value| event["time"].as_str().unwrap().parse::<Timestamp>().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ended = of("ended").next().unwrap();
        let gate = &ended["failedGate"];
        let waits = of("waitingFor").flat_map(|it| it["waitsFor"].as_array().unwrap());
        let mut waits: Vec<_> = waits.map(|it| (text(&it["kind"]), text(&it["step"]))).collect();
        waits.dedup();
        let course = Self {
            deleted: of("deleting").map(|it| text(&it["node"])).collect(),
            waits,
            exit: ended["exitCode"].as_i64().unwrap(),
            gate: [&gate["check"], &gate["reason"]["code"], &gate["reason"]["value"]]
                .map(Clone::clone),
        };
        let began = time(of("deleting").next().unwrap());
        (course, time(ended).duration_since(began).as_secs())
    }
}

/// Errors begin some time after the start of the recording, and as long after the start of the run.
fn a_rehearsal_of_a_recorded_series(plane: &ControlPlane) {
    const GOOD: Duration = Duration::from_secs(25);
    let it = Gated::new(plane, "gate-recorded", "1m", OF_NODES);
    thread::sleep(GOOD);
    it.set(["5", "5"]);
    scraped(&it.server, "min(agent_errors)", 5.0);
    thread::sleep(Duration::from_secs(20));
    // The recording begins with the good time; its end is now.
    let folder = tempfile::tempdir().unwrap();
    let answers = folder.path().join("answers.json");
    let record = format!("--record={}", answers.display());
    let checked = it.staged.fleet.checks(&it.staged.version("v2"), &["--over=45s", &record]);
    assert_eq!(checked.status.code(), Some(4), "{}", output_text(&checked));
    it.set(["0", "0"]);
    scraped(&it.server, "max(agent_errors)", 0.0);
    // A pod that becomes Ready is asked about from the beginning of that second.
    thread::sleep(Duration::from_secs(1));

    let answers = format!("--check-answers={}", answers.display());
    let rehearsal = it.staged.run("v2", &["--rehearse", &answers, "--wait=5m", "-o", "json"]);
    assert_eq!(it.staged.live().image, "v1", "a rehearsal changes nothing");
    let real = thread::scope(|scope| {
        let run = scope.spawn(|| it.staged.run("v2", &["--wait=5m", "-o", "json"]));
        // The rehearsal begins with its first delete; a real run has to be started first.
        wait_until("the canary", SOON, || it.staged.pods("v2").len() == 1);
        thread::sleep(GOOD);
        it.set(["5", "5"]);
        run.join().unwrap()
    });
    let ((predicted, after), (done, took)) = (Course::of(&rehearsal), Course::of(&real));
    assert_eq!(predicted, done, "{}", output_text(&real));
    assert_eq!((done.exit, done.deleted.len()), (4, 1));
    assert_eq!(done.waits, [("soak".to_owned(), "canary".to_owned())]);
    assert!((after - took).abs() <= 8, "predicted {after} s, took {took} s");
    it.is_aborted();
}
