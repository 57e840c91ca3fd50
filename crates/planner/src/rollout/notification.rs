//! Notifications about a run: which events are posted, and without what. They leave the network of
//! the cluster, so they have no logs, and no value of a template that may be secret, whoever quotes
//! it: a kubelet, a webhook or the API server.

use serde_json::Value;

use super::run_event::{RunEvent, RunEventData};
use super::task::Task;
use daemonset::model::PodTemplate;
use daemonset::model::mask::secret_values;

/// Replacement of a value that may be secret.
const MASK: &str = "(sensitive value)";
/// Characters of a value at least: shorter ones, such as `1`, would mask half of each sentence.
const SHORTEST: usize = 4;
/// Characters from which a value is masked inside of words, too.
const INSIDE_WORDS: usize = 8;

/// Fields at the top that are names and codes: they have no texts of others.
const NAMES: [&str; 10] = [
    "apiVersion",
    "kind",
    "time",
    "rehearsal",
    "cluster",
    "daemonSet",
    "event",
    "by",
    "commit",
    "exitCode",
];

/// The values that may be secret in the templates of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Those of a task, and of the template that is live when it begins.
    pub fn of(live: &PodTemplate, task: &Task) -> Self {
        let target = task.goal.target().map(|target| target.template.raw());
        Self::of_templates([live.raw()].into_iter().chain(target))
    }

    fn of_templates<'a>(templates: impl Iterator<Item = &'a Value>) -> Self {
        let mut secrets: Vec<String> = templates
            .flat_map(|template| secret_values(template).into_iter().map(move |it| (template, it)))
            .filter_map(|(template, secret)| {
                let text = template.pointer(&secret.pointer)?.as_str()?;
                Some(text.get(secret.start..)?.to_owned())
            })
            // A message may have one line of several.
            .flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>())
            .filter(|text| text.chars().count() >= SHORTEST)
            .collect();
        // A secret may contain another one.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    /// The text with a mask in place of each secret.
    fn masked(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| mask(&text, secret))
    }

    /// Masks the secrets in all texts of a value.
    fn mask_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.masked(text),
            Value::Array(all) => all.iter_mut().for_each(|value| self.mask_all(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.mask_all(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Masks a secret in a text: a long one everywhere, a short one where it is a word.
fn mask(text: &str, secret: &str) -> String {
    if secret.chars().count() >= INSIDE_WORDS {
        return text.replace(secret, MASK);
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '.';
    let (mut masked, mut from) = (String::new(), 0);
    for (at, _) in text.match_indices(secret) {
        let end = at + secret.len();
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        if before.is_some_and(is_part) || after.is_some_and(is_part) {
            continue;
        }
        masked.push_str(&text[from..at]);
        masked.push_str(MASK);
        from = end;
    }
    masked + &text[from..]
}

/// The notification about an event, of the same schema; `None` if it is not posted: only the start,
/// a wait, a failure and the end of a rollout are, and the end of the run.
pub fn notification(mut event: RunEvent, secrets: &Secrets) -> Option<Value> {
    match &mut event.event {
        RunEventData::Started { .. }
        | RunEventData::WaitingFor { .. }
        | RunEventData::Failed { .. }
        | RunEventData::RunEnded { .. } => {}
        RunEventData::Ended { evidence, .. } => {
            for evidence in evidence.values_mut() {
                // A log can have anything in it.
                evidence.log = None;
            }
        }
        RunEventData::Plan { .. }
        | RunEventData::WaitingForLock { .. }
        | RunEventData::ClocksDiffer { .. }
        | RunEventData::Writing
        | RunEventData::Revision { .. }
        | RunEventData::Deleting { .. }
        | RunEventData::Recovered { .. }
        | RunEventData::Arrived { .. }
        | RunEventData::Stopping { .. }
        | RunEventData::LostReady { .. }
        | RunEventData::NotObserved { .. }
        | RunEventData::Pulling { .. }
        | RunEventData::Pulled { .. }
        | RunEventData::NotPulled { .. }
        | RunEventData::RemovingPullers { .. }
        | RunEventData::Progress { .. }
        | RunEventData::DeletingDaemonSet
        | RunEventData::Gone => return None,
    }
    // The type has a form in JSON: its keys are strings.
    let mut document = serde_json::to_value(&event).ok()?;
    let fields = document.as_object_mut()?;
    let texts = fields.iter_mut().filter(|(name, _)| !NAMES.contains(&name.as_str()));
    texts.for_each(|(_, value)| secrets.mask_all(value));
    Some(document)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::{ApiVersion, ContainerLog};
    use crate::rollout::{PodEvidence, RunEventKind};

    fn event(message: &str, event: RunEventData) -> RunEvent {
        RunEvent {
            api_version: ApiVersion::V1Alpha1,
            kind: RunEventKind::RunEvent,
            time: jiff::Timestamp::UNIX_EPOCH,
            rehearsal: false,
            cluster: Some("prod-eu-west".to_owned()),
            daemon_set: Some("logging/agent-of-prod-eu-west".to_owned()),
            message: message.to_owned(),
            event,
        }
    }

    fn secrets() -> Secrets {
        let template = json!({"spec": {"containers": [{
            "name": "agent",
            "args": ["--token=hunter2", "--password", "hunter2-and-more"],
            "env": [
                {"name": "A", "value": "info"},
                {"name": "B", "value": "1"},
                {"name": "C", "value": "prod-eu-west"},
                {"name": "D", "value": "first line\n  second line\n"},
            ],
        }]}});
        Secrets::of_templates([&template].into_iter())
    }

    #[test]
    fn no_secret_value_is_in_a_notification_whoever_quotes_it() {
        for (message, want) in [
            (
                "exec: \"--token=hunter2\": no such file",
                "exec: \"--token=(sensitive value)\": no such file",
            ),
            ("Invalid value: \"hunter2-and-more\"", "Invalid value: \"(sensitive value)\""),
            ("xhunter2-and-morex", "x(sensitive value)x"),
            (
                "info, more info: agent-info",
                "(sensitive value), more (sensitive value): agent-info",
            ),
            ("pods failed on 1 node", "pods failed on 1 node"),
            ("got `second line`", "got `(sensitive value)`"),
        ] {
            let event = event(message, RunEventData::Failed { node: "a-1".into() });
            let document = notification(event, &secrets()).unwrap();
            assert_eq!(document["message"], want);
            assert_eq!(document["daemonSet"], "logging/agent-of-prod-eu-west");
            assert_eq!(document["cluster"], "prod-eu-west");
        }
    }

    #[test]
    fn the_end_has_its_warnings_but_no_logs() {
        let log = ContainerLog {
            pod: "agent-x".into(),
            container: None,
            previous: false,
            lines: vec!["a password of the database".to_owned()],
            error: None,
        };
        let warning = Some("probe said hunter2".to_owned());
        let evidence = [("a-1".into(), PodEvidence { warning, log: Some(log) })];
        let ended = RunEventData::Ended {
            exit_code: 4,
            replaced: 0,
            slowest: Vec::new(),
            evidence: evidence.into(),
            waits_for: Vec::new(),
            failed_gate: None,
            unknown_check: None,
            left: std::collections::BTreeMap::new(),
        };
        let document = notification(event("aborted", ended), &secrets()).unwrap();
        assert_eq!(
            document["evidence"],
            json!({"a-1": {"warning": "probe said (sensitive value)", "log": null}})
        );
    }

    #[test]
    fn only_start_wait_failure_and_end_are_posted() {
        for (data, posted) in [
            (RunEventData::Started { by: None, commit: None, nodes: 1 }, true),
            (RunEventData::WaitingFor { waits_for: Vec::new() }, true),
            (RunEventData::RunEnded { exit_code: 0 }, true),
            (RunEventData::Writing, false),
            (RunEventData::LostReady { nodes: 1 }, false),
        ] {
            let document = notification(event("x", data.clone()), &Secrets::default());
            assert_eq!(document.is_some(), posted, "{data:?}");
        }
    }
}
