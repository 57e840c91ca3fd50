//! `v1` Node.

mod protobuf;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::metadata::{Metadata, Pairs};
use super::{Cause, Condition, Context, Text};
use crate::Kind;
use daemonset::model::{
    Interner, Node, NodeCondition, NodeReadiness, Taint, TaintEffect, Time, null_as_default,
};

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
#[serde(default)]
struct Spec<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    taints: Vec<WireTaint<'a>>,
    #[serde(deserialize_with = "null_as_default")]
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
struct WireTaint<'a> {
    #[serde(borrow, default)]
    key: Text<'a>,
    #[serde(borrow)]
    value: Option<Text<'a>>,
    #[serde(borrow, default)]
    effect: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    conditions: Vec<Condition<'a>>,
    #[serde(borrow)]
    allocatable: Pairs<'a>,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    type Slim = Node;
    type Annotations = IgnoredAny;
    const KIND: Kind = Kind::Node;

    fn metadata(&self) -> &Metadata<'a> {
        &self.metadata
    }

    fn slim(self, _json: &str, context: &mut Context<'_>) -> Result<Node, Cause> {
        context.saw(self.status.conditions.iter().filter_map(Condition::newest).max());
        Ok(Node {
            // Its label with the host name, and its pods, share it.
            name: context.interner.share(self.metadata.name()?).into(),
            uid: self.metadata.uid()?,
            labels: self.metadata.labels(context.interner),
            taints: self.spec.taints.iter().filter_map(taint).collect(),
            unschedulable: self.spec.unschedulable,
            readiness: self.readiness(),
            conditions: self.conditions(context.interner),
            allocatable: self.status.allocatable.shared(context.interner),
            created: self.metadata.created(),
        })
    }
}

impl Wire<'_> {
    /// In the order of their types: others may write them in another one.
    fn conditions(&self, interner: &mut Interner) -> Box<[NodeCondition]> {
        let conditions = self.status.conditions.iter().map(|condition| NodeCondition {
            kind: condition.kind.shared(interner),
            status: (&*condition.status.0).into(),
            since: condition.last_transition_time.map(Time::from),
        });
        let mut conditions: Vec<NodeCondition> = conditions.collect();
        conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
        conditions.into()
    }

    fn readiness(&self) -> NodeReadiness {
        let ready = self.status.conditions.iter().find(|condition| condition.kind.0 == "Ready");
        let since = ready.and_then(|condition| condition.last_transition_time).map(Time::from);
        match ready.map(|condition| &*condition.status.0) {
            Some("True") => NodeReadiness::Ready,
            Some("False") => NodeReadiness::NotReady { since },
            None | Some(_) => NodeReadiness::Unknown { since },
        }
    }
}

/// A taint; `None` for an effect other than upstream's three, which has no effect there.
fn taint(wire: &WireTaint<'_>) -> Option<Taint> {
    let effect = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute]
        .into_iter()
        .find(|effect| effect.as_str() == wire.effect.0)?;
    let value = wire.value.as_ref().map(|value| &*value.0).unwrap_or_default();
    Some(Taint { key: (*wire.key.0).into(), value: value.into(), effect })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, node};
    use super::*;

    fn ready(status: &str) -> String {
        format!(
            r#"{{"conditions":[{{"type":"DiskPressure","status":"False"}},
                {{"type":"Ready","status":"{status}","lastTransitionTime":"2026-01-02T03:04:05Z"}}]}}"#
        )
    }

    #[test]
    fn readiness_is_what_the_condition_says() {
        let since = Some(Time::from(at("2026-01-02T03:04:05Z")));
        for (status, want) in [
            (ready("True"), NodeReadiness::Ready),
            (ready("False"), NodeReadiness::NotReady { since }),
            (ready("Unknown"), NodeReadiness::Unknown { since }),
            ("{}".to_owned(), NodeReadiness::Unknown { since: None }),
            ("null".to_owned(), NodeReadiness::Unknown { since: None }),
            (r#"{"conditions":null}"#.to_owned(), NodeReadiness::Unknown { since: None }),
        ] {
            assert_eq!(node("{}", &status).readiness, want, "{status}");
        }
    }

    #[test]
    fn conditions_are_kept_without_their_heartbeats() {
        let status = r#"{"conditions":[
            {"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-02T04:00:00Z"},
            {"type":"NetworkUnavailable","status":"False","lastTransitionTime":"2026-01-02T03:04:05Z"}]}"#;
        let node = node("{}", status);
        let want = |kind: &str, status: &str, since| NodeCondition {
            kind: kind.into(),
            status: status.into(),
            since,
        };
        let since = Some(Time::from(at("2026-01-02T03:04:05Z")));
        let network = want("NetworkUnavailable", "False", since);
        assert_eq!(*node.conditions, [network.clone(), want("Ready", "True", None)]);
        assert_eq!(node.condition("NetworkUnavailable"), Some(&network));
        assert_eq!(node.condition("Network"), None);
    }

    #[test]
    fn taints_are_read_and_unknown_effects_left_out() {
        let taint =
            |key: &str, value: &str, effect| Taint { key: key.into(), value: value.into(), effect };
        for (spec, want) in [
            (
                r#"{"taints":[{"key":"a","value":"b","effect":"NoExecute"}]}"#,
                vec![taint("a", "b", TaintEffect::NoExecute)],
            ),
            (
                r#"{"taints":[{"key":"a","effect":"NoSchedule","timeAdded":"2026-01-02T03:04:05Z"}]}"#,
                vec![taint("a", "", TaintEffect::NoSchedule)],
            ),
            (
                r#"{"taints":[{"key":"a","effect":"Never"},{"key":"b","effect":"PreferNoSchedule"}]}"#,
                vec![taint("b", "", TaintEffect::PreferNoSchedule)],
            ),
            (r#"{"taints":null}"#, vec![]),
            ("null", vec![]),
        ] {
            assert_eq!(*node(spec, "{}").taints, *want, "{spec}");
        }
        assert!(node(r#"{"unschedulable":true}"#, "{}").unschedulable);
    }
}
