//! `sharedBudget` of policies: several DaemonSets disturb few nodes together, and each node once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::{Run, Sandbox};

/// `c` goes first on each node, then `a`, then `b`.
const ORDER: [&str; 3] = ["c", "a", "b"];

const BUDGET: usize = 2;

/// Every new pod of `a` crashes.
const A_CRASHES: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: Faults
images:
  - {fault: crashLoops, image: 'registry.example/a:2', after: 1s}
";

fn policy(spec: &str) -> String {
    format!(
        "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: agents}}
spec:
  selects: {{names: [logging/c, logging/a, logging/b]}}
{spec}
"
    )
}

fn manifest(name: &str, version: u32, spec: &str) -> String {
    let own = AGENT.replace("agent:1", &format!("agent:{version}")).replace("agent", name);
    own.replacen("  selector:", &format!("{spec}\n  selector:"), 1)
}

const THREE: &str = "  updateStrategy: {rollingUpdate: {maxUnavailable: 3}}";

/// Six nodes, on which the three DaemonSets run version 1; the source has version 2.
fn sandbox(spec: &str) -> Sandbox {
    let mut nodes = cluster();
    let items = nodes["items"].as_array_mut().unwrap();
    let node = items[0].clone();
    items.retain(|it| it["kind"] != "Node");
    for at in 1..=6 {
        let mut node = node.clone();
        node["metadata"]["name"] = format!("n-{at}").into();
        node["metadata"]["uid"] = format!("uid-n-{at}").into();
        items.push(node);
    }
    let policy = policy(spec);
    let sandbox =
        Sandbox::with(&[("cluster.json", &nodes.to_string()), ("faults.yaml", A_CRASHES)]);
    sandbox.write("deploy/policies.yaml", policy);
    write(&sandbox, 1);
    let run = sandbox.ds_apply("--rehearse --snapshot cluster.json --save before.json -f deploy");
    assert_eq!(run.code, Some(0), "{run}");
    write(&sandbox, 2);
    sandbox
}

fn write(sandbox: &Sandbox, version: u32) {
    for name in ORDER {
        sandbox.write(&format!("deploy/{name}.yaml"), manifest(name, version, THREE));
    }
}

fn apply(sandbox: &Sandbox, flags: &str) -> Run {
    sandbox.ds_apply(&format!(
        "--rehearse --seed 1 --save after.json --snapshot before.json -f deploy -o json {flags}"
    ))
}

/// What a run has done to the nodes.
#[derive(Default)]
struct Seen {
    /// The DaemonSets of which each node has the new pod.
    done: BTreeMap<String, Vec<String>>,
    /// Nodes without an available pod, each with its DaemonSet.
    disturbed: BTreeSet<(String, String)>,
    /// How often each node was begun while nothing of it was begun or left to do.
    begun: BTreeMap<String, usize>,
    /// The most nodes that were begun and not finished at one time.
    most: usize,
    /// The largest number of nodes that one DaemonSet has had in flight.
    waits: Vec<String>,
}

impl Seen {
    /// The events of a run that is to replace this number of pods on each node; the laws hold after
    /// each of them.
    fn of(run: &Run, each: usize) -> Self {
        let mut seen = Self::default();
        for line in run.stdout.lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{run}"));
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            let (daemon_set, node) = (text("daemonSet").replace("logging/", ""), text("node"));
            match event["event"].as_str().unwrap_or_default() {
                "deleting" => seen.begins(&node, &daemon_set, run),
                "recovered" => {
                    assert!(seen.disturbed.remove(&(node.clone(), daemon_set.clone())));
                    seen.done.entry(node).or_default().push(daemon_set);
                }
                "ended" => seen.waits.extend(event["waitsFor"][0]["kind"].as_str().map(|kind| {
                    format!("{daemon_set} {kind} {}", event["waitsFor"][0]["daemonSet"])
                })),
                _others => {}
            }
            let is_open = |node: &&String| seen.done.get(*node).is_some_and(|it| it.len() < each);
            let open: BTreeSet<&String> = seen.done.keys().filter(is_open).collect();
            let taken = seen.disturbed.iter().map(|(node, _)| node).chain(open);
            seen.most = seen.most.max(taken.collect::<BTreeSet<_>>().len());
        }
        seen
    }

    fn begins(&mut self, node: &str, daemon_set: &str, run: &Run) {
        let is_node = |(other, _): &&(String, String)| other == node;
        assert_eq!(self.disturbed.iter().find(is_node), None, "two at once on {node}: {run}");
        if self.done.get(node).is_none_or(Vec::is_empty) {
            *self.begun.entry(node.to_owned()).or_default() += 1;
        }
        self.disturbed.insert((node.to_owned(), daemon_set.to_owned()));
    }
}

#[test]
fn each_node_is_disturbed_once_for_all_daemon_sets() {
    let sandbox = sandbox("  sharedBudget: 2");
    let run = apply(&sandbox, "");
    assert_eq!(run.code, Some(0), "{run}");
    let seen = Seen::of(&run, 3);
    assert_eq!((seen.begun.len(), seen.most), (6, BUDGET), "{run}");
    assert!(seen.begun.values().all(|times| *times == 1), "{run}");
    assert!(seen.done.values().all(|order| *order == ORDER), "{:?}", seen.done);
    let plan = sandbox.ds_plan("--snapshot before.json -f deploy").stdout;
    let shared = "    Shared budget: at most 2 nodes disturbed at once, together with logging/c";
    assert_eq!(plan.matches(shared).count(), 2, "{plan}");
}

#[test]
fn a_percentage_is_of_all_nodes_together() {
    let sandbox = sandbox("  sharedBudget: 17%");
    let plan = sandbox.ds_plan("--snapshot before.json -f deploy -o json");
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    for one in plan["daemonSets"].as_array().unwrap() {
        let names: Vec<String> = ORDER.iter().map(|name| format!("logging/{name}")).collect();
        assert_eq!(one["sharedBudget"]["nodes"], 2, "17% of 6, rounded up");
        assert_eq!(one["sharedBudget"]["daemonSets"], serde_json::json!(names));
        assert_eq!(one["waves"][0]["sharedBudget"], 2);
    }
}

/// Canaries are the same nodes for all; and while one of them soaks, no node begins for another.
#[test]
fn daemon_sets_take_their_steps_together() {
    let sandbox = sandbox("  sharedBudget: 2\n  steps: [{name: canary, nodes: 2, soak: 5m}]");
    let run = apply(&sandbox, "");
    assert_eq!(run.code, Some(8), "{run}");
    let seen = Seen::of(&run, 3);
    assert_eq!((seen.done.len(), seen.disturbed.len()), (2, 0), "{run}");
    assert!(seen.done.values().all(|order| *order == ORDER), "{:?}", seen.done);
    assert_eq!(seen.waits.len(), 3, "{:?}", seen.waits);
    let run = apply(&sandbox, "--wait 1h");
    assert_eq!(run.code, Some(0), "{run}");
    let seen = Seen::of(&run, 3);
    assert!(seen.begun.values().all(|times| *times == 1) && seen.most == BUDGET, "{run}");
}

/// The others begin no more nodes, unless they are to continue. What was begun comes first later.
#[test]
fn one_that_fails_stops_the_others() {
    let sandbox = sandbox("  sharedBudget: 2");
    let run = apply(&sandbox, "--fault faults.yaml");
    assert_eq!(run.code, Some(4), "{run}");
    let seen = Seen::of(&run, 3);
    let stopped = r#"b sharedBudget "logging/a", c sharedBudget "logging/a""#;
    assert_eq!(seen.waits.join(", "), stopped, "{run}");
    let begun: BTreeSet<&String> = seen.begun.keys().collect();
    assert!(begun.len() <= BUDGET, "{run}");

    fs::copy(sandbox.path("after.json"), sandbox.path("before.json")).unwrap();
    sandbox.write("deploy/a.yaml", manifest("a", 3, THREE));
    let run = apply(&sandbox, "");
    assert_eq!(run.code, Some(0), "{run}");
    let again = Seen::of(&run, 3);
    let all: Vec<&String> = again.begun.keys().collect();
    assert_eq!(all.len(), 6, "{run}");

    let sandbox = self::sandbox("  sharedBudget: 2");
    let run = apply(&sandbox, "--fault faults.yaml --keep-going");
    assert_eq!(run.code, Some(4), "{run}");
    let recovered = |name: &str| {
        let name = format!(r#""daemonSet":"logging/{name}""#);
        let lines = run.stdout.lines().filter(|line| line.contains(&name));
        lines.filter(|line| line.contains(r#""event":"recovered""#)).count()
    };
    assert_eq!(ORDER.map(recovered), [6, 0, 6], "{run}");
}

/// Pods of a sibling that are down take up slots, whatever the cause, though it is not applied.
#[test]
fn a_sibling_that_is_not_applied_counts() {
    let sandbox = sandbox("  sharedBudget: 2");
    let text = fs::read_to_string(sandbox.path("before.json")).unwrap();
    let mut cluster: Value = serde_json::from_str(&text).unwrap();
    for pod in cluster["items"].as_array_mut().unwrap() {
        let is_it = pod["kind"] == "Pod"
            && pod["metadata"]["labels"]["app"] == "b"
            && ["n-5", "n-6"].iter().any(|node| pod["spec"]["nodeName"] == *node);
        if !is_it {
            continue;
        }
        for condition in pod["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Ready" {
                condition["status"] = "False".into();
            }
        }
        let container = &mut pod["status"]["containerStatuses"][0];
        container["ready"] = false.into();
        container["state"] = serde_json::json!({"waiting": {"reason": "CrashLoopBackOff"}});
    }
    sandbox.write("before.json", cluster.to_string());
    let run = apply(&sandbox, "logging/a logging/c");
    assert_eq!(run.code, Some(8), "{run}");
    let seen = Seen::of(&run, 2);
    let nodes: Vec<&String> = seen.done.keys().collect();
    assert_eq!(nodes, ["n-5", "n-6"], "only nodes that are disturbed already: {run}");
    assert!(seen.waits.iter().any(|wait| wait == "c sharedBudget null"), "{:?}", seen.waits);
}

/// The DaemonSet controller chooses the nodes of a surge.
#[test]
fn a_shared_budget_does_not_surge() {
    let sandbox = sandbox("  sharedBudget: 2");
    let surge = "  updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}";
    sandbox.write("deploy/a.yaml", manifest("a", 2, surge));
    let run = apply(&sandbox, "logging/a");
    assert_eq!(run.code, Some(6), "{run}");
    assert!(run.stderr.contains("policy agents has sharedBudget, but with `maxSurge`"), "{run}");
}
