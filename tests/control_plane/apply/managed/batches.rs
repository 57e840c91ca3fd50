//! How a run creates pods: in portions of 1, 2, 4 and so on, each aimed at its node, each owned by
//! the ledger.

use serde_json::json;

use super::*;

const NODES: usize = 12;

#[test]
fn pods_are_made_in_portions_and_as_upstream_makes_them() {
    let plane = without_controller();
    plane.create_nodes(three_zones(NODES));
    let agent = Managed::new(&plane, "made");
    let version = manifest("made", "v1", &at_most("1"));
    agent.apply(&version, &[], 0);
    agent.is_whole(&version, NODES);

    let ledger = agent.json(&["get", "configmap", "ds-plan-agent"]);
    let hash = agent.json(&["get", "controllerrevisions"])["items"][0]["metadata"]["labels"]
        ["controller-revision-hash"]
        .clone();
    for pod in agent.pods() {
        let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
        assert_eq!(
            metadata["ownerReferences"],
            json!([{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "ds-plan-agent",
                "uid": ledger["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
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
    assert_eq!(portions(&plane, "made"), [1, 2, 4, 5]);
}

/// How many pods were created beside each other, as the API server tells it: what begins when all
/// before it has ended begins a portion.
fn portions(plane: &ControlPlane, namespace: &str) -> Vec<usize> {
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
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
    let (mut portions, mut ended) = (Vec::new(), jiff::Timestamp::UNIX_EPOCH);
    for (begin, end) in spans {
        if begin >= ended {
            portions.push(0);
        }
        *portions.last_mut().unwrap() += 1;
        ended = ended.max(end);
    }
    portions
}
