//! The status of a pod in the API (upstream: kubelet's `generateAPIPodStatus`).
//!
//! Pure. A condition keeps its transition time while its status does not change.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::life::{Life, Stage, StartUp};
use crate::clock::whole_second;
use daemonset::model::null_as_default;

/// The part of a pod's spec that the kubelet needs.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) init_containers: Vec<Container>,
}

/// A container of the pod.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Container {
    name: Box<str>,
    pub(super) image: Box<str>,
    /// `Always` for a sidecar among the init containers.
    restart_policy: Option<Box<str>>,
    readiness_probe: Option<IgnoredAny>,
}

impl Spec {
    /// `true` if a container has a readiness probe.
    pub(super) fn is_probed(&self) -> bool {
        self.containers.iter().any(|container| container.readiness_probe.is_some())
    }
}

/// The status of a pod on a node; `before` is its previous status.
pub(super) fn status(
    spec: &Spec,
    before: &Value,
    life: &Life,
    plan: &StartUp,
    now: Timestamp,
) -> Value {
    let ready = life.stage == Stage::Ready;
    let made = life.started.is_some();
    let why = if ready { None } else { Some("ContainersNotReady") };
    let conditions = [
        condition(before, "PodReadyToStartContainers", made, None, now),
        condition(before, "Initialized", true, None, now),
        condition(before, "Ready", ready, why, now),
        condition(before, "ContainersReady", ready, why, now),
        condition(before, "PodScheduled", true, None, now),
    ];
    let started = before["startTime"].as_str().map(str::to_owned);
    let mut status = json!({
        "phase": if made { "Running" } else { "Pending" },
        "startTime": started.unwrap_or_else(|| whole_second(now)),
        "qosClass": before["qosClass"],
    });
    status["conditions"] = conditions.into_iter().collect();
    status["initContainerStatuses"] = init_containers(spec, life).into();
    status["containerStatuses"] = containers(spec, life, plan).into();
    status
}

/// The status of a puller whose images are there: none of its containers could be started (a real
/// kubelet with containerd reports it so).
pub(super) fn ended(spec: &Spec, before: &Value, now: Timestamp) -> Value {
    let mut status = before.clone();
    status["phase"] = "Failed".into();
    status["containerStatuses"] =
        spec.containers.iter().map(|container| not_started(container, now)).collect();
    status
}

/// The status of a container whose image is there and whose command does not exist.
fn not_started(container: &Container, now: Timestamp) -> Value {
    let Container { name, image, restart_policy: _, readiness_probe: _ } = container;
    let ended = json!({"exitCode": 128, "reason": "StartError", "finishedAt": whole_second(now)});
    json!({
        "name": name, "image": image, "imageID": image, "ready": false, "started": false,
        "restartCount": 0, "state": {"terminated": ended}, "lastState": {},
    })
}

/// A condition; keeps the transition time if its status does not change.
fn condition(
    before: &Value,
    kind: &str,
    holds: bool,
    reason: Option<&str>,
    now: Timestamp,
) -> Value {
    let status = if holds { "True" } else { "False" };
    let known = before["conditions"].as_array().into_iter().flatten();
    let mut known = known.filter(|it| it["type"] == kind && it["status"] == status);
    let since = known.next().and_then(|it| it["lastTransitionTime"].as_str());
    let mut condition = json!({
        "type": kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since.map_or_else(|| whole_second(now), str::to_owned),
    });
    if let Some(reason) = reason {
        condition["reason"] = reason.into();
        condition["message"] = "containers are not ready".into();
    }
    condition
}

fn containers(spec: &Spec, life: &Life, plan: &StartUp) -> Vec<Value> {
    let troubled = plan.fault.map(|fault| fault.container);
    spec.containers
        .iter()
        .enumerate()
        .map(|(at, it)| match troubled {
            // Of a puller, the others are through.
            Some(troubled) if plan.starts_nothing && troubled != at && life.has_pulled() => {
                not_started(it, life.since)
            }
            Some(troubled) => container(it, life, troubled == at),
            None => container(it, life, false),
        })
        .collect()
}

/// The status of a container: the one with the fault follows the pod's life, the others behave
/// well.
fn container(container: &Container, life: &Life, troubled: bool) -> Value {
    let Container { name, image, restart_policy: _, readiness_probe: _ } = container;
    let since = life.started.map(whole_second);
    let (state, ready) = match (life.stage, troubled) {
        (Stage::Creating, _) | (Stage::PullFailed | Stage::PullBackOff, false) => {
            (waiting("ContainerCreating", ""), false)
        }
        (Stage::PullFailed, true) => {
            let message = format!("failed to pull image \"{image}\": not found");
            (waiting("ErrImagePull", &message), false)
        }
        (Stage::PullBackOff, true) => {
            let message = format!("Back-off pulling image \"{image}\"");
            (waiting("ImagePullBackOff", &message), false)
        }
        (Stage::CrashBackOff, true) => {
            (waiting("CrashLoopBackOff", "back-off restarting failed container"), false)
        }
        (Stage::Running | Stage::Ready, true) => {
            let began = life.began.map(whole_second);
            (json!({"running": {"startedAt": began}}), life.stage == Stage::Ready)
        }
        (Stage::Running | Stage::CrashBackOff, false) => {
            (json!({"running": {"startedAt": since}}), life.restarts > 0)
        }
        (Stage::Ready, false) => (json!({"running": {"startedAt": since}}), true),
    };
    let is_running = !state["running"].is_null();
    let mut status = json!({
        "name": name,
        "image": image,
        "imageID": if life.started.is_some() { &**image } else { "" },
        "ready": ready,
        "started": is_running,
        "restartCount": if troubled { life.restarts } else { 0 },
        "state": state,
        "lastState": {},
    });
    if let Some(ended) = life.ended.filter(|_| troubled) {
        status["lastState"] = json!({"terminated": {
            "exitCode": 1, "reason": "Error", "finishedAt": whole_second(ended),
        }});
    }
    status
}

fn waiting(reason: &str, message: &str) -> Value {
    let mut waiting = json!({"reason": reason});
    if !message.is_empty() {
        waiting["message"] = message.into();
    }
    json!({"waiting": waiting})
}

/// The status of init containers: completed when the others run, except sidecars, which run.
fn init_containers(spec: &Spec, life: &Life) -> Vec<Value> {
    let one = |Container { name, image, restart_policy, readiness_probe: _ }: &Container| {
        let state = match life.started.map(whole_second) {
            None => waiting("PodInitializing", ""),
            Some(since) if restart_policy.as_deref() == Some("Always") => {
                json!({"running": {"startedAt": since}})
            }
            Some(since) => json!({"terminated": {
                "exitCode": 0, "reason": "Completed", "finishedAt": since,
            }}),
        };
        let done = life.started.is_some();
        json!({
            "name": name, "image": image, "ready": done, "restartCount": 0,
            "state": state, "lastState": {},
        })
    };
    spec.init_containers.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::life::{Cause, ContainerFault};
    use super::*;
    use daemonset::controller::test_cluster::at;

    fn plan(cause: Option<Cause>) -> StartUp {
        StartUp {
            creating: Duration::from_secs(4),
            ready: Duration::from_secs(3),
            fault: cause.map(|cause| ContainerFault { container: 1, cause }),
            starts_nothing: false,
        }
    }

    fn spec(names: &[&str]) -> Spec {
        let containers = names.iter().map(|name| json!({"name": name, "image": "i:1"}));
        Spec::deserialize(json!({"containers": containers.collect::<Vec<_>>()})).unwrap()
    }

    #[test]
    fn each_stage_has_its_status() {
        let spec = spec(&["good", "bad"]);
        let ends = Some(Cause::Ends(Duration::from_secs(1)));
        for (stage, cause, phase, ready, reason) in [
            (Stage::Creating, None, "Pending", "False", "ContainerCreating"),
            (Stage::PullFailed, Some(Cause::NeverPulls), "Pending", "False", "ErrImagePull"),
            (Stage::PullBackOff, Some(Cause::NeverPulls), "Pending", "False", "ImagePullBackOff"),
            (Stage::Running, None, "Running", "False", ""),
            (Stage::Ready, None, "Running", "True", ""),
            (Stage::CrashBackOff, ends, "Running", "False", "CrashLoopBackOff"),
        ] {
            let mut life = Life::at(stage, at(0));
            if stage == Stage::CrashBackOff {
                life.started = Some(at(0));
            }
            let status = status(&spec, &Value::Null, &life, &plan(cause), at(60));
            let bad = &status["containerStatuses"][1]["state"]["waiting"]["reason"];
            assert_eq!(status["phase"], phase, "{stage:?}");
            assert_eq!(status["conditions"][2]["status"], ready, "{stage:?}");
            assert_eq!(bad.as_str().unwrap_or_default(), reason, "{stage:?}");
        }
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_is_equal() {
        let spec = spec(&["c"]);
        let life = Life::at(Stage::Running, at(0));
        let running = status(&spec, &Value::Null, &life, &plan(None), at(10));
        let life = Life::at(Stage::Ready, at(0));
        let ready = status(&spec, &running, &life, &plan(None), at(20));
        let later = status(&spec, &ready, &life, &plan(None), at(30));
        let times: Vec<&Value> =
            [0, 2].map(|at| &later["conditions"][at]["lastTransitionTime"]).into();
        assert_eq!(times, ["1970-01-01T00:00:10Z", "1970-01-01T00:00:20Z"]);
        assert_eq!(later["startTime"], "1970-01-01T00:00:10Z");
    }
}
