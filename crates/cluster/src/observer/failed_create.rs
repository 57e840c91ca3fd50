//! Reads the warnings of controllers from `v1` Events.

use jiff::Timestamp;
use serde::Deserialize;

use crate::decode::lenient;
use daemonset::model::{Uid, null_as_default};

/// A warning of the DaemonSet controller (upstream: `v1` Event on the DaemonSet).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCreate {
    /// The event's name; a repeated event keeps it.
    pub event: String,
    /// The uid of the DaemonSet.
    pub about: Uid,
    /// The reason, such as `FailedCreate`.
    pub reason: String,
    /// The message.
    pub message: String,
    /// The number of occurrences.
    pub count: u32,
    /// The time of the last occurrence, by the server's clock.
    pub last: Option<Timestamp>,
}

/// The longest message that is kept, in characters.
const MESSAGE_LENGTH: usize = 1_024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    involved_object: Involved,
    #[serde(default, deserialize_with = "null_as_default")]
    reason: String,
    #[serde(default, deserialize_with = "null_as_default")]
    message: String,
    #[serde(default, deserialize_with = "lenient::count")]
    count: u32,
    #[serde(default, deserialize_with = "lenient::moment")]
    last_timestamp: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    event_time: Option<Timestamp>,
    #[serde(default, deserialize_with = "null_as_default")]
    series: Series,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default, deserialize_with = "lenient::moment")]
    creation_timestamp: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Involved {
    #[serde(deserialize_with = "null_as_default")]
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    #[serde(deserialize_with = "lenient::count")]
    count: u32,
    #[serde(deserialize_with = "lenient::moment")]
    last_observed_time: Option<Timestamp>,
}

impl FailedCreate {
    /// Reads an event. Its client decides which fields have the count and the times.
    pub(super) fn read(json: &str) -> Result<Self, serde_json::Error> {
        let wire: Wire = serde_json::from_str(json)?;
        let reported = wire.last_timestamp.max(wire.series.last_observed_time);
        Ok(Self {
            event: wire.metadata.name,
            about: wire.involved_object.uid.into(),
            reason: wire.reason,
            message: wire.message.chars().take(MESSAGE_LENGTH).collect(),
            count: wire.count.max(wire.series.count).max(1),
            last: reported.or(wire.event_time).or(wire.metadata.creation_timestamp),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_are_read_from_all_their_fields() {
        for (name, rest, count, last) in [
            (
                "by a controller",
                r#""count":7,"lastTimestamp":"2026-01-02T00:00:00Z","eventTime":null"#,
                7,
                "2026-01-02T00:00:00Z",
            ),
            (
                "by the newer API",
                r#""lastTimestamp":null,"eventTime":"2026-01-03T00:00:00.123456Z",
                   "series":{"count":3,"lastObservedTime":"2026-01-04T00:00:00.5Z"}"#,
                3,
                "2026-01-04T00:00:00.5Z",
            ),
            (
                "by the newer API, once",
                r#""eventTime":"2026-01-03T00:00:00Z","series":null"#,
                1,
                "2026-01-03T00:00:00Z",
            ),
            ("without count and times", r#""count":null"#, 1, "2026-01-01T00:00:00Z"),
        ] {
            let json = format!(
                r#"{{"metadata":{{"name":"agent.1","creationTimestamp":"2026-01-01T00:00:00Z"}},
                "involvedObject":{{"kind":"DaemonSet","uid":"u"}},"type":"Warning",
                "reason":"FailedCreate","message":"no","{}{rest}}}"#,
                r#"x":0,"#
            );
            let read = FailedCreate::read(&json).unwrap();
            assert_eq!(
                (read.count, read.last.unwrap().to_string().as_str()),
                (count, last),
                "{name}"
            );
            assert_eq!(
                (&*read.event, &*read.about.to_string(), &*read.reason),
                ("agent.1", "u", "FailedCreate")
            );
        }
    }
}
