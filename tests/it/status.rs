//! `ds-plan status` and `ds-plan explain`: the live cluster, without any manifest.

use insta::assert_snapshot;

use testkit::fixture::{AGENT, cluster_with, sandbox};
use testkit::sandbox::Sandbox;

/// The agent runs on `node-1`; the pod of `node-2` is missing.
fn half_way() -> Sandbox {
    let sandbox = sandbox();
    sandbox.write("cluster.json", cluster_with(AGENT, &["node-1"]).to_string());
    sandbox
}

#[test]
fn status_as_text_and_names() {
    let sandbox = half_way();
    assert_snapshot!(sandbox.ds_plan("status --snapshot cluster.json"), @"
    exit 0
    --- stdout
    NAMESPACE   NAME    DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   NODE SELECTOR   AGE
    logging     agent   2         1         1       1            1           <none>          2m

    logging/agent   2 nodes need attention
        AVAILABLE is 1 in the status, ds-plan counts 0: pods that terminate, or are Ready for too short a time, do not count here
        node-1   pod Ready for less than 10s (`minReadySeconds`)
        node-2   node has no pod yet
    ");
    assert_snapshot!(sandbox.ds_plan("status --snapshot cluster.json -o name"), @"
    exit 0
    --- stdout
    logging/agent
    ");
}

#[test]
fn status_of_some_and_of_none() {
    let sandbox = half_way();
    for (flags, code, want) in [
        ("logging/agent", 0, "logging/agent\n"),
        ("-n logging", 0, "logging/agent\n"),
        ("-l tier=node", 0, "logging/agent\n"),
        ("-n default", 0, ""),
        ("-l tier!=node", 0, ""),
        ("logging/other", 1, ""),
    ] {
        let run = sandbox.ds_plan(&format!("status --snapshot cluster.json -o name {flags}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(code), want), "{flags}\n{run}");
    }
    assert_snapshot!(sandbox.ds_plan("status --snapshot cluster.json -n default"), @"
    exit 0
    --- stdout
    No DaemonSets found.
    ");
}

#[test]
fn explanations() {
    let sandbox = half_way();
    let explain = |what: &str| sandbox.ds_plan(&format!("explain --snapshot cluster.json {what}"));
    assert_snapshot!(explain("logging/agent node-1"), @"
    exit 0
    --- stdout
    logging/agent on node node-1, as it is in the cluster

        -           nodeName                 nodeName is not set
        -           nodeSelector             no nodeSelector
        -           required node affinity   no required node affinity
        -           taints                   no taints

    A pod may start here, and stay.
    pod agent-node-1 kept: runs the target revision

    nothing happens: runs the target revision; pod Ready for less than 10s (`minReadySeconds`)
    ");
    assert_snapshot!(explain("logging/agent gpu-1"), @"
    exit 0
    --- stdout
    logging/agent on node gpu-1, as it is in the cluster

        -           nodeName                 nodeName is not set
        -           nodeSelector             no nodeSelector
        -           required node affinity   no required node affinity
        stay only   taint gpu:NoSchedule     taint gpu:NoSchedule is not tolerated: no pod starts, a running pod is kept

    A pod here keeps running; a new pod may not start here.
    No pod on this node.

    nothing happens: taint gpu:NoSchedule is not tolerated
    ");
    assert_snapshot!(explain("logging/agent nod-1"), @"
    exit 1
    --- stderr
    error: node nod-1 not found in the cluster
    hint: a similar node exists: node-1
    ");
    assert_snapshot!(explain("logging/other node-1"), @"
    exit 1
    --- stderr
    error: DaemonSet logging/other not found in the cluster
    hint: DaemonSets in the cluster: logging/agent
    ");
    assert_snapshot!(explain("logging/agent node-1 -n default"), @"
    exit 64
    --- stderr
    error: logging/agent is not in the namespace of -n: default
    hint: leave out -n, or the namespace in the name
    ");
}

/// The plan of a new image: the same node, the same action and reason as `ds-plan plan` prints.
#[test]
fn explanations_of_a_plan() {
    let sandbox = half_way();
    sandbox.write("next.yaml", AGENT.replace("agent:1", "agent:2"));
    let run = |what: &str| sandbox.ds_plan(&format!("{what} --snapshot cluster.json -f next.yaml"));
    assert_snapshot!(run("explain logging/agent node-1"), @"
    exit 0
    --- stdout
    logging/agent on node node-1, as planned in next.yaml

        -           nodeName                 nodeName is not set
        -           nodeSelector             no nodeSelector
        -           required node affinity   no required node affinity
        -           taints                   no taints

    A pod may start here, and stay.
    pod agent-node-1 deleted: runs revision 1

    -/+ its pod is deleted, then recreated: runs revision 1
    ");
    let plan = run("plan -v").stdout;
    assert!(plan.contains("-/+ node-1   runs revision 1"), "{plan}");
    assert_snapshot!(run("explain logging/other node-1"), @"
    exit 1
    --- stderr
    error: DaemonSet logging/other not found in the manifests
    hint: DaemonSets in the manifests: logging/agent
    ");
    assert_snapshot!(run("explain logging/agent nod-1"), @"
    exit 1
    --- stderr
    error: node nod-1 not found in the cluster
    hint: a similar node exists: node-1
    ");
}

#[test]
fn documents_keep_to_their_schemas() {
    let sandbox = half_way();
    for (name, line) in [
        ("plan", "plan -f agent.yaml --all-nodes"),
        ("status", "status"),
        ("explanation", "explain logging/agent node-1"),
        ("explanation", "explain logging/agent node-1 -f agent.yaml"),
    ] {
        let schema = sandbox.ds_plan(&format!("schema {name}")).stdout;
        let schema = serde_json::from_str(&schema).unwrap();
        let document = sandbox.ds_plan(&format!("{line} --snapshot cluster.json -o json")).stdout;
        let mut document: serde_json::Value = serde_json::from_str(&document).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&document), "{name}");
        // The schema rejects it.
        document["kind"] = "Nonsense".into();
        assert!(!validator.is_valid(&document), "{name}");
    }
}
