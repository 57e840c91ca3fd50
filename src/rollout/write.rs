//! The bodies of requests: what a [`Write`] sends, and which annotations record a change on its
//! revision.

use serde_json::{Map, Value};

use super::effect::Write;
use super::task::Provenance;
use crate::model::{CHANGE_CAUSE_ANNOTATION, Labels};
use crate::plan::{COMMIT_ANNOTATION, ROLLOUT_ANNOTATION, keeps_template, owned, settled};

/// The plan that a DaemonSet was applied by; its revisions inherit the annotation.
pub const PLAN_DIGEST_ANNOTATION: &str = "ds-plan.dev/plan-digest";

/// Between the values of an annotation of a revision that came back several times, oldest first.
const SEPARATOR: char = ',';

impl Write {
    /// The whole object for a server-side apply; its preconditions are sent beside it. Sent once, it
    /// makes of the live object what it would make sent again and again.
    ///
    /// Where the live template has to stay, and the manifest would change it, what `ds-apply` owns of
    /// the live one takes its place: to apply that changes nothing.
    pub fn object(&self) -> Value {
        let live = self.live.as_deref();
        let object = settled(live, self.stated());
        match live.filter(|live| self.keeps_template && !keeps_template(live, &object)) {
            None => object,
            Some(live) => with_own_template(live, object),
        }
    }

    /// What the manifest states, with strategy, hold and provenance.
    fn stated(&self) -> Value {
        let Self {
            precondition: _,
            live: _,
            keeps_template: _,
            purpose: _,
            written,
            template,
            strategy,
            hold,
            provenance,
        } = self;
        let mut object = written.as_ref().clone();
        if let Some(template) = template {
            object["spec"]["template"] = template.as_ref().clone();
        }
        object["spec"]["updateStrategy"] = strategy.clone();
        let mut annotations = match object.pointer_mut("/metadata/annotations") {
            Some(Value::Object(annotations)) => std::mem::take(annotations),
            _absent => Map::new(),
        };
        annotations.remove(ROLLOUT_ANNOTATION);
        if let Some(hold) = hold {
            // Texts and numbers only: it cannot fail.
            let text = serde_json::to_string(hold).unwrap_or_default();
            annotations.insert(ROLLOUT_ANNOTATION.to_owned(), text.into());
        }
        let pairs = provenance.iter().flat_map(Provenance::annotations);
        annotations.extend(pairs.map(|(key, value)| (key.to_owned(), value.into())));
        object["metadata"]["annotations"] = annotations.into();
        object
    }
}

/// The object with the pod template that `ds-apply` owns of the live one, if it owns any.
fn with_own_template(live: &Value, mut object: Value) -> Value {
    if let Some(template) = owned(live).and_then(|it| it.pointer("/spec/template").cloned()) {
        object["spec"]["template"] = template;
    }
    object
}

impl Provenance {
    /// As annotations of the DaemonSet, which its new revisions inherit.
    fn annotations(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Self { commit, plan_digest, change_cause, by: _ } = self;
        let digest = (!plan_digest.is_empty()).then_some(plan_digest);
        [
            (COMMIT_ANNOTATION, commit.as_ref()),
            (PLAN_DIGEST_ANNOTATION, digest),
            (CHANGE_CAUSE_ANNOTATION, change_cause.as_ref()),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?.as_str())))
    }

    /// What an object or revision says about the change that it last came from.
    pub(super) fn of(annotations: &Labels) -> Self {
        let last = |key: &str| {
            let values = annotations.get(key)?;
            values.rsplit(SEPARATOR).next().map(str::to_owned)
        };
        Self {
            commit: last(COMMIT_ANNOTATION),
            plan_digest: last(PLAN_DIGEST_ANNOTATION).unwrap_or_default(),
            change_cause: annotations.get(CHANGE_CAUSE_ANNOTATION).map(str::to_owned),
            by: None,
        }
    }

    /// Whether a revision with these annotations tells of this change already. The commit decides,
    /// or the plan where there is no commit: a run that goes on has another plan.
    pub(super) fn is_on(&self, revision: &Labels) -> bool {
        let recorded = |key: &str, value: &str| {
            revision.get(key).is_some_and(|all| all.split(SEPARATOR).any(|one| one == value))
        };
        match &self.commit {
            Some(commit) => recorded(COMMIT_ANNOTATION, commit),
            None => {
                self.plan_digest.is_empty() || recorded(PLAN_DIGEST_ANNOTATION, &self.plan_digest)
            }
        }
    }
}

/// The annotations that record `change` on a revision that has `present` ones: to be merged into
/// them. Commits and plans are added to those of earlier times; the cause is the newest one's, as
/// `kubectl rollout history` prints it.
pub fn provenance(present: &Labels, change: &Provenance) -> Vec<(&'static str, String)> {
    let added = change.annotations().map(|(key, value)| {
        let before = present.get(key).filter(|_| key != CHANGE_CAUSE_ANNOTATION);
        let known = before.is_some_and(|all| all.split(SEPARATOR).any(|one| one == value));
        match before {
            Some(before) if known => (key, before.to_owned()),
            Some(before) if !before.is_empty() => (key, format!("{before}{SEPARATOR}{value}")),
            Some(_) | None => (key, value.to_owned()),
        }
    });
    added.collect()
}
