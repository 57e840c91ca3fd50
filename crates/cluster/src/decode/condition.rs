//! A condition of a node or pod.

use jiff::Timestamp;
use serde::Deserialize;

use super::lenient;
use super::protobuf::{Field, Malformed, Message};
use super::text::Text;

/// A condition of a node or pod.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Text<'a>>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub(super) last_transition_time: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    last_heartbeat_time: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    last_probe_time: Option<Timestamp>,
}

impl Condition<'_> {
    /// The latest time in it.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        self.last_transition_time.max(self.last_heartbeat_time).max(self.last_probe_time)
    }
}

/// `k8s.io.api.core.v1.NodeCondition` and `PodCondition`, which differ in the name of field 3.
impl<'a> Message<'a> for Condition<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.kind = field.text("type")?,
            2 => self.status = field.text("status")?,
            // `lastHeartbeatTime` of a node: both are only used as a time that has passed.
            3 => self.last_probe_time = field.moment("lastProbeTime")?,
            4 => self.last_transition_time = field.moment("lastTransitionTime")?,
            5 => self.reason = field.optional_text("reason")?,
            6 => self.message = field.optional_text("message")?,
            _ => {}
        }
        Ok(())
    }
}
