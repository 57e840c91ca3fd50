//! Reads pullers: pods that make a node pull images.
//!
//! A kubelet pulls the image of a container first, then it makes and starts the container. So an
//! image is there as soon as its container has an `imageID`, or failed for a later reason.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::picked::{Pick, PickedPods};
use crate::Error;
use crate::decode::{Encoded, cut, lenient};
use crate::list::{self, List};
use crate::request::{Accept, Requests};
use daemonset::model::{
    Labels, NodeName, PRE_PULL_IMAGES_LABEL, PullProblem, PullState, Puller, null_as_default,
};

/// Reasons for which a container waits after its image was pulled (upstream: kubelet's
/// `startContainer`).
const AFTER_THE_PULL: [&str; 5] = [
    "CreateContainerConfigError",
    "PreCreateHookError",
    "CreateContainerError",
    "PreStartHookError",
    "RunContainerError",
];

#[derive(Deserialize)]
struct Wire {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: Spec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: Labels,
    #[serde(default, deserialize_with = "lenient::moment")]
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    owner_references: Vec<Owner>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
    name: String,
    controller: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    node_name: String,
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    image: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[serde(deserialize_with = "null_as_default")]
    phase: String,
    #[serde(deserialize_with = "null_as_default")]
    reason: String,
    #[serde(deserialize_with = "null_as_default")]
    message: String,
    #[serde(deserialize_with = "null_as_default")]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    #[serde(rename = "imageID", deserialize_with = "null_as_default")]
    image_id: String,
    #[serde(deserialize_with = "null_as_default")]
    state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Waiting>,
    running: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    #[serde(deserialize_with = "null_as_default")]
    reason: String,
    #[serde(deserialize_with = "null_as_default")]
    message: String,
}

/// Keeps the pullers of a Lease, by its name.
struct OfLease(String);

impl Pick for OfLease {
    type Pod = Puller;

    /// There are few.
    const ACCEPTS: Accept = Accept::Json;

    fn pick(&mut self, pod: Encoded<'_>) -> Result<Option<Puller>, String> {
        read(pod.json()?, &self.0).map_err(|error| error.to_string())
    }
}

/// Reads the list of pullers; returns them by name, and the version where a watch continues.
pub(super) async fn list(
    requests: &Requests,
    list: &List,
    page_size: u32,
    lease: &str,
) -> Result<(Vec<Puller>, Option<String>), Error> {
    let sink = || PickedPods::new(&requests.server, OfLease(lease.to_owned()));
    let (mut pullers, version) = list::read(requests, list, page_size, &sink).await?.finish();
    pullers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((pullers, version))
}

/// Reads a puller. `None` if its controller is not this Lease: others may use the label, too.
pub(super) fn read(json: &str, lease: &str) -> Result<Option<Puller>, serde_json::Error> {
    let Wire { metadata, spec, status } = serde_json::from_str(json)?;
    let is_it = |owner: &Owner| owner.controller && owner.kind == "Lease" && owner.name == lease;
    if !metadata.owner_references.iter().any(is_it) {
        return Ok(None);
    }
    Ok(Some(Puller {
        state: status.state(&spec),
        name: metadata.name.into(),
        uid: metadata.uid.into(),
        node: NodeName::from(spec.node_name),
        images: metadata.labels.get(PRE_PULL_IMAGES_LABEL).unwrap_or_default().into(),
        created: metadata.creation_timestamp,
        terminating: metadata.deletion_timestamp.is_some(),
    }))
}

impl Status {
    fn state(&self, spec: &Spec) -> PullState {
        let of = |container: &Container| {
            self.container_statuses.iter().find(|status| status.name == container.name)
        };
        let is_there =
            |container: &&Container| of(container).is_some_and(ContainerStatus::has_image);
        let mut missing = spec.containers.iter().filter(|it| !is_there(it)).peekable();
        if missing.peek().is_none() && !spec.containers.is_empty() {
            return PullState::Pulled;
        }
        let problem = missing.find_map(|it| of(it)?.problem(&it.image));
        if !matches!(self.phase.as_str(), "Failed" | "Succeeded") {
            return PullState::Pulling(problem);
        }
        PullState::Ended(problem.unwrap_or_else(|| PullProblem {
            image: Box::default(),
            reason: cut(&self.reason),
            message: cut(&self.message),
        }))
    }
}

impl ContainerStatus {
    fn has_image(&self) -> bool {
        let is_later = |waiting: &Waiting| AFTER_THE_PULL.contains(&waiting.reason.as_str());
        !self.image_id.is_empty()
            || self.state.running.is_some()
            || self.state.waiting.as_ref().is_some_and(is_later)
    }

    /// What the kubelet says about the image. `ContainerCreating` is no problem.
    fn problem(&self, image: &str) -> Option<PullProblem> {
        let Waiting { reason, message } = self.state.waiting.as_ref()?;
        let is_usual = matches!(reason.as_str(), "" | "ContainerCreating" | "PodInitializing");
        (!is_usual).then(|| PullProblem {
            image: cut(image),
            reason: cut(reason),
            message: cut(message),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn owners() -> Value {
        json!([{"kind": "Lease", "name": "ds-plan-agent", "uid": "l", "controller": true}])
    }

    /// The state of a puller of `a:1` and `b:1` with these statuses.
    fn state(phase: &str, statuses: [Value; 2]) -> PullState {
        let [a, b] = statuses;
        let mut statuses = vec![a, b];
        for (status, name) in statuses.iter_mut().zip(["image-0", "image-1"]) {
            if status.is_object() {
                status["name"] = name.into();
            }
        }
        statuses.retain(Value::is_object);
        let pod = json!({
            "metadata": {
                "name": "p", "uid": "u", "labels": {PRE_PULL_IMAGES_LABEL: "d"},
                "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners(),
            },
            "spec": {"nodeName": "n", "containers": [
                {"name": "image-0", "image": "a:1"}, {"name": "image-1", "image": "b:1"},
            ]},
            "status": {"phase": phase, "reason": "Evicted", "message": "disk", "containerStatuses": statuses},
        });
        let puller = read(&pod.to_string(), "ds-plan-agent").unwrap().unwrap();
        assert_eq!((puller.node.as_str(), &*puller.images), ("n", "d"));
        puller.state
    }

    #[test]
    fn an_image_is_there_when_its_container_could_be_made() {
        // As a real kubelet reports it: the command does not exist.
        let ended = || {
            json!({
                "imageID": "r/a@sha256:0",
                "state": {"terminated": {"exitCode": 128, "reason": "StartError"}},
            })
        };
        let waits = |reason: &str| json!({"imageID": "", "state": {"waiting": {"reason": reason, "message": "m"}}});
        let problem = |image: &str, reason: &str| {
            let (reason, message) = (reason.into(), "m".into());
            Some(PullProblem { image: image.into(), reason, message })
        };
        let none = || Value::Null;
        for (statuses, want) in [
            ([none(), none()], PullState::Pulling(None)),
            ([waits("ContainerCreating"), waits("ContainerCreating")], PullState::Pulling(None)),
            ([ended(), waits("ContainerCreating")], PullState::Pulling(None)),
            ([ended(), none()], PullState::Pulling(None)),
            ([ended(), waits("ErrImagePull")], PullState::Pulling(problem("b:1", "ErrImagePull"))),
            (
                [waits("ImagePullBackOff"), ended()],
                PullState::Pulling(problem("a:1", "ImagePullBackOff")),
            ),
            (
                [ended(), waits("InvalidImageName")],
                PullState::Pulling(problem("b:1", "InvalidImageName")),
            ),
            (
                [ended(), json!({"state": {"terminated": {"reason": "ContainerStatusUnknown"}}})],
                PullState::Pulling(None),
            ),
            ([ended(), ended()], PullState::Pulled),
            ([json!({"state": {"running": {}}}), ended()], PullState::Pulled),
            ([waits("CreateContainerError"), waits("RunContainerError")], PullState::Pulled),
            ([waits("CreateContainerConfigError"), ended()], PullState::Pulled),
        ] {
            assert_eq!(state("Pending", statuses.clone()), want, "{statuses:?}");
        }
        assert_eq!(state("Failed", [ended(), ended()]), PullState::Pulled);
    }

    #[test]
    fn only_pods_of_the_lease_are_pullers() {
        let pod = |owners: Value| {
            json!({"metadata": {"name": "p", "uid": "u", "ownerReferences": owners}}).to_string()
        };
        assert!(read(&pod(owners()), "ds-plan-agent").unwrap().is_some());
        assert_eq!(read(&pod(owners()), "ds-plan-other").unwrap(), None);
        assert_eq!(read(&pod(Value::Null), "ds-plan-agent").unwrap(), None);
        let mut other = owners();
        other[0]["kind"] = "DaemonSet".into();
        assert_eq!(read(&pod(other), "ds-plan-agent").unwrap(), None);
    }

    #[test]
    fn one_that_has_ended_without_all_images_tells_why() {
        let problem =
            PullProblem { image: "".into(), reason: "Evicted".into(), message: "disk".into() };
        assert_eq!(state("Failed", [Value::Null, Value::Null]), PullState::Ended(problem));
    }
}
