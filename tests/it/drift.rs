//! `ds-plan drift`: the deviations, and the client that caused each.

use insta::assert_snapshot;
use serde_json::json;

use testkit::fixture::{AGENT, cluster_with, of_kind, sandbox};
use testkit::sandbox::{Run, Sandbox};

fn drift(sandbox: &Sandbox, line: &str) -> Run {
    sandbox.ds_plan(&format!("drift -f agent.yaml --snapshot cluster.json {line}"))
}

#[test]
fn no_drift() {
    let sandbox = sandbox();
    sandbox.write("cluster.json", cluster_with(AGENT, &["node-1", "node-2"]).to_string());
    assert_snapshot!(drift(&sandbox, ""), @"
    exit 0
    --- stdout
    Drift: none. 1 DaemonSet in agent.yaml; cluster, 3 nodes, as recorded in cluster.json at 2026-01-01T00:04:00Z
    ");
}

/// A cluster that two other clients have changed, with one pod missing.
fn drifted() -> Sandbox {
    let sandbox = sandbox();
    let mut cluster = cluster_with(&AGENT.replace("agent:1", "agent:2"), &["node-1"]);
    let live = of_kind(&mut cluster, "DaemonSet").next().unwrap();
    live["metadata"]["labels"]["tier"] = "edited".into();
    live["metadata"]["annotations"] = json!({"ds-plan.dev/commit": "4f2c9e1"});
    live["metadata"]["managedFields"] = json!([
        {
            "manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1",
            "time": "2026-01-01T00:03:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"agent\"}": {"f:image": {}}}}}}},
        },
        {
            "manager": "labeller", "operation": "Apply", "apiVersion": "apps/v1",
            "time": "2026-01-01T00:04:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:tier": {}}}},
        },
    ]);
    sandbox.write("cluster.json", cluster.to_string());
    sandbox
}

#[test]
fn drift_as_text_and_names() {
    let sandbox = drifted();
    assert_snapshot!(drift(&sandbox, ""), @"
    exit 3
    --- stdout
    ds-plan drift  1 DaemonSet in agent.yaml; cluster, 3 nodes, as recorded in cluster.json at 2026-01-01T00:04:00Z

    logging/agent
        spec   (- live, + source)
            ~ metadata.labels.tier
                - edited
                + node
                written by labeller (Apply) at 2026-01-01T00:04:00Z
            ~ spec.template.spec.containers[agent].image
                - registry.example/agent:2
                + registry.example/agent:1
                written by kubectl-edit (Update) at 2026-01-01T00:03:00Z
        pod
            1 node without a pod
                node-2   node has no pod yet

    Drift: 2 spec, 1 pod, 0 rollout, 0 history, 0 eligibility.
    ");
    assert_snapshot!(drift(&sandbox, "-o name"), @"
    exit 3
    --- stdout
    logging/agent
    ");
}

#[test]
fn drift_as_json() {
    assert_snapshot!(drift(&drifted(), "-o json"), @r#"
    exit 3
    --- stdout
    {
      "apiVersion": "ds-plan.dev/v1alpha1",
      "kind": "Drift",
      "source": {
        "paths": [
          "agent.yaml"
        ]
      },
      "cluster": {
        "uid": "uid-kube-system",
        "observedAt": "2026-01-01T00:04:00Z",
        "nodes": 3,
        "snapshot": "cluster.json"
      },
      "daemonSets": [
        {
          "namespace": "logging",
          "name": "agent",
          "deviations": [
            {
              "class": "spec",
              "message": "metadata.labels.tier differs from the source",
              "code": "fieldDiffers",
              "path": "metadata.labels.tier",
              "before": "edited",
              "after": "node",
              "writers": [
                {
                  "manager": "labeller",
                  "operation": "Apply",
                  "time": "2026-01-01T00:04:00Z"
                }
              ]
            },
            {
              "class": "spec",
              "message": "spec.template.spec.containers[agent].image differs from the source",
              "code": "fieldDiffers",
              "path": "spec.template.spec.containers[agent].image",
              "before": "registry.example/agent:2",
              "after": "registry.example/agent:1",
              "writers": [
                {
                  "manager": "kubectl-edit",
                  "operation": "Update",
                  "time": "2026-01-01T00:03:00Z"
                }
              ]
            },
            {
              "class": "pod",
              "message": "1 node without a pod",
              "code": "podMissing",
              "nodes": [
                {
                  "node": "node-2",
                  "reasons": [
                    {
                      "message": "node has no pod yet",
                      "code": "noPod"
                    }
                  ]
                }
              ]
            }
          ]
        }
      ],
      "totals": {
        "spec": 2,
        "pod": 1,
        "rollout": 0,
        "history": 0,
        "eligibility": 0
      },
      "warnings": []
    }
    "#);
}

#[test]
fn drift_of_missing_objects() {
    let sandbox = sandbox();
    let mut cluster = cluster_with(AGENT, &[]);
    cluster["items"].as_array_mut().unwrap().retain(|item| item["kind"] != "DaemonSet");
    sandbox.write("cluster.json", cluster.to_string());
    assert_snapshot!(drift(&sandbox, ""), @"
    exit 3
    --- stdout
    ds-plan drift  1 DaemonSet in agent.yaml; cluster, 3 nodes, as recorded in cluster.json at 2026-01-01T00:01:00Z

    logging/agent
        spec   (- live, + source)
            it does not exist in the cluster
        history
            revision 1 (agent-abc) does not belong to an existing DaemonSet

    Drift: 1 spec, 0 pod, 0 rollout, 1 history, 0 eligibility.
    ");
}

#[test]
fn metrics_are_written_for_a_collector() {
    let sandbox = Sandbox::with(&[("agent.yaml", AGENT)]);
    let older = AGENT.replace("agent:1", "agent:0");
    sandbox.write("cluster.json", cluster_with(&older, &["node-1"]).to_string());
    let run = drift(&sandbox, "--metrics agent.prom");
    assert_eq!(run.code, Some(3), "{run}");
    let metrics = std::fs::read_to_string(sandbox.path("agent.prom")).unwrap();
    for line in [
        "ds_plan_drift{namespace=\"logging\",daemonset=\"agent\",class=\"spec\"} 1",
        "ds_plan_nodes{namespace=\"logging\",daemonset=\"agent\",state=\"ready\"} 1",
        // It became Ready at the same second as the recording.
        "ds_plan_nodes{namespace=\"logging\",daemonset=\"agent\",state=\"available\"} 0",
        "ds_plan_rollout{namespace=\"logging\",daemonset=\"agent\",state=\"complete\"} 0",
        "ds_plan_rollout{namespace=\"logging\",daemonset=\"agent\",state=\"unfinished\"} 1",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let run = sandbox.ds_plan("drift -f none.yaml --snapshot cluster.json --metrics agent.prom");
    assert_eq!(run.code, Some(1), "{run}");
    assert_eq!(std::fs::read_to_string(sandbox.path("agent.prom")).unwrap(), metrics);
}

/// Their timestamp would say that the run has succeeded.
#[test]
fn metrics_stay_if_the_report_cannot_be_written() {
    let sandbox = drifted();
    sandbox.write("agent.prom", "before\n");
    let run = drift(&sandbox, "--metrics agent.prom --report no/such/folder.html");
    assert_eq!(run.code, Some(1), "{run}");
    assert_eq!(std::fs::read_to_string(sandbox.path("agent.prom")).unwrap(), "before\n");
}
