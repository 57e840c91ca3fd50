//! Deletes of a pod by its identity.

use cluster::WriteError;
use daemonset::model::{Cascade, DaemonSet, Uid};

use super::{admin, live, locked, manifest, quiet};
use crate::harness::{ControlPlane, wait_until};

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: agent-x, namespace: default}
spec: {containers: [{name: c, image: i}]}
";

fn uid(plane: &ControlPlane, object: &str) -> Uid {
    plane.kubectl(&["get", object, "-o=jsonpath={.metadata.uid}"]).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_pod_with_the_given_uid_is_deleted() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let (_lock, writer) = locked(&cluster).await;
    let (namespace, name) = ("default".into(), "agent-x".into());
    plane.apply_yaml(POD);
    let first = uid(&plane, "pod/agent-x");
    writer.delete_pod(&namespace, &name, &first).await.unwrap();
    let error = writer.delete_pod(&namespace, &name, &first).await.unwrap_err();
    assert!(matches!(error, WriteError::NotFound { .. }) && error.is_gone(), "{error:?}");
    plane.apply_yaml(POD);
    let error = writer.delete_pod(&namespace, &name, &first).await.unwrap_err();
    assert!(matches!(error, WriteError::Stale { .. }) && error.is_gone(), "{error:?}");
    assert_ne!(uid(&plane, "pod/agent-x"), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_a_deleted_daemon_set_are_deleted_or_orphaned() {
    let plane = ControlPlane::start();
    plane.create_nodes(crate::harness::FakeNode::many("node", 2));
    let cluster = admin(&plane).await;
    let (_lock, writer) = locked(&cluster).await;
    let pods = || plane.kubectl(&["get", "pods", "-o=name"]).lines().count();
    let soon = std::time::Duration::from_mins(1);
    for (cascade, left) in [(Cascade::Orphan, 2), (Cascade::Background, 0)] {
        plane.apply_yaml(&manifest("agent:v1").to_string());
        wait_until("two pods", soon, || pods() == 2);
        let before = live(&cluster).await;
        let other = Uid::from("00000000-0000-0000-0000-000000000000");
        let recreated = DaemonSet { uid: other, ..before };
        let error = writer.delete_daemon_set(&recreated, cascade).await.unwrap_err();
        assert!(matches!(error, WriteError::Stale { .. }), "{error:?}");
        let before = live(&cluster).await;
        plane.kubectl(&["label", "ds", "agent", "touched=yes"]);
        let error = writer.delete_daemon_set(&before, cascade).await.unwrap_err();
        assert!(matches!(error, WriteError::Stale { .. }), "{error:?}");
        // The controller may still be writing the status.
        loop {
            match writer.delete_daemon_set(&live(&cluster).await, cascade).await {
                Err(WriteError::Stale { .. }) => {}
                deleted => break deleted.unwrap(),
            }
        }
        wait_until("the DaemonSet to be deleted", soon, || {
            plane.kubectl(&["get", "ds", "-o=name"]).is_empty()
        });
        wait_until("its pods", soon, || pods() == left);
    }
}
