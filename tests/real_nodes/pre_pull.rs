//! Images that are pulled before pods are replaced (`prePull` of a policy), by real kubelets.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agent::Agent;
use crate::fleet::{Ended, Fleet, ended};
use crate::harness::wait_until;
use crate::nodes::{NAMES, Part, RealNodes, SLOW_PULL};

const SOON: Duration = Duration::from_mins(2);

/// All pullers, whatever their DaemonSet is.
const PULLERS: &str = "--selector=ds-plan.dev/pre-pull";

/// The manifest of a version with two images that take long to be pulled: one is of an init
/// container.
fn with_init(manifest: &str, registry: &str) -> String {
    // A sidecar, which waits: the program does nothing that ends at once with success.
    let init = format!(
        "      initContainers:\n      - {{name: setup, image: '{registry}/slow:3', restartPolicy: Always, \
         command: [/agent, pause]}}\n"
    );
    manifest.replace("      containers:\n", &format!("{init}      containers:\n"))
}

/// A second container with an image that does not exist.
fn with_missing(manifest: &str, registry: &str) -> String {
    let second = format!("      - {{name: second, image: '{registry}/agent:none'}}\n");
    format!("{}\n{second}", manifest.trim_end())
}

/// The policy with these settings, as a further document.
fn policy(fleet: &Fleet<'_>, pre_pull: &str) -> String {
    let namespace = &fleet.namespace;
    format!(
        "---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: careful}}
spec:
  selects: {{names: [{namespace}/agent]}}
  minReadySeconds: 0
  prePull: {pre_pull}
"
    )
}

/// The names of pods that exist and pull images.
fn pullers(fleet: &Fleet<'_>) -> Vec<String> {
    let names = fleet.kubectl(&["get", "pods", PULLERS, "--output=name"]);
    names.split_whitespace().map(str::to_owned).collect()
}

fn no_pullers_are_left(fleet: &Fleet<'_>) {
    wait_until("all pods that pull images are gone", SOON, || pullers(fleet).is_empty());
}

#[test]
fn images_are_pulled_before_pods_are_replaced() {
    let Some(nodes) = RealNodes::start() else { return };
    let nodes = &nodes;
    thread::scope(|scope| {
        scope.spawn(|| a_missing_second_image_stops_before_any_delete(nodes));
        scope.spawn(|| leftovers_of_a_killed_run_are_removed(nodes));
    });
    // They take the images from each other, or disturb a node.
    nodes_are_silent_for_a_shorter_time(nodes);
    a_stuck_node_costs_itself(nodes);
}

/// The same update without and with `prePull`: slow images of an init and another container. The
/// second namespace has other images, which no node has yet.
fn nodes_are_silent_for_a_shorter_time(nodes: &RealNodes) {
    let mut longest = BTreeMap::new();
    for (name, image, pre_pull) in
        [("pull-late", "slow:4", "null"), ("pull-first", "slow:5", "{parallel: 3, timeout: 2m}")]
    {
        let fleet = Fleet::new(nodes, name, &Agent::new("v1"));
        let to = Agent::new("v2").image(image);
        let extra = |manifest: String, registry: &str| {
            // `slow:3` is on the nodes after the first update.
            let init = if pre_pull == "null" { manifest } else { with_init(&manifest, registry) };
            init + &policy(&fleet, pre_pull)
        };
        let asking = fleet.asking();
        let mut run = fleet.program_of(&to, extra, &[]).start();
        if pre_pull != "null" {
            no_delete_before_images(&fleet, &mut || run.has_ended());
        }
        let run = ended(&run.wait(), Instant::now());
        let answers = asking.end();
        assert_eq!(run.code, Some(0), "{name}: {}", run.reported);
        println!("{name}: each node silent for at most {:?}", answers.longest());
        longest.insert(name, answers.longest());
        if pre_pull != "null" {
            assert!(run.reported.contains("a: pulling 2 images"), "{}", run.reported);
            no_pullers_are_left(&fleet);
        }
    }
    assert!(longest["pull-late"] >= SLOW_PULL, "{longest:?}");
    assert!(longest["pull-first"] < SLOW_PULL, "{longest:?}");
}

/// Until a pod of the old version is deleted, checks what the first puller that is through shows: the
/// images of all containers are there, and nothing of them ran.
fn no_delete_before_images(fleet: &Fleet<'_>, has_ended: &mut dyn FnMut() -> bool) {
    let mut proofs = 0;
    wait_until("a puller with all images, or the end", SOON, || {
        let pods = fleet.kubectl(&["get", "pods", PULLERS, "--output=json"]);
        let pods: Value = serde_json::from_str(&pods).unwrap();
        for pod in pods["items"].as_array().unwrap() {
            let statuses = pod["status"]["containerStatuses"].as_array();
            let through = statuses.into_iter().flatten().filter(|it| it["imageID"] != "");
            for status in through {
                let ended = &status["state"]["terminated"];
                assert!(ended.is_null() || ended["exitCode"] == 128, "{status}");
                assert!(status["state"].get("running").is_none(), "{status}");
                proofs += usize::from(ended["exitCode"] == 128);
            }
            let spec = &pod["spec"];
            assert_eq!(spec["automountServiceAccountToken"], false);
            assert!(spec.get("volumes").is_none_or(Value::is_null), "{spec}");
            assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "Lease");
        }
        proofs > 0 || has_ended()
    });
    assert!(proofs > 0, "no puller was seen");
    assert!(fleet.witness.nodes_with("v2").len() < NAMES.len());
}

fn a_missing_second_image_stops_before_any_delete(nodes: &RealNodes) {
    let fleet = Fleet::new(nodes, "second-missing", &Agent::new("v1"));
    let asking = fleet.asking();
    let extra = |manifest: String, registry: &str| {
        with_missing(&manifest, registry) + &policy(&fleet, "{timeout: 20s}")
    };
    let begin = Instant::now();
    let run = ended(&fleet.program_of(&Agent::new("v2"), extra, &[]).run(), begin);
    println!("second-missing: {}", run.reported.lines().last().unwrap_or_default());
    assert_eq!(run.code, Some(4), "{}", run.reported);
    for node in NAMES {
        let words = format!("{node}: {}/agent:none not pulled after", nodes.registry());
        assert!(run.reported.contains(&words), "{words}: {}", run.reported);
    }
    let words = ["ErrImagePull", "ImagePullBackOff"];
    assert!(words.iter().any(|word| run.reported.contains(word)), "{}", run.reported);
    let silent = asking.end().ever_silent();
    assert_eq!((silent, fleet.witness.nodes_with("v2").len()), (0, 0), "{}", run.reported);
    // Not even the target was written.
    assert_eq!(fleet.field(".spec.updateStrategy.type"), "RollingUpdate");
    assert_eq!(fleet.field(".spec.template.metadata.labels.version"), "v1");
    no_pullers_are_left(&fleet);
}

fn leftovers_of_a_killed_run_are_removed(nodes: &RealNodes) {
    let fleet = Fleet::new(nodes, "killed", &Agent::new("v1"));
    let extra = |manifest: String, _: &str| manifest + &policy(&fleet, "{timeout: 2m}");
    let mut run = fleet.program_of(&Agent::new("v2").image("slow:6"), extra, &[]).start();
    wait_until("all nodes pull", SOON, || pullers(&fleet).len() == NAMES.len() || run.has_ended());
    run.kill();
    let left = pullers(&fleet);
    assert_eq!(left.len(), NAMES.len(), "the run was killed while all nodes pulled");
    // Another version, which needs other images.
    let begin = Instant::now();
    let run = ended(&fleet.program_of(&Agent::new("v3").image("agent:2"), extra, &[]).run(), begin);
    assert_eq!(run.code, Some(0), "{}", run.reported);
    no_pullers_are_left(&fleet);
    fleet.wait_until_all_answer(&Agent::new("v3"));
}

/// A node whose container runtime hangs gets no image: the others are updated.
fn a_stuck_node_costs_itself(nodes: &RealNodes) {
    let fleet = Fleet::new(nodes, "stuck", &Agent::new("v1"));
    let extra = |manifest: String, _: &str| manifest + &policy(&fleet, "{timeout: 15s}");
    let to = Agent::new("v2").image("agent:3");
    // Its kubelet reports the node as Ready for half a minute more.
    nodes.freeze("c", Part::Containerd);
    let begin = Instant::now();
    let run = ended(&fleet.program_of(&to, extra, &[]).run(), begin);
    nodes.thaw("c", Part::Containerd);
    println!("stuck: {} s", run.took.as_secs());
    let Ended { code, reported, .. } = &run;
    assert_eq!(*code, Some(4), "{reported}");
    assert!(reported.contains("images could not be pulled to 1 node"), "{reported}");
    assert!(reported.contains("c: its images not pulled after"), "{reported}");
    let updated: Vec<String> = fleet.witness.nodes_with("v2").into_iter().collect();
    assert_eq!(updated, ["a", "b"], "{reported}");
    // Its old pod serves on, and no controller replaces it.
    assert_eq!(fleet.answers()[2].as_deref(), Some("v1"), "{reported}");
    assert_eq!(fleet.field(".spec.updateStrategy.type"), "OnDelete");
    nodes.wait_until_ready();
    let again = ended(&fleet.program_of(&to, extra, &[]).run(), begin);
    assert_eq!(again.code, Some(0), "{}", again.reported);
    fleet.wait_until_all_answer(&to);
    no_pullers_are_left(&fleet);
}
