//! `ds-plan history` and `ds-plan diff`: earlier revisions and differences.

use insta::assert_snapshot;
use serde_json::{Value, json};

use testkit::fixture::{cluster_with, of_kind, sandbox};
use testkit::sandbox::{Run, Sandbox};

/// The agent, with a secret in an env var and another in an argument.
const SECRETIVE: &str = "\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
  namespace: logging
  labels: {tier: node}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
        - name: agent
          image: registry.example/agent:1
          args: [--token=hunter2, --verbose]
          env: [{name: PASSWORD, value: hunter2}, {name: OTHER, value: same}]
";

/// The agent with secrets at revision 2, both pods updated; revision 1 had another image and other
/// secrets.
fn at_revision_2() -> Sandbox {
    let mut cluster = cluster_with(SECRETIVE, &["node-1", "node-2"]);
    let first = of_kind(&mut cluster, "ControllerRevision").next().unwrap();
    let mut second = first.clone();
    first["metadata"]["name"] = "agent-old".into();
    first["metadata"]["labels"]["controller-revision-hash"] = "old".into();
    first["metadata"]["creationTimestamp"] = "2026-01-01T00:02:00Z".into();
    let container = &mut first["data"]["spec"]["template"]["spec"]["containers"][0];
    container["image"] = "registry.example/agent:0".into();
    container["args"][0] = "--token=hunter1".into();
    container["env"][0]["value"] = "hunter1".into();
    second["revision"] = 2.into();
    second["metadata"]["creationTimestamp"] = "2026-01-02T00:02:00Z".into();
    second["metadata"]["annotations"] =
        json!({"kubernetes.io/change-cause": "agent 1", "ds-plan.dev/commit": "4f2c9e1"});
    cluster["items"].as_array_mut().unwrap().push(second);
    let sandbox = sandbox();
    sandbox.write("agent.yaml", SECRETIVE);
    sandbox.write("cluster.json", cluster.to_string());
    sandbox
}

#[test]
fn the_revisions() {
    let sandbox = at_revision_2();
    assert_snapshot!(sandbox.ds_plan("history --snapshot cluster.json"), @"
    exit 0
    --- stdout
    logging/agent
    REVISION  CHANGE-CAUSE  COMMIT   PODS
    1         <none>        <none>   0
    2         agent 1       4f2c9e1  2
    ");
    assert_snapshot!(sandbox.ds_plan("history --snapshot cluster.json -o json logging/agent"), @r#"
    exit 0
    --- stdout
    {
      "apiVersion": "ds-plan.dev/v1alpha1",
      "kind": "History",
      "cluster": {
        "uid": "uid-kube-system",
        "observedAt": "2026-01-02T00:02:00Z",
        "nodes": 3,
        "snapshot": "cluster.json"
      },
      "daemonSets": [
        {
          "namespace": "logging",
          "name": "agent",
          "revisions": [
            {
              "number": 1,
              "name": "agent-old",
              "hash": "old",
              "live": false,
              "created": "2026-01-01T00:02:00Z",
              "pods": 0
            },
            {
              "number": 2,
              "name": "agent-abc",
              "hash": "abc",
              "live": true,
              "created": "2026-01-02T00:02:00Z",
              "changeCause": "agent 1",
              "commit": "4f2c9e1",
              "pods": 2
            }
          ],
          "podsWithoutRevision": 0
        }
      ],
      "warnings": []
    }
    "#);
}

#[test]
fn one_revision_and_two() {
    let sandbox = at_revision_2();
    let history = |line: &str| sandbox.ds_plan(&format!("history --snapshot cluster.json {line}"));
    assert_snapshot!(history("logging/agent --revision 1"), @"
    exit 0
    --- stdout
    daemonset.apps/agent with revision #1
    Pod Template:
      Labels:       app=agent
      Containers:
       agent:
        Image:      registry.example/agent:0
        Port:       <none>
        Host Port:  <none>
        Args:
          --token=(sensitive value)
          --verbose
        Environment:
          PASSWORD: (sensitive value)
          OTHER:    (sensitive value)
        Mounts:     <none>
      Volumes:      <none>
      Node-Selectors:       <none>
      Tolerations:  <none>
    ");
    assert_snapshot!(history("logging/agent --diff 1..2"), @"
    exit 0
    --- stdout
    --- revision 1 (agent-old)
    +++ revision 2 (agent-abc)
    @@ -4,14 +4,14 @@
     spec:
       containers:
       - args:
    -    - --token=(sensitive value, before)
    +    - --token=(sensitive value, after)
         - --verbose
         env:
         - name: PASSWORD
    -      value: (sensitive value, before)
    +      value: (sensitive value, after)
         - name: OTHER
           value: (sensitive value)
    -    image: registry.example/agent:0
    +    image: registry.example/agent:1
         imagePullPolicy: IfNotPresent
         name: agent
         resources: {}
    ");
    assert_snapshot!(history("logging/agent --diff 2..2"), @"
    exit 0
    --- stdout
    revision 2 (agent-abc) and revision 2 (agent-abc) have the same template.
    ");
    let shown = history("logging/agent --diff 1..2 --show-values").stdout;
    assert!(shown.contains("+    - --token=hunter2"), "{shown}");
}

#[test]
fn missing_revisions() {
    let sandbox = at_revision_2();
    let history = |line: &str| sandbox.ds_plan(&format!("history --snapshot cluster.json {line}"));
    assert_snapshot!(history("logging/agent --revision 7"), @"
    exit 1
    --- stderr
    error: DaemonSet logging/agent has no revision 7
    hint: its revisions: 1, 2
    ");
    assert_snapshot!(history("logging/agent --diff 1-2"), @"
    exit 64
    --- stderr
    error: invalid value '1-2' for '--diff <N..M>': write it as two revisions, such as 3..5

    For more information, try '--help'.
    ");
    assert_snapshot!(history("--revision 1"), @"
    exit 64
    --- stderr
    error: the following required arguments were not provided:
      <NAME>...

    Usage: ds-plan history --snapshot <FILE> --revision <N> <NAME>...

    For more information, try '--help'.
    ");
    assert_eq!(history("logging/agent --revision 0").code, Some(64));
    assert_eq!(history("logging/other").code, Some(1));
    assert_snapshot!(history("-n default"), @"
    exit 0
    --- stdout
    No DaemonSets found.
    ");
}

fn diff(sandbox: &Sandbox, line: &str) -> Run {
    sandbox.ds_plan(&format!("diff -f agent.yaml --snapshot cluster.json {line}"))
}

#[test]
fn live_against_target() {
    let sandbox = at_revision_2();
    let diff = |line: &str| diff(&sandbox, line);
    assert_snapshot!(diff("--detailed-exitcode"), @"
    exit 0
    --- stderr
    warning: the snapshot has no managed fields, so it is unknown which fields other managers own; record it with `ds-plan snapshot`, or with kubectl's --show-managed-fields
    ");
    let manifest =
        SECRETIVE.replace("agent:1", "agent:2").replace("value: hunter2", "value: hunter3");
    sandbox.write("agent.yaml", manifest);
    assert_snapshot!(diff(""), @r#"
    exit 0
    --- stdout
    diff -u -N LIVE/apps.v1.DaemonSet.logging.agent MERGED/apps.v1.DaemonSet.logging.agent
    --- LIVE/apps.v1.DaemonSet.logging.agent
    +++ MERGED/apps.v1.DaemonSet.logging.agent
    @@ -2,7 +2,7 @@
     kind: DaemonSet
     metadata:
       creationTimestamp: "2026-01-01T00:02:00Z"
    -  generation: 1
    +  generation: 2
       labels:
         tier: node
       name: agent
    @@ -24,10 +24,10 @@
             - --verbose
             env:
             - name: PASSWORD
    -          value: (sensitive value, before)
    +          value: (sensitive value, after)
             - name: OTHER
               value: (sensitive value)
    -        image: registry.example/agent:1
    +        image: registry.example/agent:2
             imagePullPolicy: IfNotPresent
             name: agent
             resources: {}
    --- stderr
    warning: the snapshot has no managed fields, so it is unknown which fields other managers own; record it with `ds-plan snapshot`, or with kubectl's --show-managed-fields
    "#);
    assert_eq!(diff("--detailed-exitcode").code, Some(2));
    let json: Value = serde_json::from_str(&diff("-o json").stdout).unwrap();
    let one = &json["daemonSets"][0];
    assert_eq!(one["change"], "update");
    assert_eq!(one["changes"].as_array().unwrap().len(), 2);
    assert_eq!(one["target"]["metadata"]["generation"], 2);
    assert!(!json.to_string().contains("hunter"), "{json}");
    assert!(diff("--show-values").stdout.contains("hunter3"));
}

#[test]
fn nothing_against_target() {
    let sandbox = at_revision_2();
    sandbox.write(
        "agent.yaml",
        SECRETIVE.replace("name: agent\n  namespace", "name: new\n  namespace"),
    );
    assert_snapshot!(diff(&sandbox, ""), @r#"
    exit 0
    --- stdout
    diff -u -N LIVE/apps.v1.DaemonSet.logging.new MERGED/apps.v1.DaemonSet.logging.new
    --- LIVE/apps.v1.DaemonSet.logging.new
    +++ MERGED/apps.v1.DaemonSet.logging.new
    @@ -0,0 +1,50 @@
    +apiVersion: apps/v1
    +kind: DaemonSet
    +metadata:
    +  annotations:
    +    deprecated.daemonset.template.generation: "1"
    +  generation: 1
    +  labels:
    +    tier: node
    +  name: new
    +  namespace: logging
    +spec:
    +  revisionHistoryLimit: 10
    +  selector:
    +    matchLabels:
    +      app: agent
    +  template:
    +    metadata:
    +      labels:
    +        app: agent
    +    spec:
    +      containers:
    +      - args:
    +        - --token=(sensitive value)
    +        - --verbose
    +        env:
    +        - name: PASSWORD
    +          value: (sensitive value)
    +        - name: OTHER
    +          value: (sensitive value)
    +        image: registry.example/agent:1
    +        imagePullPolicy: IfNotPresent
    +        name: agent
    +        resources: {}
    +        terminationMessagePath: /dev/termination-log
    +        terminationMessagePolicy: File
    +      dnsPolicy: ClusterFirst
    +      restartPolicy: Always
    +      schedulerName: default-scheduler
    +      securityContext: {}
    +      terminationGracePeriodSeconds: 30
    +  updateStrategy:
    +    rollingUpdate:
    +      maxSurge: 0
    +      maxUnavailable: 1
    +    type: RollingUpdate
    +status:
    +  currentNumberScheduled: 0
    +  desiredNumberScheduled: 0
    +  numberMisscheduled: 0
    +  numberReady: 0
    "#);
}
