//! `history` and `status` match kubectl on the same cluster.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Component, ControlPlane, FakeNode, kubernetes, stdout, wait_for};

const SOON: Duration = Duration::from_mins(1);

/// A DaemonSet with most of the fields that `kubectl describe` shows of a template.
const AGENT: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default, annotations: {kubernetes.io/change-cause: CAUSE}}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}
  template:
    metadata:
      labels: {app: agent, tier: node}
      annotations: {note: "one", script: "first line\nsecond line"}
    spec:
      serviceAccountName: agent
      priorityClassName: system-node-critical
      nodeSelector: {kubernetes.io/os: linux}
      tolerations:
      - {operator: Exists, effect: NoExecute}
      - {key: gpu, value: "yes", effect: NoSchedule}
      - {key: dead, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
      topologySpreadConstraints:
      - topologyKey: zone
        maxSkew: 1
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: agent}, matchExpressions: [{key: a, operator: Exists}]}
      initContainers:
      - {name: init, image: 'busybox:1', command: [sh, -c, "echo a\necho b"]}
      containers:
      - name: agent
        image: registry.example.com/agent:VERSION
        args: [--verbose, --level=3]
        ports: [{containerPort: 80, name: http}, {containerPort: 53, protocol: UDP, hostPort: 53}]
        securityContext: {seccompProfile: {type: RuntimeDefault}}
        resources: {limits: {cpu: 100m, memory: 64Mi}, requests: {cpu: 50m}}
        livenessProbe: {httpGet: {path: "/health z?a", port: 80}, initialDelaySeconds: 3}
        readinessProbe: {exec: {command: [cat, /ready]}}
        startupProbe: {tcpSocket: {port: http}, failureThreshold: 9}
        envFrom: [{configMapRef: {name: map, optional: true}}, {prefix: P_, secretRef: {name: s}}]
        env:
        - {name: PLAIN, value: "two\nlines"}
        - {name: EMPTY}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
        - {name: MAP, valueFrom: {configMapKeyRef: {name: m, key: k, optional: true}}}
        volumeMounts:
        - {name: root, mountPath: /root-fs, readOnly: true}
        - {name: empty, mountPath: /empty, subPath: part}
      - name: second
        image: second:1
        livenessProbe: {grpc: {port: 9000}}
        volumeMounts: [{name: token, mountPath: /token}]
      volumes:
      - {name: root, hostPath: {path: /, type: Directory}}
      - {name: untyped, hostPath: {path: /var}}
      - {name: empty, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
      - {name: map, configMap: {name: map, optional: true}}
      - {name: secret, secret: {secretName: s}}
      - {name: nfs, nfs: {server: nfs.example.com, path: /share}}
      - {name: csi, csi: {driver: csi.example.com, volumeAttributes: {a: b, c: d}}}
      - {name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
      - name: token
        projected:
          sources:
          - serviceAccountToken: {path: token, expirationSeconds: 3607}
          - configMap: {name: ca}
          - downwardAPI: {items: [{path: ns, fieldRef: {fieldPath: metadata.namespace}}]}
"#;

fn agent(version: &str, cause: &str) -> String {
    AGENT.replace("VERSION", version).replace("CAUSE", cause)
}

/// The words of each line in order, without tabs and padding.
fn words(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|words| !words.is_empty()).collect()
}

fn history(plane: &ControlPlane, arguments: &[&str]) -> String {
    let output = plane.ds_plan(&[&["history", "default/agent"], arguments].concat(), &[]);
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

/// A cluster with three versions, a rollback to the first, and a pending `OnDelete` version.
fn lived_through() -> ControlPlane {
    let plane = ControlPlane::start();
    plane.create_nodes(
        FakeNode::many("node", 3).into_iter().map(|n| n.label("kubernetes.io/os", "linux")),
    );
    for (version, cause) in [("1", "the first"), ("2", "''"), ("3", "'a third, with spaces'")] {
        plane.apply_yaml(&agent(version, cause));
        plane.wait_until_rolled_out("agent", 3);
    }
    plane.kubectl(&["rollout", "undo", "daemonset/agent", "--to-revision=1"]);
    plane.wait_until_rolled_out("agent", 3);
    plane.apply_yaml(
        &agent("3", "on delete")
            .replace("{rollingUpdate: {maxUnavailable: 100%}}", "{type: OnDelete}"),
    );
    let revisions = || plane.kubectl(&["get", "controllerrevisions", "-o=name"]).lines().count();
    wait_for("revisions", SOON, 3, revisions);
    let observed = "-o=jsonpath={.metadata.generation} {.status.observedGeneration}";
    wait_for("the controller", SOON, "5 5".to_owned(), || {
        plane.kubectl(&["get", "daemonset", "agent", observed])
    });
    for component in [Component::ControllerManager, Component::Kwok] {
        plane.stop_component(component);
    }
    plane
}

#[test]
fn revisions_and_templates_match_kubectl() {
    if !kubernetes::since(36, "templates are described as the newest kubectl does") {
        return;
    }
    let plane = lived_through();
    let theirs = plane.kubectl(&["rollout", "history", "daemonset/agent"]);
    let rows: Vec<(String, String)> = theirs
        .lines()
        .skip_while(|line| !line.starts_with("REVISION"))
        .skip(1)
        .filter_map(|line| line.split_once(' '))
        .map(|(number, cause)| (number.to_owned(), cause.trim().to_owned()))
        .collect();
    assert_eq!(rows.len(), 3, "{theirs}");

    let ours: Value = serde_json::from_str(&history(&plane, &["-o", "json"])).unwrap();
    let revisions = ours["daemonSets"][0]["revisions"].as_array().unwrap();
    let read: Vec<(String, String)> = revisions
        .iter()
        .map(|it| {
            let cause = it["changeCause"].as_str().filter(|cause| !cause.is_empty());
            (it["number"].to_string(), cause.unwrap_or("<none>").to_owned())
        })
        .collect();
    assert_eq!(read, rows);
    let pods: Vec<i64> = revisions.iter().map(|it| it["pods"].as_i64().unwrap()).collect();
    assert_eq!(pods, [0, 3, 0], "the pods are still the first version's: {ours}");
    let live: Vec<bool> = revisions.iter().map(|it| it["live"].as_bool().unwrap()).collect();
    assert_eq!(live, [false, false, true]);
    // As text, kubectl's table is the left part of ours.
    let text = history(&plane, &[]);
    for line in theirs.lines().skip(1).filter(|line| !line.is_empty()) {
        assert!(text.lines().any(|ours| ours.starts_with(line.trim_end())), "{line} in\n{text}");
    }

    for (number, _) in &rows {
        let theirs = plane.kubectl(&[
            "rollout",
            "history",
            "daemonset/agent",
            &format!("--revision={number}"),
        ]);
        let ours = history(&plane, &["--revision", number, "--show-values"]);
        assert_eq!(words(&ours), words(&theirs), "{ours}\n{theirs}");
    }
}

#[test]
fn the_status_matches_kubectl() {
    let plane = lived_through();
    // Ages change between the two calls.
    let without_age = |table: &str| {
        let lines = table.lines().map_while(|line| line.rsplit_once(' '));
        lines.map(|(rest, _)| rest.trim_end().to_owned()).collect::<Vec<_>>()
    };
    let theirs = plane.kubectl(&["get", "daemonset", "agent"]);
    let ours = plane.ds_plan(&["status", "default/agent"], &[]);
    let ours = stdout(&ours);
    let (table, _) = ours.split_once("\n\n").unwrap();
    assert_eq!(without_age(table), without_age(&theirs));
}
