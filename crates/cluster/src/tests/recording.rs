//! A recording of `ds-plan snapshot` gives the same snapshot as the live cluster.

use super::*;
use crate::{Error, Kind, Recorded, read_recorded, read_recorded_from};
use daemonset::model::mask::Salt;
use daemonset::model::{Coverage, Snapshot};

/// A cluster with an object of each kind, and with secrets.
fn served() -> (LiveCluster, Log) {
    let manifest = json!({"spec": {"template": template()}}).to_string();
    let daemon_set = json!({
        "metadata": {
            "namespace": "a", "name": "agent", "uid": "ds", "generation": 2,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": manifest},
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template()},
        "status": {"observedGeneration": 2},
    });
    let revision = json!({
        "metadata": {
            "namespace": "a", "name": "agent-1", "uid": "r", "managedFields": [{"manager": "m"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "no JSON hunter2"},
        },
        "revision": 1, "data": {"spec": {"template": template()}},
    });
    let pod = json!({
        "metadata": {
            "namespace": "a", "name": "agent-x", "uid": "p", "labels": {"app": "agent"},
            "annotations": {"note": "hunter2"}, "managedFields": [{"manager": "m"}],
            "ownerReferences": [{"kind": "DaemonSet", "name": "agent", "uid": "ds", "controller": true}],
        },
        "spec": {
            "nodeName": "n1", "tokens": "hunter2",
            "containers": [{"name": "c", "image": "i", "args": ["hunter2"], "env": [{"value": "hunter2"}]}],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "containerStatuses": [{"name": "c", "restartCount": 4, "imageID": "sha",
                "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
        },
    });
    let mut node = node("n1");
    node["spec"] =
        json!({"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"});
    node["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4"}, "images": [{"names": ["big"]}]});
    let service = json!({
        "metadata": {"namespace": "a", "name": "agent", "annotations": {"note": "hunter2"}},
        "spec": {"selector": {"app": "agent"}, "clusterIP": "None", "tokens": "hunter2"},
    });
    let lease = |name: &str, annotation: &str| {
        json!({
            "metadata": {"namespace": "a", "name": name, "annotations": {annotation: "sha256:1"}},
            "spec": {"holderIdentity": "hunter2"},
        })
    };
    let mut noted = lease("ds-plan-other", "note");
    noted["metadata"]["annotations"]["ds-plan.dev/steps"] =
        r#"{"template":"sha256:1","startedAt":"2026-01-01T00:00:00Z"}"#.into();
    let leases =
        [lease("ds-plan-agent", "ds-plan.dev/failed-templates"), lease("leader", "note"), noted];
    cluster(move |uri, _| match uri.split(['/', '?']).rev().nth(1)? {
        "nodes" => Some(Answer::list(std::slice::from_ref(&node))),
        "pods" => Some(Answer::list(std::slice::from_ref(&pod))),
        "daemonsets" => Some(Answer::list(std::slice::from_ref(&daemon_set))),
        "services" => Some(Answer::list(std::slice::from_ref(&service))),
        "leases" => Some(Answer::list(&leases)),
        "controllerrevisions" => Some(Answer::list(std::slice::from_ref(&revision))),
        _ => None,
    })
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "c", "env": [{"name": "P", "value": "hunter2"}]}]},
    })
}

async fn recorded(mask: Option<Salt>) -> Recorded {
    served().0.record(&namespaces(&["a"]), mask, now()).await.unwrap()
}

fn text(recorded: Recorded) -> String {
    let mut bytes = Vec::new();
    recorded.write_to(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The same snapshot without the marks of a recording.
fn as_live(mut snapshot: Snapshot) -> Snapshot {
    snapshot.cluster.file = None;
    snapshot
}

#[tokio::test]
async fn a_recording_is_the_live_snapshot() {
    let live = served().0.snapshot(&namespaces(&["a"]), now()).await.unwrap();
    let text = text(recorded(None).await);
    let read = read_recorded_from(text.as_bytes(), "s.json").unwrap();
    assert_eq!(read.cluster.file.as_deref(), Some("s.json"));
    assert_eq!((read.services.len(), read.leases.len()), (1, 2));
    assert!(read.leases[1].steps.is_some());
    assert_eq!(read.nodes[0].allocatable.get("cpu"), Some("4"));
    assert_eq!(as_live(read), live);
    // Pods have only the listed fields; templates are whole.
    for gone in ["podIP", "imageID", "images", "podCIDR", "note", "tokens", "leader"] {
        assert!(!text.contains(gone), "{gone}");
    }
    // Two templates and a manifest in an annotation, and one more annotation.
    assert_eq!(text.matches("hunter2").count(), 4);
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(whole["kind"], "List");
    assert_eq!(whole["dsPlan"]["observedAt"], "2026-03-04T05:06:07Z");
    assert_eq!(whole["dsPlan"]["scope"], json!(["a"]));
    assert_eq!(whole["dsPlan"]["cluster"]["version"], "v1.36.3");
}

#[tokio::test]
async fn masked_values_are_removed_and_their_salt_recorded() {
    let salt = Salt::from_bytes([7; 16]);
    let text = text(recorded(Some(salt)).await);
    assert!(!text.contains("hunter2"), "{text}");
    let read = read_recorded_from(text.as_bytes(), "s.json").unwrap();
    assert_eq!(
        read.coverage,
        Coverage {
            scope: Some(["a".into()].into()),
            managed_fields: true,
            namespaces: true,
            services: true,
            leases: true,
            records: true,
            masked: Some(salt)
        }
    );
    let value = "/spec/containers/0/env/0/value";
    let live = read.daemon_sets[0].spec.template.raw().pointer(value).unwrap();
    assert_eq!(live, &json!(salt.digest("hunter2")));
    assert_eq!(read.revisions[0].data["spec"]["template"].pointer(value), Some(live));
}

#[tokio::test]
async fn a_list_that_starts_again_is_recorded_once() {
    let (cluster, _) = cluster(|uri, before| match uri {
        "/api/v1/nodes?limit=500" => Some(Answer::page(&[node("a")], "next")),
        "/api/v1/nodes?limit=500&continue=next" if before == 0 => Some(Answer::status(410)),
        "/api/v1/nodes?limit=500&continue=next" => Some(Answer::list(&[node("b")])),
        _ => None,
    });
    let recorded = cluster.record(&namespaces(&["a"]), None, now()).await.unwrap();
    let counts = recorded.counts();
    assert!(counts.contains(&(Kind::Node, 2)) && counts.contains(&(Kind::Pod, 0)), "{counts:?}");
    let read = read_recorded_from(text(recorded).as_bytes(), "s.json").unwrap();
    assert_eq!(read.nodes.len(), 2);
}

#[tokio::test]
async fn files_are_compressed_by_name_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let mut snapshots = Vec::new();
    for name in ["s.json", "s.json.gz"] {
        let path = folder.path().join(name);
        recorded(None).await.save(&path).unwrap();
        let packed = std::fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]);
        assert_eq!(packed, name == "s.json.gz");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        snapshots.push(as_live(read_recorded(&path).unwrap()));
    }
    assert_eq!(snapshots[0], snapshots[1]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary files are left");

    let error = recorded(None).await.save(&folder.path().join("no/such/s.json")).unwrap_err();
    assert!(matches!(error, Error::Write(_)), "{error:?}");
}
