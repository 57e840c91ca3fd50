//! `v1` Pod, with the few fields that the checks of a policy need: there may be very many of them.

mod message;

use jiff::Timestamp;
use serde::Deserialize;

use super::context::Cause;
use super::metadata::{Metadata, Pairs};
use super::pod::readiness;
use super::text::Text;
use super::{Condition, Encoded, lenient, protobuf};
use daemonset::model::{Interner, Neighbour, NeighbourQuery, NodeName, null_as_default};

#[derive(Default, Deserialize)]
#[serde(expecting = "an object")]
struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    spec: Spec<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    status: Status<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    node_name: Option<Text<'a>>,
    /// Requests of the pod as a whole (Kubernetes 1.34).
    #[serde(borrow, deserialize_with = "null_as_default")]
    resources: Resources<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    init_containers: Vec<Container<'a>>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    containers: Vec<Container<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    resources: Resources<'a>,
}

/// The server adds a request for each limit.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources<'a> {
    #[serde(borrow)]
    requests: Pairs<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow)]
    phase: Option<Text<'a>>,
    #[serde(deserialize_with = "lenient::moment")]
    start_time: Option<Timestamp>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    conditions: Vec<Condition<'a>>,
}

/// Reads a pod; with `false` if the query is not about it: it has ended, or requests none of the
/// resources.
///
/// # Errors
/// It is not a pod, or has no name.
pub(crate) fn read(
    pod: Encoded<'_>,
    query: &NeighbourQuery,
    interner: &mut Interner,
) -> Result<(Neighbour, bool), String> {
    let Wire { metadata, spec, status } = match pod {
        Encoded::Json(json) => serde_json::from_str(json).map_err(|error| error.to_string())?,
        Encoded::Protobuf(bytes) => protobuf::read(bytes).map_err(|error| error.to_string())?,
    };
    let missing = |cause: Cause| match cause {
        Cause::Missing(field) => format!("{field} is missing"),
        Cause::Inside(field, why) => format!("{field}: {why}"),
        Cause::Malformed(malformed) => malformed.to_string(),
        Cause::Shape => "it is not a pod".to_owned(),
    };
    let wanted = query.resources.iter().flatten();
    let resources: Box<[_]> = wanted
        .filter(|wanted| spec.requests(wanted))
        .map(|wanted| interner.share(wanted))
        .collect();
    let has_ended = matches!(status.phase.as_ref().map(|it| &*it.0), Some("Succeeded" | "Failed"));
    let is_it = !has_ended && (query.resources.is_none() || !resources.is_empty());
    let ready = status.conditions.iter().find(|condition| condition.kind.0 == "Ready");
    let node = spec.node_name.filter(|node| !node.0.is_empty());
    let neighbour = Neighbour {
        namespace: metadata.namespace(interner).map_err(missing)?,
        name: metadata.name().map_err(missing)?.into(),
        controller: metadata.controller(interner).map(|controller| controller.uid.clone()),
        node: node.map(|node| NodeName::from(node.shared(interner))),
        created: metadata.created(),
        readiness: readiness(ready, status.start_time.or(metadata.creation_timestamp)),
        terminating: metadata.is_terminating(),
        resources,
    };
    Ok((neighbour, is_it))
}

impl Spec<'_> {
    /// Whether it requests some of a resource.
    fn requests(&self, resource: &str) -> bool {
        let of_containers = self.init_containers.iter().chain(&self.containers);
        let all = of_containers.map(|container| &container.resources).chain([&self.resources]);
        let mut amounts = all.filter_map(|resources| resources.requests.get(resource));
        // A quantity such as `0`, `0.0` or `0m` is nothing.
        amounts.any(|amount| {
            let number = amount.split(['e', 'E']).next().unwrap_or_default();
            number.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use daemonset::model::{LabelSelector, PodReadiness};

    fn query(resources: &[&str]) -> NeighbourQuery {
        let wanted: BTreeSet<String> = resources.iter().map(|&it| it.to_owned()).collect();
        let resources = (!wanted.is_empty()).then_some(wanted);
        NeighbourQuery { selector: LabelSelector::default(), resources }
    }

    fn pod(spec: &Value, status: &Value) -> String {
        json!({
            "metadata": {
                "namespace": "ns", "name": "p", "uid": "u",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "r1", "controller": true}],
            },
            "spec": spec, "status": status,
        })
        .to_string()
    }

    fn read_one(json: &str, query: &NeighbourQuery) -> (Neighbour, bool) {
        read(Encoded::Json(json), query, &mut Interner::default()).unwrap()
    }

    #[test]
    fn readiness_and_node_are_read() {
        let ready = |status: &str, at: &str| {
            json!({"phase": "Running", "startTime": "2026-01-01T00:00:01Z", "conditions": [
                {"type": "Ready", "status": status, "lastTransitionTime": at},
            ]})
        };
        let at: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        for (status, want) in [
            (ready("True", "2026-01-01T01:00:00Z"), PodReadiness::Ready { since: Some(at.into()) }),
            (
                ready("False", "2026-01-01T01:00:00Z"),
                PodReadiness::NotReady { since: Some(at.into()) },
            ),
            (ready("False", "2026-01-01T00:00:01Z"), PodReadiness::NotReady { since: None }),
            (json!({}), PodReadiness::NotReady { since: None }),
        ] {
            let (pod, is_it) = read_one(&pod(&json!({"nodeName": "n"}), &status), &query(&[]));
            assert_eq!((pod.readiness, is_it), (want, true), "{status}");
            assert_eq!((pod.node, pod.controller), (Some("n".into()), Some("r1".into())));
            assert_eq!((pod.namespace.as_str(), pod.name.as_str()), ("ns", "p"));
        }
        let (pod, _) = read_one(&pod(&json!({"nodeName": ""}), &json!(null)), &query(&[]));
        assert_eq!(pod.node, None);
    }

    #[test]
    fn only_pods_that_run_and_request_a_resource_are_wanted() {
        let requests = |amount: &str| json!({"resources": {"requests": {"gpu": amount}}});
        let on = |containers: Value| json!({"containers": containers});
        for (what, spec, phase, want) in [
            ("it requests one", on(json!([{}, requests("1")])), "Running", true),
            ("an init container does", json!({"initContainers": [requests("2")]}), "Pending", true),
            ("the pod as a whole does", requests("1"), "Running", true),
            ("none", on(json!([requests("0")])), "Running", false),
            ("none of it", on(json!([requests("0e3")])), "Running", false),
            ("no requests", on(json!([{"resources": null}])), "Running", false),
            ("it has ended", on(json!([requests("1")])), "Succeeded", false),
            ("it has failed", on(json!([requests("1")])), "Failed", false),
        ] {
            let (pod, is_it) =
                read_one(&pod(&spec, &json!({"phase": phase})), &query(&["gpu", "x"]));
            assert_eq!(is_it, want, "{what}");
            assert!(!is_it || pod.resources.iter().map(|it| &**it).eq(["gpu"]), "{what}");
        }
    }

    #[test]
    fn what_is_no_pod_is_an_error() {
        for (json, want) in [
            ("7", "expected an object"),
            (r#"{"metadata":{"name":"p","uid":"u"}}"#, "metadata.namespace is missing"),
            (r#"{"metadata":{"namespace":"ns","uid":"u"}}"#, "metadata.name is missing"),
        ] {
            let pod = Encoded::Json(json);
            let error = read(pod, &query(&[]), &mut Interner::default()).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
    }
}
