//! Reads the approvals of steps: one `get` of a ConfigMap per DaemonSet whose policy asks for some.
//!
//! Anyone who may write ConfigMaps may have written it, so each value is limited in size, and one
//! that is not an approval counts as none. Not here: whether an approval counts.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::live::AT_ONCE;
use super::{Error, LiveCluster, Resource};
use daemonset::model::{
    Approval, DaemonSetKey, DesiredDaemonSet, Labels, RECORD_LABEL, Snapshot, Unreadable,
    approvals_name, null_as_default,
};

/// The maximum length of one approval, in bytes.
const LONGEST: usize = 10_000;

/// The ConfigMap with the approvals of a DaemonSet's steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approvals {
    /// The approvals, by step; those that cannot be read are left out.
    pub by_step: BTreeMap<String, Approval>,
    /// The keys that cannot be read.
    pub unreadable: Option<Unreadable>,
    /// Whether the ConfigMap is the record of another DaemonSet, `NAME-approvals`.
    pub is_record: bool,
}

impl LiveCluster {
    /// The approvals of the steps of one DaemonSet, by one request; none if nothing was ever
    /// approved.
    ///
    /// # Errors
    /// [`Error::Forbidden`] if the user may not get the ConfigMap; the server does not answer, or
    /// not as expected.
    pub async fn approvals_of(&self, key: &DaemonSetKey) -> Result<Approvals, Error> {
        let name = approvals_name(&key.name);
        match self.requests.object(Resource::Approvals, &key.namespace, &name).await? {
            None => Ok(Approvals::default()),
            Some(json) => read(&json, key).map_err(|error| Error::NotAnAnswer {
                request: format!("GET {}", Resource::Approvals),
                reason: error.to_string(),
            }),
        }
    }

    /// Adds the approvals of these DaemonSets to the snapshot, as far as their policies ask for
    /// some. Those that the user may not read are left out.
    ///
    /// # Errors
    /// The server does not answer, or not as expected.
    pub async fn read_approvals(
        &self,
        desired: &[DesiredDaemonSet],
        snapshot: &mut Snapshot,
    ) -> Result<(), Error> {
        let wanted = desired.iter().filter(|one| one.asks_for_approvals());
        self.read_approvals_of(wanted.map(|one| one.key.clone()).collect(), snapshot).await
    }

    /// Adds the approvals of these DaemonSets to the snapshot. Those that the user may not read are
    /// left out.
    ///
    /// # Errors
    /// The server does not answer, or not as expected.
    pub async fn read_approvals_of(
        &self,
        wanted: Vec<DaemonSetKey>,
        snapshot: &mut Snapshot,
    ) -> Result<(), Error> {
        let mut read = stream::iter(wanted)
            .map(|key| async { (self.approvals_of(&key).await, key) })
            .buffered(AT_ONCE.get());
        while let Some((read, key)) = read.next().await {
            let Approvals { by_step, unreadable, is_record: _ } = match read {
                Ok(read) => read,
                Err(Error::Forbidden { .. }) => continue,
                Err(error) => return Err(error),
            };
            snapshot.approvals.insert(key, by_step);
            snapshot.unreadable.extend(unreadable);
        }
        snapshot.unreadable.sort();
        snapshot.unreadable.dedup();
        Ok(())
    }
}

/// The parts of the ConfigMap.
#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    data: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: Labels,
}

fn read(json: &[u8], key: &DaemonSetKey) -> Result<Approvals, serde_json::Error> {
    let Wire { metadata, data } = serde_json::from_slice(json)?;
    if metadata.labels.get(RECORD_LABEL).is_some() {
        return Ok(Approvals { is_record: true, ..Approvals::default() });
    }
    let (mut by_step, mut bad) = (BTreeMap::new(), Vec::new());
    for (step, text) in data {
        match approval(&text) {
            Ok(approval) => drop(by_step.insert(step, approval)),
            Err(reason) => bad.push((step, reason)),
        }
    }
    let unreadable = bad.first().map(|(step, reason)| Unreadable {
        kind: Unreadable::APPROVAL,
        namespace: Some(key.namespace.clone()),
        name: approvals_name(&key.name),
        reason: match bad.len() {
            1 => format!("key {step}: {reason}"),
            more => format!("key {step}: {reason}; {} more keys", more - 1),
        },
    });
    Ok(Approvals { by_step, unreadable, is_record: false })
}

/// Reads an approval, or says why it is none, without repeating what others wrote.
fn approval(text: &str) -> Result<Approval, String> {
    if text.len() > LONGEST {
        return Err(format!("it has more than {LONGEST} bytes"));
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let field = |name: &str| {
        let text = value.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| format!("field {name} is missing, or not a text"))
    };
    let at: Timestamp =
        field("at")?.parse().map_err(|_| "field at is not a time such as 2026-08-01T12:00:00Z")?;
    let uid = field("uid")?.as_str().into();
    Ok(Approval { uid, template: field("template")?, step: field("step")?, by: field("by")?, at })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key() -> DaemonSetKey {
        DaemonSetKey::new("log", "agent")
    }

    fn given() -> Value {
        json!({"uid": "u", "template": "sha256:t", "step": "sha256:s", "by": "a@b",
            "at": "2026-08-01T12:00:00Z"})
    }

    #[test]
    fn what_was_written_is_read() {
        let approval: Approval = serde_json::from_value(given()).unwrap();
        let json = json!({"data": {"rest": approval.text()}}).to_string();
        let read = read(json.as_bytes(), &key()).unwrap();
        let want =
            Approvals { by_step: [("rest".to_owned(), approval)].into(), ..Approvals::default() };
        assert_eq!(read, want);
    }

    #[test]
    fn what_is_not_an_approval_is_reported_and_counts_as_none() {
        let with = |field: &str, value: Value| {
            let mut given = given();
            given[field] = value;
            given.to_string()
        };
        let padded = |length: usize| {
            let text = with("more", "".into());
            text.replace(
                "\"more\":\"\"",
                &format!("\"more\":\"{}\"", "x".repeat(length - text.len())),
            )
        };
        for (text, want) in [
            (String::new(), Some("it is not JSON: EOF while parsing a value at line 1 column 0")),
            ("null".to_owned(), Some("field at is missing, or not a text")),
            ("[]".to_owned(), Some("field at is missing, or not a text")),
            (with("at", 5.into()), Some("field at is missing, or not a text")),
            (
                with("at", "soon".into()),
                Some("field at is not a time such as 2026-08-01T12:00:00Z"),
            ),
            (with("uid", json!({})), Some("field uid is missing, or not a text")),
            (with("template", json!(1)), Some("field template is missing, or not a text")),
            (with("step", json!(null)), Some("field step is missing, or not a text")),
            (with("by", json!(["a"])), Some("field by is missing, or not a text")),
            (padded(10_000), None),
            (padded(10_001), Some("it has more than 10000 bytes")),
        ] {
            let json = json!({"data": {"rest": text, "good": given().to_string()}}).to_string();
            let read = read(json.as_bytes(), &key()).unwrap();
            let reason = read.unreadable.as_ref().map(|it| it.reason.as_str());
            assert_eq!(reason, want.map(|want| format!("key rest: {want}")).as_deref(), "{text}");
            assert_eq!(read.by_step.contains_key("rest"), want.is_none(), "{text}");
            assert!(read.by_step.contains_key("good"), "{text}");
        }
    }

    #[test]
    fn there_is_one_warning_however_many_keys_are_bad() {
        let json = json!({"data": {"a": "", "b": "{", "c": "7"}}).to_string();
        let unreadable = read(json.as_bytes(), &key()).unwrap().unreadable.unwrap();
        assert_eq!(unreadable.name, "ds-plan-agent-approvals");
        assert!(unreadable.reason.starts_with("key a: "), "{unreadable:?}");
        assert!(unreadable.reason.ends_with("; 2 more keys"), "{unreadable:?}");
    }

    #[test]
    fn neither_an_empty_config_map_nor_a_record_has_approvals() {
        for (json, is_record) in [
            (json!({}), false),
            (json!({"metadata": {"labels": {"a": "b"}}, "data": null}), false),
            (
                json!({"metadata": {"labels": {RECORD_LABEL: "true"}}, "data": {"daemonSet": "{"}}),
                true,
            ),
        ] {
            let read = read(json.to_string().as_bytes(), &key()).unwrap();
            assert_eq!(read, Approvals { is_record, ..Approvals::default() }, "{json}");
        }
        assert!(read(br#"{"data": 3}"#, &key()).is_err());
    }
}
