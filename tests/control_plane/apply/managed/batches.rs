//! A run creates pods in batches of 1, 2, 4 and so on, each bound to its node by affinity, each
//! owned by the record.

use jiff::Timestamp;
use serde_json::json;

use super::*;

const NODES: usize = 12;

#[test]
fn pods_are_created_in_batches_like_upstreams() {
    let plane = without_controller();
    plane.create_nodes(three_zones(NODES));
    let agent = Managed::new(&plane, "made");
    let version = manifest("made", "v1", &at_most("1"));
    agent.apply(&version, &[], 0);
    agent.is_whole(&version, NODES);

    let record = agent.json(&["get", "configmap", "ds-plan-agent"]);
    let hash = agent.json(&["get", "controllerrevisions"])["items"][0]["metadata"]["labels"]
        ["controller-revision-hash"]
        .clone();
    for pod in agent.pods() {
        let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
        assert_eq!(
            metadata["ownerReferences"],
            json!([{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "ds-plan-agent",
                "uid": record["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
            }])
        );
        assert_eq!(metadata["labels"]["controller-revision-hash"], hash);
        let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            ["nodeSelectorTerms"];
        let field = json!({"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]});
        assert_eq!(*terms, json!([{"matchFields": [field]}]));
        let keys: BTreeSet<&str> = spec["tolerations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["key"].as_str().unwrap().rsplit('/').next().unwrap())
            .collect();
        let automatic = [
            "disk-pressure",
            "memory-pressure",
            "not-ready",
            "pid-pressure",
            "unreachable",
            "unschedulable",
        ];
        assert_eq!(keys, automatic.into());
    }
    let spans = creates(&plane, "made");
    assert_eq!(spans.len(), NODES);
    for before in [1, 1 + 2, 1 + 2 + 4] {
        let (earlier, later) = spans.split_at(before);
        let ended = earlier.iter().map(|(_, end)| end).max().unwrap();
        let waits = later.iter().all(|(begin, _)| begin >= ended);
        assert!(waits, "the batch after {before} creates waits for them: {spans:?}");
    }
    let beside = spans.windows(2).any(|pair| pair[1].0 < pair[0].1);
    assert!(beside, "creates of a batch do not wait for each other: {spans:?}");
}

/// The start and end of each create of a pod, according to the audit log.
fn creates(plane: &ControlPlane, namespace: &str) -> Vec<(Timestamp, Timestamp)> {
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let log = plane.audit_log();
    let creates = log.iter().filter(|event| {
        event["verb"] == "create"
            && event["objectRef"]["resource"] == "pods"
            && event["objectRef"]["namespace"] == namespace
            && event["user"]["username"] == RUNNER
            && event["stage"] == "ResponseComplete"
            && !event["requestURI"].as_str().unwrap().contains("dryRun")
    });
    let mut spans: Vec<_> = creates
        .map(|it| (time(&it["requestReceivedTimestamp"]), time(&it["stageTimestamp"])))
        .collect();
    spans.sort();
    spans
}
