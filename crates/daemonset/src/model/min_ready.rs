//! The time that a new pod must stay up before it counts as available.
//!
//! Upstream uses the condition `Ready` only. A container without readiness probe is Ready as soon
//! as it starts, so an agent that crashes after seconds would count as available on node after
//! node. [`Pod::has_stayed_up`] checks whether a pod has stayed up.
//!
//! [`Pod::has_stayed_up`]: super::Pod::has_stayed_up

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::DaemonSetSpec;

/// The default, in seconds.
pub(super) const DEFAULT: u32 = 10;

/// Seconds that a new pod must be Ready, without a container that restarts or terminates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinReady {
    /// On the first node of a rollout.
    pub first: u32,
    /// On all others.
    pub others: u32,
}

impl MinReady {
    /// The greater of the DaemonSet's own `minReadySeconds` and the requested value. Default: 10
    /// for the first node, and for all nodes if a long-running container has no readiness probe.
    pub fn of(spec: &DaemonSetSpec, asked: Option<u32>) -> Self {
        let own = spec.min_ready_seconds;
        if let Some(seconds) = asked {
            return Self { first: own.max(seconds), others: own.max(seconds) };
        }
        let others = if is_ready_when_started(spec.template.raw()) { DEFAULT } else { 0 };
        Self { first: own.max(DEFAULT), others: own.max(others) }
    }
}

/// Whether a long-running container has no readiness probe, and so is Ready when it has started.
/// Init containers with `restartPolicy: Always` are long-running.
fn is_ready_when_started(template: &Value) -> bool {
    let of = |field: &str| template["spec"][field].as_array().into_iter().flatten();
    let runs_on = |container: &&Value| container["restartPolicy"] == "Always";
    let mut running = of("containers").chain(of("initContainers").filter(runs_on));
    running.any(|container| !container["readinessProbe"].is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(min_ready: u32, pod: &Value) -> DaemonSetSpec {
        let spec = json!({
            "selector": {}, "minReadySeconds": min_ready,
            "template": {"metadata": {}, "spec": pod},
        });
        Deserialize::deserialize(spec).unwrap()
    }

    #[test]
    fn ten_seconds_for_the_first_node_and_without_a_readiness_probe() {
        let probed = json!({"name": "a", "readinessProbe": {"tcpSocket": {"port": 1}}});
        let bare = json!({"name": "b"});
        let sidecar = json!({"name": "s", "restartPolicy": "Always"});
        for (rule, pod, own, asked, want) in [
            ("all have a probe", json!({"containers": [probed]}), 0, None, (10, 0)),
            ("one has none", json!({"containers": [probed, bare]}), 0, None, (10, 10)),
            (
                "a sidecar has none",
                json!({"containers": [probed], "initContainers": [sidecar]}),
                0,
                None,
                (10, 10),
            ),
            (
                "an init container ends, and needs none",
                json!({"containers": [probed], "initContainers": [bare]}),
                0,
                None,
                (10, 0),
            ),
            ("the DaemonSet's own is longer", json!({"containers": [bare]}), 30, None, (30, 30)),
            ("and shorter", json!({"containers": [probed]}), 4, None, (10, 4)),
            ("asked for", json!({"containers": [bare]}), 4, Some(20), (20, 20)),
            ("never looser", json!({"containers": [bare]}), 30, Some(20), (30, 30)),
            ("turned off", json!({"containers": [bare]}), 0, Some(0), (0, 0)),
        ] {
            let MinReady { first, others } = MinReady::of(&spec(own, &pod), asked);
            assert_eq!((first, others), want, "{rule}");
        }
    }
}
