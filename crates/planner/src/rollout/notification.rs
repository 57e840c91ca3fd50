//! Notifications about a run: which events are posted, and without what. They leave the network of
//! the cluster, so they have no logs, and no value of a template that may be secret, whoever quotes
//! it: a kubelet, a webhook or the API server.

use serde_json::Value;

use super::observed_cluster::ObservedCluster;
use super::run_event::{RunEvent, RunEventData};
use super::task::Goal;
use daemonset::controller::revision_data::template_of;
use daemonset::model::mask::secret_values;
use daemonset::model::{DaemonSetKey, PodTemplate, Revision, Snapshot};

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
    /// Those of every template that a text about a rollout may quote: of the manifest, of the target
    /// (the manifest as the server stores it), of the live object, and of the revisions of the
    /// DaemonSet. Its nodes may have pods of any revision, and a rollback brings an earlier one back.
    pub fn of(
        manifest: &PodTemplate,
        goal: &Goal,
        snapshot: &Snapshot,
        key: &DaemonSetKey,
    ) -> Self {
        let ObservedCluster { daemon_set: live, revisions, .. } =
            ObservedCluster::of(snapshot, key, true);
        // The DaemonSet may adopt revisions without an owner.
        let is_of_another = |revision: &&Revision| {
            let owner = revision.controller.as_ref();
            owner.is_some_and(|owner| live.is_none_or(|live| owner.uid != live.uid))
        };
        let revisions = revisions.iter().filter(|revision| !is_of_another(revision));
        let earlier: Vec<Value> =
            revisions.filter_map(|revision| template_of(&revision.data)).collect();
        let target = goal.target().map(|target| target.template.raw());
        let live = live.map(|live| live.spec.template.raw());
        Self::of_templates([manifest.raw()].into_iter().chain(target).chain(live).chain(&earlier))
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
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
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
    let (mut masked, mut from) = (String::new(), 0);
    for (at, _) in text.match_indices(secret) {
        let end = at + secret.len();
        if word_continues(text[..at].chars().rev()) || word_continues(text[end..].chars()) {
            continue;
        }
        masked.push_str(&text[from..at]);
        masked.push_str(MASK);
        from = end;
    }
    masked + &text[from..]
}

/// Whether a word continues with the characters next to a part of it, the nearest one first. A full
/// stop is of the word only if the word continues after it: it may also end a sentence.
fn word_continues(mut away: impl Iterator<Item = char>) -> bool {
    match away.next() {
        Some('.') => away.next().is_some_and(char::is_alphanumeric),
        Some('-' | '_') => true,
        Some(nearest) => nearest.is_alphanumeric(),
        None => false,
    }
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
    use crate::rollout::{Declared, PodEvidence, RunEventKind, Target};
    use daemonset::controller::test_cluster::Cluster;
    use daemonset::model::ControllerRef;

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
            ("with password hunter2.", "with password (sensitive value)."),
            ("hunter2. And hunter2...", "(sensitive value). And (sensitive value)..."),
            ("...hunter2", "...(sensitive value)"),
            ("hunter2.sock, my.hunter2", "hunter2.sock, my.hunter2"),
            ("hunter2-x, x_hunter2", "hunter2-x, x_hunter2"),
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

    /// The template of the cluster with this password.
    fn with_password(cluster: &mut Cluster, password: &str) -> PodTemplate {
        cluster.edit(|spec| {
            spec["template"]["spec"]["containers"][0]["args"] = json!(["--password", password]);
        });
        cluster.daemon_set.spec.template.clone()
    }

    #[test]
    fn secrets_are_those_of_all_templates_whose_pods_may_be_in_the_rollout() {
        let mut cluster = Cluster::of(1);
        for password in ["of-an-orphan", "of-another-one", "of-the-first", "of-the-second"] {
            with_password(&mut cluster, password);
            cluster.sync();
        }
        cluster.revisions.sort_by_key(|revision| revision.number);
        cluster.revisions[0].controller = None;
        let another = ControllerRef { uid: "uid-bar".into(), ..(*cluster.reference()).clone() };
        cluster.revisions[1].controller = Some(another.into());
        let template = with_password(&mut cluster, "as-it-is-stored");
        let target = Target {
            uid: None,
            template,
            declared: Declared::from_json(json!({"type": "OnDelete"})).unwrap(),
            written: json!({}).into(),
            changes: true,
        };
        let manifest = with_password(&mut cluster, "of-the-manifest");
        // Its revision does not exist yet.
        with_password(&mut cluster, "of-the-live-one");
        let (snapshot, key) = (cluster.snapshot(), &cluster.daemon_set.key);
        let all = "of-the-first of-the-second of-an-orphan of-the-live-one of-the-manifest";
        for (goal, stored) in [(Goal::Apply(target), MASK), (Goal::RollBack, "as-it-is-stored")] {
            let secrets = Secrets::of(&manifest, &goal, &snapshot, key);
            assert_eq!(secrets.masked(all), [MASK; 5].join(" "), "{goal:?}");
            assert_eq!(secrets.masked("as-it-is-stored"), stored, "{goal:?}");
            assert_eq!(secrets.masked("of-another-one"), "of-another-one", "{goal:?}");
        }
        // It was deleted, and its pods were not: a new one adopts them.
        let mut orphans = cluster.snapshot();
        orphans.daemon_sets.clear();
        let secrets = Secrets::of(&manifest, &Goal::RollBack, &orphans, key);
        assert_eq!(secrets.masked("of-an-orphan of-the-first"), format!("{MASK} of-the-first"));
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
