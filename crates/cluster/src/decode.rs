//! Decodes objects from the API server's JSON into the slim model, and nodes and pods from its
//! protobuf (`protobuf`), too. Live and recorded objects use the same decoder, so that the two cannot
//! differ.
//!
//! Missing fields become Go's zero values, as in upstream's decoder; but an object without a name
//! or uid is an error. Not here: reading the text.

mod condition;
mod context;
mod controller_revision;
mod daemon_set;
mod event;
mod lease;
pub(super) mod lenient;
mod metadata;
mod namespace;
mod neighbour;
mod node;
mod pieces;
mod pod;
pub(super) mod protobuf;
pub(super) mod record;
mod rest;
mod service;
mod slim;
mod snapshot_builder;
mod text;

pub(super) use neighbour::read as read_neighbour;
pub use slim::SlimDecoder;
pub use snapshot_builder::Object;
pub(super) use snapshot_builder::{
    KUBE_SYSTEM, SnapshotBuilder, has_protobuf, one_daemon_set, one_record, one_revision,
    reason_alone,
};

use serde::Deserialize;

use self::condition::Condition;
use self::context::{Cause, Context};
use self::metadata::Metadata;
use self::text::Text;
use super::Kind;

/// An object of a list or of a watch, in the format of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoded<'a> {
    Json(&'a str),
    Protobuf(&'a [u8]),
}

impl<'a> Encoded<'a> {
    /// The JSON of an object whose kind has no decoder of protobuf.
    ///
    /// # Errors
    /// It is protobuf: the server has answered with what was not asked for.
    pub(super) fn json(self) -> Result<&'a str, String> {
        match self {
            Self::Json(json) => Ok(json),
            Self::Protobuf(_) => Err("is protobuf instead of JSON".to_owned()),
        }
    }
}

/// An object that cannot be decoded, and the cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}{} (item {} of its list): {}{reason}", quoted(name.as_deref()), index + 1, at(path))]
pub struct ObjectError {
    /// The object's kind.
    pub kind: Kind,
    /// Its index in the list, from 0.
    pub index: usize,
    /// `NAMESPACE/NAME` or `NAME`, as far as they can be read.
    pub name: Option<String>,
    /// The path of the invalid field, such as `spec.taints[0].effect`; empty for the whole object.
    pub path: String,
    /// The cause.
    pub reason: String,
}

fn quoted(name: Option<&str>) -> String {
    name.map(|name| format!(" `{name}`")).unwrap_or_default()
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// The JSON form of one kind, and its conversion to the model.
trait Wire<'a>: Deserialize<'a> {
    /// The kind's type in the model.
    type Slim;
    /// The form in which its annotations are kept.
    type Annotations;
    const KIND: Kind;

    fn metadata(&self) -> &Metadata<'a, Self::Annotations>;

    /// Converts to the model; `json` is the text it was decoded from.
    fn slim(self, json: &str, context: &mut Context<'_>) -> Result<Self::Slim, Cause>;
}

/// The longest message that is kept, in characters.
const MESSAGE_LENGTH: usize = 512;

/// Truncates a message to the longest length.
pub(super) fn cut(message: &str) -> Box<str> {
    match message.char_indices().nth(MESSAGE_LENGTH) {
        Some((end, _)) => format!("{}…", &message[..end]).into(),
        None => message.into(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use daemonset::model::{ClusterInfo, Coverage, Node, Pod, Snapshot};

    pub(super) fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Decodes a node with this `spec` and `status`.
    pub(super) fn node(spec: &str, status: &str) -> Node {
        let json =
            format!(r#"{{"metadata":{{"name":"n","uid":"u"}},"spec":{spec},"status":{status}}}"#);
        decoded(&[(Kind::Node, &json)]).nodes.remove(0)
    }

    /// Decodes a pod with this `spec` and `status`.
    pub(super) fn pod(spec: &str, status: &str) -> Pod {
        let json = format!(
            r#"{{"metadata":{{"namespace":"ns","name":"p","uid":"u"}},"spec":{spec},"status":{status}}}"#
        );
        decoded(&[(Kind::Pod, &json)]).pods.remove(0)
    }

    /// The snapshot of these objects, each of which another thread has decoded.
    pub(super) fn decoded(objects: &[(Kind, &str)]) -> Snapshot {
        let mut snapshot_builder = SnapshotBuilder::default();
        for (index, (kind, json)) in objects.iter().enumerate() {
            let mut of_thread = SnapshotBuilder::default();
            of_thread.add(*kind, index, json).unwrap();
            snapshot_builder.merge(of_thread);
        }
        let coverage = Coverage {
            scope: None,
            managed_fields: false,
            namespaces: true,
            services: true,
            leases: true,
            records: true,
            masked: None,
        };
        snapshot_builder
            .into_snapshot(ClusterInfo::default(), Timestamp::UNIX_EPOCH, coverage)
            .unwrap()
    }

    #[test]
    fn a_node_and_its_pods_share_its_name() {
        let node = r#"{"metadata":{"name":"n","uid":"1"}}"#;
        let pod = r#"{"metadata":{"namespace":"a","name":"b","uid":"2"},"spec":{"nodeName":"n"}}"#;
        let gone = pod.replace(r#""b""#, r#""c""#).replace(r#""n""#, r#""gone""#);
        let Snapshot { nodes, pods, .. } =
            decoded(&[(Kind::Pod, pod), (Kind::Node, node), (Kind::Pod, &gone)]);
        assert!(std::ptr::eq(pods[0].node().unwrap().as_str(), nodes[0].name.as_str()));
        assert_eq!(pods[1].node().unwrap(), "gone");
    }

    #[test]
    fn errors_name_the_object_and_the_field() {
        let deep = format!(
            r#"{{"metadata":{{"namespace":"a","name":"b","uid":"u"}},"spec":{{"selector":{{}},"template":{{}}}},"x":{}1{}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        for (kind, json, want) in [
            (Kind::Node, "{}", "Node (item 5 of its list): metadata.name: is missing"),
            (
                Kind::Node,
                "7",
                "Node (item 5 of its list): invalid type: integer `7`, expected an object",
            ),
            (
                Kind::Node,
                r#"{"metadata":{"name":""}}"#,
                "Node `` (item 5 of its list): metadata.name: is missing",
            ),
            (
                Kind::Node,
                r#"{"metadata":{"name":"n"}}"#,
                "Node `n` (item 5 of its list): metadata.uid: is missing",
            ),
            (
                Kind::Node,
                r#"{"metadata":{"name":"n","uid":"u"},"spec":{"taints":[{"key":1}]}}"#,
                "Node `n` (item 5 of its list): spec.taints[0].key: invalid type: integer `1`, expected a string",
            ),
            (
                Kind::Pod,
                r#"{"metadata":{"name":"p","uid":"u"}}"#,
                "Pod `p` (item 5 of its list): metadata.namespace: is missing",
            ),
            (
                Kind::DaemonSet,
                r#"{"metadata":{"namespace":"a","name":"b","uid":"u"},"spec":{"selector":{}}}"#,
                "DaemonSet `a/b` (item 5 of its list): spec: missing field `template`",
            ),
            (
                Kind::ControllerRevision,
                r#"{"metadata":{"namespace":"a","name":"b","uid":"u","creationTimestamp":"yesterday"}}"#,
                "ControllerRevision `a/b` (item 5 of its list): metadata.creationTimestamp: ",
            ),
            (Kind::DaemonSet, &deep, "DaemonSet `a/b` (item 5 of its list): is nested too deeply"),
        ] {
            let error = SnapshotBuilder::default().add(kind, 4, json).unwrap_err().to_string();
            assert!(error.starts_with(want), "{json}\n got {error}\nwant {want}");
        }
    }

    #[test]
    fn a_daemon_set_keeps_all_fields_except_its_status() {
        let json = r#"{"metadata":{"namespace":"a","name":"b","uid":"u","generation":3,
            "managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}},"time":"2026-01-01T00:00:00Z"}]},
            "spec":{"selector":{"matchLabels":{"app":"x"}},"unknown":1,
                "template":{"metadata":{"labels":{"app":"x"}},"spec":{"nodeName":"n"}}},
            "status":{"observedGeneration":2,"numberReady":1}}"#;
        let found = decoded(&[(Kind::DaemonSet, json)]).daemon_sets.remove(0);
        assert_eq!((found.generation, found.status.observed_generation), (3, 2));
        assert_eq!(found.spec.template.placement.node_name, Some("n".into()));
        let raw = &found.raw;
        assert_eq!(raw.get("status"), None);
        assert_eq!(raw["spec"]["unknown"], 1);
        assert_eq!(raw["metadata"]["managedFields"][0]["manager"], "m");
        assert_eq!((&raw["apiVersion"], &raw["kind"]), (&"apps/v1".into(), &"DaemonSet".into()));
    }

    #[test]
    fn the_controller_is_the_owner_with_controller_true() {
        let json = r#"{"metadata":{"namespace":"a","name":"b","uid":"u","ownerReferences":[
            {"kind":"Node","name":"n","uid":"1"},
            {"kind":"DaemonSet","name":"d","uid":"2","controller":true},
            {"kind":"DaemonSet","name":"e","uid":"3","controller":true}]},
            "revision":7,"data":{"spec":{}}}"#;
        let found = decoded(&[(Kind::ControllerRevision, json)]).revisions.remove(0);
        let controller = found.controller.unwrap();
        assert_eq!(
            (&*controller.kind, &*controller.name, &*controller.uid.to_string()),
            ("DaemonSet", "d", "2")
        );
        assert_eq!((found.number.0, &*found.data), (7, &serde_json::json!({"spec": {}})));
    }

    #[test]
    fn the_newest_time_ignores_future_times() {
        let newest = |kind, json: &str| {
            let mut snapshot_builder = SnapshotBuilder::default();
            snapshot_builder.add(kind, 0, json).unwrap();
            snapshot_builder.newest.map(|moment| moment.to_string())
        };
        let metadata = r#""metadata":{"namespace":"a","name":"b","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2030-01-01T00:00:00Z"}"#;
        let managed = metadata
            .replace(r#""name""#, r#""managedFields":[{"time":"2026-01-02T00:00:00Z"},{}],"name""#);
        for (kind, json, want) in [
            (Kind::Pod, format!("{{{metadata}}}"), "2026-01-01T00:00:00Z"),
            (Kind::Pod, format!("{{{managed}}}"), "2026-01-02T00:00:00Z"),
            (
                Kind::Node,
                format!(
                    r#"{{{metadata},"status":{{"conditions":[{{"type":"X","status":"True","lastHeartbeatTime":"2026-01-03T00:00:00Z"}}]}}}}"#
                ),
                "2026-01-03T00:00:00Z",
            ),
            (
                Kind::Pod,
                format!(r#"{{{metadata},"status":{{"startTime":"2026-01-04T00:00:00Z"}}}}"#),
                "2026-01-04T00:00:00Z",
            ),
            (
                Kind::Pod,
                format!(
                    r#"{{{metadata},"status":{{"conditions":[{{"type":"X","status":"True","lastProbeTime":"2026-01-05T00:00:00Z"}}]}}}}"#
                ),
                "2026-01-05T00:00:00Z",
            ),
            (
                Kind::Pod,
                format!(
                    r#"{{{metadata},"status":{{"containerStatuses":[{{"state":{{"running":{{"startedAt":"2026-01-06T00:00:00Z"}}}}}}]}}}}"#
                ),
                "2026-01-06T00:00:00Z",
            ),
            (
                Kind::Pod,
                format!(
                    r#"{{{metadata},"status":{{"initContainerStatuses":[{{"lastState":{{"terminated":{{"exitCode":0,"finishedAt":"2026-01-07T00:00:00Z"}}}}}}]}}}}"#
                ),
                "2026-01-07T00:00:00Z",
            ),
        ] {
            assert_eq!(newest(kind, &json).as_deref(), Some(want), "{json}");
        }
    }

    #[test]
    fn a_duplicate_object_is_an_error() {
        let pod = r#"{"metadata":{"namespace":"ns","name":"p","uid":"u"}}"#;
        let mut snapshot_builder = SnapshotBuilder::default();
        for index in 0..2 {
            snapshot_builder.add(Kind::Pod, index, pod).unwrap();
        }
        let coverage = Coverage {
            scope: None,
            managed_fields: false,
            namespaces: true,
            services: true,
            leases: true,
            records: true,
            masked: None,
        };
        let result =
            snapshot_builder.into_snapshot(ClusterInfo::default(), Timestamp::UNIX_EPOCH, coverage);
        assert_eq!(result.unwrap_err(), (Kind::Pod, "ns/p".to_owned()));
    }

    #[test]
    fn escapes_and_nulls_in_labels_are_read() {
        let json = r#"{"metadata":{"name":"n\u0041","uid":"u","labels":{"a\u002fb":"c\u0064","e":null},"annotations":null,"ownerReferences":null}}"#;
        let found = decoded(&[(Kind::Node, json)]).nodes.remove(0);
        assert_eq!(found.name.as_str(), "nA");
        assert_eq!(found.labels.iter().collect::<Vec<_>>(), [("a/b", "cd"), ("e", "")]);
    }
}
