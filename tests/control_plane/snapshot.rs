//! Snapshots of a real cluster are equal, whether read live, recorded by kubectl, or recorded by
//! us.

mod formats;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use cluster::{
    ConnectOptions, Error, LiveCluster, Scope, connect, read_recorded, read_recorded_from,
};
use daemonset::model::mask::Salt;
use daemonset::model::{ClusterInfo, NodeReadiness, PodTarget, Snapshot};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::Value;

use crate::harness::{Component, ControlPlane, FakeNode, kubernetes, shown_yaml, wait_for};

const SOON: Duration = Duration::from_mins(1);

/// The resources that kubectl records, as in the documentation.
const KINDS: &str = "nodes,pods,daemonsets,controllerrevisions,namespaces,services,leases";

/// Two namespaces with a DaemonSet each, one of them with values that YAML could misread.
const AGENTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: logging, annotations: {scheduler.alpha.kubernetes.io/node-selector: disk=ssd}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default, labels: {"on": "yes", octal: "0644"}}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}, annotations: {note: "two\nlines <&> \u2028 ü"}}
    spec:
      containers:
      - name: agent
        image: agent:v1
        args: [--password=hunter2, "1e3", "~", "null", "0x1F", "1_000", "2026-01-01"]
        env: [{name: SECRET, value: hunter2}, {name: "NO", value: "no"}]
        resources: {limits: {cpu: 100m, memory: "128974848"}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: exporter, namespace: logging}
spec:
  selector: {matchLabels: {app: exporter}}
  template:
    metadata: {labels: {app: exporter}}
    spec:
      hostNetwork: true
      tolerations: [{operator: Exists}]
      containers: [{name: exporter, image: exporter:v1}]
"#;

/// A cluster with a few nodes, pods and revisions whose controllers are stopped.
fn frozen() -> ControlPlane {
    let plane = ControlPlane::builder().user("dev", &[]).user("ops", &[]).audit().start();
    plane.create_nodes(FakeNode::many("node", 10));
    plane.create_nodes([FakeNode::new("tainted").taint("gpu", "true", "NoSchedule").cordoned()]);
    plane.apply_yaml(AGENTS);
    plane.kubectl(&["-n", "logging", "set", "image", "ds/exporter", "exporter=exporter:v2"]);
    let ready = || {
        plane.kubectl(&[
            "get",
            "ds",
            "--all-namespaces",
            "-o=jsonpath={range .items[*]}{.metadata.generation}={.status.observedGeneration} \
             {.status.updatedNumberScheduled} {.status.numberAvailable};{end}",
        ])
    };
    wait_for("two DaemonSets to be rolled out", SOON, "1=1 10 10;2=2 11 11;".to_owned(), ready);
    for component in [Component::ControllerManager, Component::Scheduler, Component::Kwok] {
        plane.stop_component(component);
    }
    plane
}

fn options(kubeconfig: &Path) -> ConnectOptions {
    ConnectOptions { kubeconfig: Some(kubeconfig.to_owned()), ..ConnectOptions::default() }
}

async fn admin(plane: &ControlPlane) -> LiveCluster {
    connect(&options(&plane.kubeconfig_path())).await.unwrap()
}

/// A local time that differs from every server's clock.
fn wrong_clock() -> Timestamp {
    "2001-01-01T00:00:00Z".parse().unwrap()
}

/// The snapshot without the parts that a file cannot contain, and without `managedFields` if
/// requested.
fn comparable(mut snapshot: Snapshot, keep_managed_fields: bool) -> Snapshot {
    snapshot.observed_at = Timestamp::UNIX_EPOCH;
    snapshot.cluster = ClusterInfo { uid: snapshot.cluster.uid, ..ClusterInfo::default() };
    if !keep_managed_fields {
        snapshot.coverage.managed_fields = false;
        for daemon_set in &mut snapshot.daemon_sets {
            let mut raw = Value::clone(&daemon_set.raw);
            raw["metadata"].as_object_mut().unwrap().remove("managedFields");
            daemon_set.raw = raw.into();
        }
    }
    snapshot
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn live_and_recorded_clusters_are_equal() {
    let plane = frozen();
    let cluster = admin(&plane).await;
    let live = cluster.snapshot(&Scope::All, wrong_clock()).await.unwrap();

    assert_eq!((live.nodes.len(), live.pods.len(), live.daemon_sets.len()), (11, 21, 2));
    assert_eq!(live.revisions.len(), 3);
    assert!(live.nodes.iter().all(|node| node.readiness == NodeReadiness::Ready));
    assert!(
        live.pods.iter().all(|pod| pod.is_ready() && matches!(pod.target, PodTarget::Bound(_)))
    );
    assert_eq!(live.cluster.name.as_deref(), Some("test"));
    let version = live.cluster.version.as_deref().unwrap();
    let expected = format!("v1.{}.", kubernetes::version().minor);
    assert!(version.starts_with(&expected), "{version}");
    let uid = plane.kubectl(&["get", "ns", "kube-system", "-o=jsonpath={.metadata.uid}"]);
    assert_eq!(live.cluster.uid, Some(uid.as_str().into()));
    assert!(
        live.pods.iter().all(|pod| pod.created.is_none_or(|created| created <= live.observed_at)),
        "the server's clock"
    );

    let paged = admin(&plane).await.with_page_size(4);
    let paged = paged.snapshot(&Scope::All, wrong_clock()).await.unwrap();
    assert_eq!(comparable(paged, true), comparable(live.clone(), true));

    for format in ["json", "yaml"] {
        for managed in [true, false] {
            let output = format!("-o={format}");
            let show = format!("--show-managed-fields={managed}");
            let text = plane.kubectl(&["get", KINDS, "-A", &output, &show]);
            // Nothing else changes, but the API server renews its own lease, and says so in the managed
            // fields.
            let after = cluster.snapshot(&Scope::All, wrong_clock()).await.unwrap();
            let newest = if managed { after.observed_at } else { live.observed_at };
            for bytes in [text.clone().into_bytes(), gzip(&text)] {
                let recorded = read_recorded_from(bytes.as_slice(), "s").unwrap();
                assert!(recorded.observed_at <= newest, "the server's clock");
                assert_eq!(
                    comparable(recorded, managed),
                    comparable(live.clone(), managed),
                    "{format}, managed fields: {managed}"
                );
            }
        }
    }

    let some = Scope::Namespaces(["default".into()].into());
    let live = cluster.snapshot(&some, wrong_clock()).await.unwrap();
    assert_eq!((live.pods.len(), live.daemon_sets.len(), live.nodes.len()), (10, 1, 11));
    assert!(live.coverage.covers(&"default".into()) && !live.coverage.covers(&"logging".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_recording_is_equal_and_smaller() {
    let plane = frozen();
    let cluster = admin(&plane).await.with_page_size(4);
    let live = cluster.snapshot(&Scope::All, wrong_clock()).await.unwrap();
    for name in ["s.json", "s.json.gz"] {
        let file = plane.folder().join(name);
        let recorded = cluster.record(&Scope::All, None, wrong_clock()).await.unwrap();
        recorded.save(&file).unwrap();
        let read = read_recorded(&file).unwrap();
        assert_eq!(read.cluster.name, live.cluster.name);
        assert_eq!(read.cluster.version, live.cluster.version);
        assert_eq!(comparable(read, true), comparable(live.clone(), true), "{name}");
    }
    let ours = fs::metadata(plane.folder().join("s.json")).unwrap().len();
    let theirs = plane.kubectl(&["get", KINDS, "-A", "-o=json"]).len() as u64;
    assert!(ours * 2 < theirs, "{ours} of {theirs} bytes");
    // A reader of kubectl's format can read ours: the header is skipped.
    let file = plane.folder().join("s.json").display().to_string();
    let names = plane.kubectl(&["annotate", "--local", "-o=name", "-f", &file, "x=y"]);
    assert!(names.contains("daemonset.apps/agent"), "{names}");

    let salt = Salt::from_bytes([1; 16]);
    let masked = cluster.record(&Scope::All, Some(salt), wrong_clock()).await.unwrap();
    let mut text = Vec::new();
    masked.write_to(&mut text).unwrap();
    assert!(!String::from_utf8(text).unwrap().contains("hunter2"));
}

/// A snapshot after new roles were created; the API server sees them with a delay.
async fn once_permitted(cluster: &LiveCluster, scope: &Scope) -> Snapshot {
    for _ in 0..100 {
        if let Ok(snapshot) = cluster.snapshot(scope, wrong_clock()).await {
            return snapshot;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cluster.snapshot(scope, wrong_clock()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shown_role_is_enough() {
    let plane = frozen();
    plane.apply_yaml(&shown_yaml("ClusterRole"));
    plane.kubectl(&["create", "clusterrolebinding", "ops", "--clusterrole=ds-plan", "--user=ops"]);
    let ops = connect(&options(&plane.kubeconfig_of("ops"))).await.unwrap();
    let mut seen = once_permitted(&ops, &Scope::All).await;
    let all = admin(&plane).await.snapshot(&Scope::All, wrong_clock()).await.unwrap();
    seen.observed_at = all.observed_at;
    assert_eq!(seen, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_reported() {
    let plane = frozen();
    let scope = Scope::Namespaces(["default".into(), "logging".into()].into());
    let dev = connect(&options(&plane.kubeconfig_of("dev"))).await.unwrap();
    let error = dev.snapshot(&scope, wrong_clock()).await.unwrap_err();
    let Error::Forbidden { missing, message } = error else { panic!("{error:?}") };
    assert_eq!(missing.len(), 7, "{missing:?}");
    assert!(message.contains("User \"dev\" cannot list"), "{message}");

    plane.apply_yaml(
        r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodes}
rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodes}
subjects: [{kind: User, name: dev}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: planner, namespace: default}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list]}
- {apiGroups: [apps], resources: [daemonsets, controllerrevisions], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: planner, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: planner}
subjects: [{kind: User, name: dev}]
"#,
    );
    let only_default = Scope::Namespaces(["default".into()].into());
    let snapshot = once_permitted(&dev, &only_default).await;
    assert_eq!((snapshot.pods.len(), snapshot.nodes.len()), (10, 11));
    assert_eq!((snapshot.namespaces.len(), snapshot.cluster.uid), (0, None));
    assert!(!snapshot.coverage.namespaces);
    let error = dev.snapshot(&scope, wrong_clock()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not permitted: list daemonsets.apps in namespace logging, \
         list controllerrevisions.apps in namespace logging, list pods in namespace logging"
    );
    let verbs = plane.audit_log().into_iter().filter(|event| event["user"]["username"] == "dev");
    let verbs: Vec<Value> = verbs.map(|event| event["verb"].clone()).collect();
    assert!(!verbs.is_empty() && verbs.iter().all(|verb| verb == "list" || verb == "get"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_credentials_and_certificates_have_different_errors() {
    let plane = ControlPlane::builder()
        .without(Component::Kwok)
        .without(Component::Scheduler)
        .without(Component::ControllerManager)
        .start();
    let good = fs::read_to_string(plane.kubeconfig_path()).unwrap();
    let token = good.split("token: '").nth(1).unwrap().split('\'').next().unwrap();
    let authority = good.split("certificate-authority: ").nth(1).unwrap();
    let authority = authority.split('}').next().unwrap();
    for (name, text, want) in [
        ("token", good.replace(token, "wrong"), "does not accept the credentials"),
        (
            "certificate",
            good.replace(&format!(", certificate-authority: {authority}"), ""),
            "invalid peer certificate: UnknownIssuer",
        ),
    ] {
        let file = plane.folder().join(name);
        fs::write(&file, text).unwrap();
        let cluster = connect(&options(&file)).await.unwrap();
        let error = cluster.snapshot(&Scope::All, wrong_clock()).await.unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
}
