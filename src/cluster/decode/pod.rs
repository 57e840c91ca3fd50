//! `v1` Pod: to which node it belongs, how it is, and what keeps it from running.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::metadata::Metadata;
use super::{Cause, Condition, Context, Text};
use crate::cluster::Kind;
use crate::model::{
    ContainerTrouble, Interner, NodeName, Pod, PodPhase, PodReadiness, PodTarget, null_as_default,
};

/// Messages of kubelets may be long; so much of one is kept, in characters.
const MESSAGE_LENGTH: usize = 512;

#[derive(Deserialize)]
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Affinity<'a> {
    #[serde(borrow)]
    node_affinity: Option<NodeAffinity<'a>>,
}

#[derive(Deserialize)]
struct NodeAffinity<'a> {
    #[serde(borrow, rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<Required<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Required<'a> {
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    node_selector_terms: Vec<Term<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term<'a> {
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    match_fields: Vec<Requirement<'a>>,
}

#[derive(Deserialize)]
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
    start_time: Option<Timestamp>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    conditions: Vec<Condition<'a>>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    init_container_statuses: Vec<ContainerStatus<'a>>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    container_statuses: Vec<ContainerStatus<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(default)]
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

#[derive(Deserialize)]
struct Waiting<'a> {
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Running {
    started_at: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated<'a> {
    #[serde(default)]
    exit_code: i64,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    started_at: Option<Timestamp>,
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
            readiness: self.status.readiness(),
            created: self.metadata.creation_timestamp,
            terminating: self.metadata.is_terminating(),
            restarts: self.status.restarts(),
            trouble: self.status.trouble().map(Box::new),
        })
    }
}

impl Spec<'_> {
    /// Upstream's `GetTargetNodeName`: the node it is bound to; else the first `metadata.name In`
    /// among the fields of the required terms decides, and only with exactly one value.
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

impl<'a> Status<'a> {
    fn phase(&self) -> PodPhase {
        match self.phase.as_ref().map(|phase| &*phase.0) {
            // A pod that was just created has no phase yet.
            Some("Pending" | "") | None => PodPhase::Pending,
            Some("Running") => PodPhase::Running,
            Some("Succeeded") => PodPhase::Succeeded,
            Some("Failed") => PodPhase::Failed,
            Some(_) => PodPhase::Unknown,
        }
    }

    fn readiness(&self) -> PodReadiness {
        match self.condition("Ready") {
            Some(ready) if ready.status.0 == "True" => {
                PodReadiness::Ready { since: ready.last_transition_time }
            }
            Some(_) | None => PodReadiness::NotReady,
        }
    }

    fn condition(&self, kind: &str) -> Option<&Condition<'a>> {
        self.conditions.iter().find(|condition| condition.kind.0 == kind)
    }

    /// Init containers first, as they run.
    fn containers(&self) -> impl Iterator<Item = &ContainerStatus<'a>> {
        self.init_container_statuses.iter().chain(&self.container_statuses)
    }

    fn restarts(&self) -> u32 {
        self.containers().fold(0, |sum, container| sum.saturating_add(container.restart_count))
    }

    /// The pod's own reason (such as `Evicted`), the scheduler's refusal, or the first container
    /// that waits for more than its turn or ended badly.
    fn trouble(&self) -> Option<ContainerTrouble> {
        if let Some(reason) = self.reason.as_ref().filter(|reason| !reason.0.is_empty()) {
            return Some(trouble("", &reason.0, self.message.as_ref()));
        }
        let scheduled = self.condition("PodScheduled").filter(|c| c.status.0 == "False");
        if let Some(refusal) = scheduled {
            let reason = refusal.reason.as_ref().map_or("Unschedulable", |reason| &reason.0);
            return Some(trouble("", reason, refusal.message.as_ref()));
        }
        self.containers().find_map(ContainerStatus::trouble)
    }

    fn newest(&self) -> Option<Timestamp> {
        let conditions = self.conditions.iter().filter_map(Condition::newest).max();
        let states = self.containers().flat_map(|c| [c.state.newest(), c.last_state.newest()]);
        self.start_time.max(conditions).max(states.max().flatten())
    }
}

impl ContainerStatus<'_> {
    fn trouble(&self) -> Option<ContainerTrouble> {
        if let Some(waiting) = &self.state.waiting {
            let reason = waiting.reason.as_ref().map_or("", |reason| &reason.0);
            // These wait for their turn.
            return (!matches!(reason, "" | "PodInitializing" | "ContainerCreating"))
                .then(|| trouble(&self.name.0, reason, waiting.message.as_ref()));
        }
        let ended = self.state.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
        let reason = ended.reason.as_ref().map_or("Error", |reason| &reason.0);
        let mut found = trouble(&self.name.0, reason, ended.message.as_ref());
        if found.message.is_empty() {
            found.message = format!("exit code {}", ended.exit_code).into();
        }
        Some(found)
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

fn trouble(container: &str, reason: &str, message: Option<&Text<'_>>) -> ContainerTrouble {
    let message = message.map(|message| &*message.0).unwrap_or_default();
    let message = match message.char_indices().nth(MESSAGE_LENGTH) {
        Some((end, _)) => format!("{}…", &message[..end]).into(),
        None => message.into(),
    };
    ContainerTrouble { container: container.into(), reason: reason.into(), message }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, pod};
    use super::*;

    #[test]
    fn the_node_a_pod_belongs_to() {
        let aimed = |terms: &str| {
            format!(
                r#"{{"affinity":{{"nodeAffinity":{{
                    "requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":{terms}}}}}}}}}"#
            )
        };
        let name = |values: &str| {
            format!(r#"{{"key":"metadata.name","operator":"In","values":{values}}}"#)
        };
        let (a, ab, b) = (name(r#"["a"]"#), name(r#"["a","b"]"#), name(r#"["b"]"#));
        let to_a = || PodTarget::Aimed("a".into());
        for (spec, want) in [
            (r#"{"nodeName":"n"}"#.to_owned(), PodTarget::Bound("n".into())),
            (r#"{"nodeName":""}"#.to_owned(), PodTarget::Nowhere),
            ("null".to_owned(), PodTarget::Nowhere),
            (r#"{"affinity":{}}"#.to_owned(), PodTarget::Nowhere),
            (aimed("null"), PodTarget::Nowhere),
            (aimed("[]"), PodTarget::Nowhere),
            (aimed(&format!(r#"[{{"matchFields":[{a}]}}]"#)), to_a()),
            (aimed(&format!(r#"[{{"matchFields":[{ab}]}}]"#)), PodTarget::Nowhere),
            (aimed(&format!(r#"[{{"matchFields":[{}]}}]"#, name("[]"))), PodTarget::Nowhere),
            // The first one decides, across terms and inside of them.
            (aimed(&format!(r#"[{{}},{{"matchFields":[{a},{b}]}}]"#)), to_a()),
            (aimed(&format!(r#"[{{"matchFields":[{a}]}},{{"matchFields":[{b}]}}]"#)), to_a()),
            (
                aimed(&format!(r#"[{{"matchFields":[{ab}]}},{{"matchFields":[{a}]}}]"#)),
                PodTarget::Nowhere,
            ),
            // Other fields and operators are passed over.
            (
                aimed(&format!(
                    r#"[{{"matchFields":[{{"key":"metadata.name","operator":"NotIn","values":["x"]}},{a}]}}]"#
                )),
                to_a(),
            ),
            (
                aimed(&format!(
                    r#"[{{"matchFields":[{{"key":"x","operator":"In","values":["x"]}},{a}]}}]"#
                )),
                to_a(),
            ),
            (
                aimed(
                    r#"[{"matchExpressions":[{"key":"metadata.name","operator":"In","values":["a"]}]}]"#,
                ),
                PodTarget::Nowhere,
            ),
        ] {
            assert_eq!(pod(&spec, "{}").target, want, "{spec}");
        }
    }

    #[test]
    fn what_keeps_a_pod_from_running() {
        let state =
            |state: &str| format!(r#"{{"containerStatuses":[{{"name":"c","state":{state}}}]}}"#);
        for (status, want) in [
            ("{}".to_owned(), None),
            (state(r#"{"running":{"startedAt":"2026-01-01T00:00:00Z"}}"#), None),
            (state(r#"{"waiting":{"reason":"ContainerCreating"}}"#), None),
            (state(r#"{"waiting":{"reason":"PodInitializing"}}"#), None),
            (state(r#"{"waiting":{}}"#), None),
            (state(r#"{"terminated":{"exitCode":0,"reason":"Completed"}}"#), None),
            (state(r#"{"waiting":{"reason":"ImagePullBackOff","message":"m"}}"#),
                Some(("c", "ImagePullBackOff", "m"))),
            (state(r#"{"terminated":{"exitCode":137,"reason":"OOMKilled"}}"#),
                Some(("c", "OOMKilled", "exit code 137"))),
            (state(r#"{"terminated":{"exitCode":1,"message":"boom"}}"#), Some(("c", "Error", "boom"))),
            (r#"{"initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"CrashLoopBackOff"}}}],
                "containerStatuses":[{"name":"c","state":{"waiting":{"reason":"PodInitializing"}}}]}"#.to_owned(),
                Some(("i", "CrashLoopBackOff", ""))),
            (r#"{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3"}]}"#.to_owned(),
                Some(("", "Unschedulable", "0/3"))),
            (r#"{"phase":"Failed","reason":"Evicted","message":"low on memory"}"#.to_owned(),
                Some(("", "Evicted", "low on memory"))),
        ] {
            let found = pod("{}", &status).trouble;
            let found = found.as_ref().map(|t| (&*t.container, &*t.reason, &*t.message));
            assert_eq!(found, want, "{status}");
        }
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let long = "ä".repeat(MESSAGE_LENGTH + 1);
        let status = format!(r#"{{"reason":"R","message":"{long}"}}"#);
        let kept = pod("{}", &status).trouble.unwrap().message;
        assert_eq!(*kept, format!("{}…", "ä".repeat(MESSAGE_LENGTH)));
    }

    #[test]
    fn phase_readiness_and_restarts() {
        for (status, phase) in [
            ("null", PodPhase::Pending),
            (r#"{"phase":"Running"}"#, PodPhase::Running),
            (r#"{"phase":"Succeeded"}"#, PodPhase::Succeeded),
            (r#"{"phase":"Failed"}"#, PodPhase::Failed),
            (r#"{"phase":"Sleeping"}"#, PodPhase::Unknown),
        ] {
            assert_eq!(pod("{}", status).phase, phase, "{status}");
        }
        let ready = |status: &str| {
            format!(
                r#"{{"conditions":[{{"type":"Ready","status":"{status}","lastTransitionTime":"2026-01-01T00:00:00Z"}}]}}"#
            )
        };
        let since = Some(at("2026-01-01T00:00:00Z"));
        assert_eq!(pod("{}", &ready("True")).readiness, PodReadiness::Ready { since });
        assert_eq!(pod("{}", &ready("False")).readiness, PodReadiness::NotReady);
        let restarts = r#"{"initContainerStatuses":[{"restartCount":2}],
            "containerStatuses":[{"restartCount":3},{}]}"#;
        assert_eq!(pod("{}", restarts).restarts, 5);
    }
}
