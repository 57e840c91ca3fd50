//! Warning events of controllers about a DaemonSet (upstream: `record.EventRecorder` and its
//! correlator, which counts repeated ones).
//!
//! Only warnings: successes are visible in the pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::moment::CONTROLLER_MANAGER;
use crate::clock::whole_second;
use crate::{Kind, Store, Target};
use daemonset::model::{DaemonSetKey, Uid};

/// Source of the events (upstream: the component of the DaemonSet controller's recorder).
const COMPONENT: &str = "daemonset-controller";

/// Creates a warning about a DaemonSet, or increases the count of an equal one.
pub(super) fn warn(
    store: &mut Store,
    about: &DaemonSetKey,
    uid: &Uid,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let namespace = about.namespace.as_str();
    let uid = uid.to_string();
    let is_same = |event: &Value| {
        event["involvedObject"]["uid"] == uid
            && event["reason"] == reason
            && event["message"] == message
    };
    let known = store.objects(Kind::Event, Some(namespace));
    let known = known.map(|event| (event.key().clone(), event.value()));
    let known = known.filter(|(_, event)| is_same(event)).map(|(key, _)| key).last();
    let time = whole_second(now);
    let serial = store.version();
    let mut verbs = store.verbs(now, CONTROLLER_MANAGER);
    let result = if let Some(key) = known {
        verbs.edit(Target::new(Kind::Event, namespace, key.name()), |event| {
            event["count"] = (event["count"].as_i64().unwrap_or_default() + 1).into();
            event["lastTimestamp"] = time.into();
        })
    } else {
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{}.{serial:x}", about.name), "namespace": namespace},
            "involvedObject": {
                "apiVersion": "apps/v1", "kind": "DaemonSet",
                "namespace": namespace, "name": about.name, "uid": uid,
            },
            "reason": reason,
            "message": message,
            "source": {"component": COMPONENT},
            "type": "Warning",
            "count": 1,
            "firstTimestamp": time,
            "lastTimestamp": time,
        });
        verbs.create(Kind::Event, namespace, event)
    };
    if let Err(error) = result {
        tracing::debug!(%error, reason, message, "a warning is lost");
    }
}
