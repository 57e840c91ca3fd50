//! `v1` Event: warnings about pods; the last one of each pod is kept. The kubelet and the scheduler
//! report in them what a pod's status does not have: `FailedMount`, `FailedCreatePodSandBox`, the
//! output of a probe.
//!
//! Not here: the warnings about a DaemonSet during a rollout (`observer`).

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::metadata::Metadata;
use super::{Cause, Context, Text, cut, lenient};
use crate::Kind;
use daemonset::model::{Uid, null_as_default};

/// The last warning about one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodWarning {
    /// The uid of the pod.
    pub(super) pod: Uid,
    /// The time of the last occurrence.
    pub(super) at: Option<Timestamp>,
    /// Reason and message: `FailedMount: MountVolume.SetUp failed for volume …`.
    pub(super) text: Box<str>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object", rename_all = "camelCase")]
pub(super) struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    involved_object: Involved<'a>,
    #[serde(borrow, rename = "type", default, deserialize_with = "null_as_default")]
    severity: Text<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    reason: Text<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    message: Text<'a>,
    #[serde(default, deserialize_with = "lenient::moment")]
    last_timestamp: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    event_time: Option<Timestamp>,
    #[serde(default, deserialize_with = "null_as_default")]
    series: Series,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Involved<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    kind: Text<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    uid: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    #[serde(deserialize_with = "lenient::moment")]
    last_observed_time: Option<Timestamp>,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    /// `None` for any other event.
    type Slim = Option<PodWarning>;
    type Annotations = IgnoredAny;
    const KIND: Kind = Kind::Event;

    fn metadata(&self) -> &Metadata<'a> {
        &self.metadata
    }

    fn slim(self, _json: &str, context: &mut Context<'_>) -> Result<Self::Slim, Cause> {
        let Involved { kind, uid } = &self.involved_object;
        if kind.0 != "Pod" || uid.0.is_empty() || self.severity.0 != "Warning" {
            return Ok(None);
        }
        let reported = self.last_timestamp.max(self.series.last_observed_time);
        let at = reported.or(self.event_time).or(self.metadata.creation_timestamp);
        context.saw(at);
        let text = cut(&format!("{}: {}", self.reason.0, self.message.0.trim()));
        Ok(Some(PodWarning { pod: Uid::from(&*uid.0), at, text }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::decoded;
    use super::*;

    fn event(severity: &str, about: &str, reason: &str, at: &str) -> String {
        format!(
            r#"{{"metadata":{{"namespace":"ns","name":"{reason}","uid":"e"}},"type":"{severity}",
            "involvedObject":{{"kind":"{about}","uid":"u"}},"reason":"{reason}",
            "message":" why ","lastTimestamp":{at}}}"#
        )
    }

    #[test]
    fn the_last_warning_about_a_pod_that_is_not_ready_is_kept() {
        let pod = |condition: &str| {
            format!(
                r#"{{"metadata":{{"namespace":"ns","name":"p","uid":"u"}},"status":{{"conditions":[
                {{"type":"Ready","status":"{condition}"}}]}}}}"#
            )
        };
        let (early, late) = (r#""2026-01-01T00:00:00Z""#, r#""2026-01-02T00:00:00Z""#);
        let mount = event("Warning", "Pod", "FailedMount", late);
        for (rule, ready, other, want) in [
            ("alone", "False", None, Some("FailedMount: why")),
            (
                "one before",
                "False",
                Some(("Warning", "Pod", "Old", early)),
                Some("FailedMount: why"),
            ),
            (
                "no warning",
                "False",
                Some(("Normal", "Pod", "Pulled", late)),
                Some("FailedMount: why"),
            ),
            (
                "about another object",
                "False",
                Some(("Warning", "Node", "Gone", late)),
                Some("FailedMount: why"),
            ),
            (
                "without a time",
                "False",
                Some(("Warning", "Pod", "Never", "null")),
                Some("FailedMount: why"),
            ),
            ("a Ready pod", "True", None, None),
        ] {
            let other =
                other.map(|(severity, about, reason, at)| event(severity, about, reason, at));
            let pod = pod(ready);
            for pod_first in [true, false] {
                let mut objects: Vec<(Kind, &str)> = vec![(Kind::Event, &mount)];
                objects.extend(other.as_deref().map(|json| (Kind::Event, json)));
                objects.insert(if pod_first { 0 } else { objects.len() }, (Kind::Pod, &pod));
                let found = decoded(&objects).pods.remove(0).unready;
                let found = found.and_then(|it| it.warning);
                assert_eq!(found.as_deref(), want, "{rule}");
            }
        }
    }
}
