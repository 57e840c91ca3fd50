//! `v1` Pod: its node, its readiness, and why it is not running.

mod protobuf;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::metadata::Metadata;
use super::{Cause, Condition, Context, Text, cut, lenient};
use crate::Kind;
use daemonset::model::{
    ContainerFailure, Interner, NodeName, Pod, PodPhase, PodReadiness, PodTarget, Time, Unready,
    null_as_default,
};

/// The tolerance between a pod's start and its first conditions, which the kubelet writes together
/// in whole seconds.
const TAKEN_UP: SignedDuration = SignedDuration::from_secs(1);

#[derive(Default, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Wire<'a> {
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
    #[serde(borrow)]
    affinity: Option<Affinity<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Affinity<'a> {
    #[serde(borrow)]
    node_affinity: Option<NodeAffinity<'a>>,
}

#[derive(Default, Deserialize)]
struct NodeAffinity<'a> {
    #[serde(borrow, rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<Required<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Required<'a> {
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    node_selector_terms: Vec<Term<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term<'a> {
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    match_fields: Vec<Requirement<'a>>,
}

#[derive(Default, Deserialize)]
struct Requirement<'a> {
    #[serde(borrow, default)]
    key: Text<'a>,
    #[serde(borrow, default)]
    operator: Text<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    values: Vec<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow)]
    phase: Option<Text<'a>>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(deserialize_with = "lenient::moment")]
    start_time: Option<Timestamp>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    conditions: Vec<Condition<'a>>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    init_container_statuses: Vec<ContainerStatus<'a>>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    container_statuses: Vec<ContainerStatus<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(default)]
    ready: bool,
    started: Option<bool>,
    #[serde(default, deserialize_with = "lenient::count")]
    restart_count: u32,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    state: State<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    last_state: State<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State<'a> {
    #[serde(borrow)]
    waiting: Option<Waiting<'a>>,
    running: Option<Running>,
    #[serde(borrow)]
    terminated: Option<Terminated<'a>>,
}

#[derive(Default, Deserialize)]
struct Waiting<'a> {
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Running {
    #[serde(default, deserialize_with = "lenient::moment")]
    started_at: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated<'a> {
    #[serde(default)]
    exit_code: i64,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(default, deserialize_with = "lenient::moment")]
    started_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    finished_at: Option<Timestamp>,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    type Slim = Pod;
    type Annotations = IgnoredAny;
    const KIND: Kind = Kind::Pod;

    fn metadata(&self) -> &Metadata<'a> {
        &self.metadata
    }

    fn slim(self, _json: &str, context: &mut Context<'_>) -> Result<Pod, Cause> {
        context.saw(self.status.newest());
        let interner = &mut *context.interner;
        Ok(Pod {
            namespace: self.metadata.namespace(interner)?,
            name: self.metadata.name()?.into(),
            uid: self.metadata.uid()?,
            labels: self.metadata.labels(interner),
            controller: self.metadata.controller(interner),
            target: self.spec.target(interner),
            phase: self.status.phase(),
            readiness: self.status.readiness(self.metadata.creation_timestamp),
            created: self.metadata.created(),
            terminating: self.metadata.is_terminating(),
            restarts: self.status.restarts(),
            containers_changed: self.status.containers_changed().map(Time::from),
            unready: self.status.unready(self.metadata.is_terminating()).map(Box::new),
            container_failure: self.status.container_failure().map(Box::new),
        })
    }
}

impl Spec<'_> {
    /// The pod's node (upstream: `GetTargetNodeName`): `spec.nodeName`; else the single value of
    /// the first `metadata.name In` in the fields of the required node affinity terms.
    fn target(&self, interner: &mut Interner) -> PodTarget {
        if let Some(node) = self.node_name.as_ref().filter(|node| !node.0.is_empty()) {
            return PodTarget::Bound(NodeName::from(node.shared(interner)));
        }
        let node_affinity = self.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
        let terms = node_affinity.and_then(|a| a.required.as_ref()).map(|r| &r.node_selector_terms);
        let names = terms
            .into_iter()
            .flatten()
            .flat_map(|term| &term.match_fields)
            .find(|field| field.key.0 == "metadata.name" && field.operator.0 == "In")
            .map(|field| field.values.as_slice());
        match names {
            Some([one]) => PodTarget::Aimed(NodeName::from(one.shared(interner))),
            Some(_) | None => PodTarget::Nowhere,
        }
    }
}

/// The Ready condition of a pod that began then. `False` since the pod's start means that it was never
/// Ready; `False` since later, that it was Ready before.
pub(super) fn readiness(ready: Option<&Condition<'_>>, begun: Option<Timestamp>) -> PodReadiness {
    match ready {
        Some(ready) if ready.status.0 == "True" => {
            PodReadiness::Ready { since: ready.last_transition_time.map(Time::from) }
        }
        Some(ready) => {
            let was_ready =
                |since: &Timestamp| begun.is_none_or(|it| since.duration_since(it) > TAKEN_UP);
            let since = ready.last_transition_time.filter(was_ready);
            PodReadiness::NotReady { since: since.map(Time::from) }
        }
        None => PodReadiness::NotReady { since: None },
    }
}

impl<'a> Status<'a> {
    fn phase(&self) -> PodPhase {
        match self.phase.as_ref().map(|phase| &*phase.0) {
            // A new pod has no phase yet.
            Some("Pending" | "") | None => PodPhase::Pending,
            Some("Running") => PodPhase::Running,
            Some("Succeeded") => PodPhase::Succeeded,
            Some("Failed") => PodPhase::Failed,
            Some(_) => PodPhase::Unknown,
        }
    }

    fn readiness(&self, created: Option<Timestamp>) -> PodReadiness {
        readiness(self.condition("Ready"), self.start_time.or(created))
    }

    /// The last time at which a container was started or terminated. A running container was
    /// started after its last termination.
    fn containers_changed(&self) -> Option<Timestamp> {
        self.containers().filter_map(|it| it.state.newest()).max()
    }

    fn condition(&self, kind: &str) -> Option<&Condition<'a>> {
        self.conditions.iter().find(|condition| condition.kind.0 == kind)
    }

    /// All containers, init containers first, in the order of their start.
    fn containers(&self) -> impl Iterator<Item = &ContainerStatus<'a>> {
        self.init_container_statuses.iter().chain(&self.container_statuses)
    }

    fn restarts(&self) -> u32 {
        self.containers().fold(0, |sum, container| sum.saturating_add(container.restart_count))
    }

    /// The failure of the pod: its own reason (such as `Evicted`), the scheduler's refusal, or the
    /// first container that waits because of an error or terminated with one.
    fn container_failure(&self) -> Option<ContainerFailure> {
        if let Some(reason) = self.reason.as_ref().filter(|reason| !reason.0.is_empty()) {
            return Some(container_failure("", &reason.0, self.message.as_ref()));
        }
        let scheduled = self.condition("PodScheduled").filter(|c| c.status.0 == "False");
        if let Some(refusal) = scheduled {
            let reason = refusal.reason.as_ref().map_or("Unschedulable", |reason| &reason.0);
            return Some(container_failure("", reason, refusal.message.as_ref()));
        }
        self.containers().find_map(ContainerStatus::container_failure)
    }

    /// Why a pod without a failure is not Ready yet.
    fn unready(&self, terminating: bool) -> Option<Unready> {
        let is_ready = matches!(self.readiness(None), PodReadiness::Ready { .. });
        let may_come = matches!(self.phase(), PodPhase::Pending | PodPhase::Running);
        if is_ready || terminating || !may_come || self.container_failure().is_some() {
            return None;
        }
        let waits_for = self.waits_for()?;
        Some(Unready { waits_for: Some(waits_for), warning: None })
    }

    /// The first container that is not started or Ready; else the reason of the conditions.
    fn waits_for(&self) -> Option<ContainerFailure> {
        if let Some(found) = self.init_container_statuses.iter().find_map(ContainerStatus::starts) {
            return Some(self.with_sandbox(found));
        }
        if let Some(found) = self.container_statuses.iter().find_map(ContainerStatus::unready) {
            return Some(self.with_sandbox(found));
        }
        let ready = self.condition("Ready").filter(|ready| ready.reason.is_some());
        if let Some(Condition { reason: Some(reason), message, .. }) = ready {
            return Some(container_failure("", &reason.0, message.as_ref()));
        }
        let scheduled = self.condition("PodScheduled").filter(|it| it.status.0 == "True");
        let is_silent = scheduled.is_some() && self.containers().next().is_none();
        is_silent.then(|| coined("", "NoStatus", "its kubelet has not reported a status yet"))
    }

    /// Adds the kubelet's condition about the pod's sandbox (Kubernetes 1.29).
    fn with_sandbox(&self, mut found: ContainerFailure) -> ContainerFailure {
        let condition = self.condition("PodReadyToStartContainers");
        let has_none = condition.is_some_and(|condition| condition.status.0 == "False");
        if has_none && found.message.is_empty() {
            found.message = "its sandbox, network or volumes are not ready".into();
        }
        found
    }

    fn newest(&self) -> Option<Timestamp> {
        let conditions = self.conditions.iter().filter_map(Condition::newest).max();
        let ended = self.containers().filter_map(|it| it.last_state.newest()).max();
        self.start_time.max(conditions).max(self.containers_changed()).max(ended)
    }
}

impl ContainerStatus<'_> {
    fn container_failure(&self) -> Option<ContainerFailure> {
        if let Some(waiting) = &self.state.waiting {
            let reason = waiting.reason.as_ref().map_or("", |reason| &reason.0);
            // These are normal steps of starting.
            return (!matches!(reason, "" | "PodInitializing" | "ContainerCreating")).then(|| {
                self.with_last_end(container_failure(
                    &self.name.0,
                    reason,
                    waiting.message.as_ref(),
                ))
            });
        }
        let ended = self.state.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
        let reason = ended.reason.as_ref().map_or("Error", |reason| &reason.0);
        let mut found = container_failure(&self.name.0, reason, ended.message.as_ref());
        if found.message.is_empty() {
            found.message = format!("exit code {}", ended.exit_code).into();
        }
        Some(found)
    }

    /// Adds the last termination of a container in `CrashLoopBackOff`.
    fn with_last_end(&self, mut found: ContainerFailure) -> ContainerFailure {
        if let Some(ended) = self.last_state.terminated.as_ref().filter(|_| found.is_crash_loop()) {
            let word = ended.reason.as_ref().map_or("Error", |reason| &reason.0);
            let message = ended.message.as_ref().map(|message| format!(": {}", message.0.trim()));
            let (code, message) = (ended.exit_code, message.unwrap_or_default());
            let before = if found.message.is_empty() { "" } else { "; " };
            let text =
                format!("{}{before}it ended with {word}, exit code {code}{message}", found.message);
            found.message = cut(&text);
        }
        found
    }

    /// The reason of a container that is being created.
    fn is_made(&self) -> Option<ContainerFailure> {
        let waiting = self.state.waiting.as_ref()?;
        let reason = waiting.reason.as_ref().map_or("ContainerCreating", |reason| &reason.0);
        Some(container_failure(&self.name.0, reason, waiting.message.as_ref()))
    }

    /// The reason of an init container that has not finished. A sidecar has finished when it has
    /// started.
    fn starts(&self) -> Option<ContainerFailure> {
        let runs = self.state.running.is_some() && self.started != Some(true);
        let runs = runs.then(|| coined(&self.name.0, "PodInitializing", "still running"));
        runs.or_else(|| self.is_made())
    }

    /// The reason of a container that is not Ready.
    fn unready(&self) -> Option<ContainerFailure> {
        let runs = self.state.running.is_some() && !self.ready;
        let (word, message) = match self.started {
            Some(false) => ("StartupProbe", "running, but its startup probe has not passed yet"),
            Some(true) | None => ("ReadinessProbe", "running, but its readiness probe fails"),
        };
        runs.then(|| coined(&self.name.0, word, message)).or_else(|| self.is_made())
    }
}

impl State<'_> {
    fn newest(&self) -> Option<Timestamp> {
        let running = self.running.as_ref().and_then(|running| running.started_at);
        let ended =
            self.terminated.as_ref().and_then(|ended| ended.finished_at.max(ended.started_at));
        running.max(ended)
    }
}

fn container_failure(
    container: &str,
    reason: &str,
    message: Option<&Text<'_>>,
) -> ContainerFailure {
    let message = cut(message.map(|message| &*message.0).unwrap_or_default());
    ContainerFailure { container: container.into(), reason: reason.into(), message }
}

/// A reason that the status itself does not have.
fn coined(container: &str, reason: &str, message: &str) -> ContainerFailure {
    ContainerFailure { container: container.into(), reason: reason.into(), message: message.into() }
}

#[cfg(test)]
mod tests;
