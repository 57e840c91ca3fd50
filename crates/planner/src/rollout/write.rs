//! The bodies of requests: the object that a [`Write`] sends, and the annotations that record a
//! change on its revision.

use serde_json::{Map, Value};

use super::request::Write;
use super::task::Provenance;
use crate::annotations::{COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION, ROLLOUT_ANNOTATION};
use crate::plan::{keeps_template, owned, settled};
use daemonset::model::{CHANGE_CAUSE_ANNOTATION, Labels};

/// Separator between the values of an annotation of a revision that was live several times, oldest
/// first.
const SEPARATOR: char = ',';

impl Write {
    /// The complete object for a server-side apply; preconditions are sent separately. One apply of
    /// it has the same result as several.
    ///
    /// If the live template must stay and the manifest would change it, the template fields that
    /// `ds-apply` owns of the live object are sent instead: to apply them changes nothing.
    pub fn object(&self) -> Value {
        let live = self.live.as_deref();
        let object = settled(live, self.stated());
        match live.filter(|live| self.keeps_template && !keeps_template(live, &object)) {
            None => object,
            Some(live) => with_own_template(live, object),
        }
    }

    /// The manifest with strategy, pause and provenance.
    fn stated(&self) -> Value {
        let Self {
            precondition: _,
            live: _,
            keeps_template: _,
            purpose: _,
            written,
            template,
            strategy,
            pause,
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
        if let Some(pause) = pause {
            // Strings and numbers only: it cannot fail.
            let text = serde_json::to_string(pause).unwrap_or_default();
            annotations.insert(ROLLOUT_ANNOTATION.to_owned(), text.into());
        }
        let pairs = provenance.iter().flat_map(Provenance::annotations);
        annotations.extend(pairs.map(|(key, value)| (key.to_owned(), value.into())));
        object["metadata"]["annotations"] = annotations.into();
        object
    }
}

/// The object with the pod template fields that `ds-apply` owns of the live one, if it owns any.
fn with_own_template(live: &Value, mut object: Value) -> Value {
    if let Some(template) = owned(live).and_then(|it| it.pointer("/spec/template").cloned()) {
        object["spec"]["template"] = template;
    }
    object
}

impl Provenance {
    /// The annotations of the DaemonSet, which its new revisions inherit.
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

    /// The provenance of the last change, from the annotations of an object or revision.
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

    /// Whether this change is recorded on a revision with these annotations. The commit decides, or
    /// the plan where there is no commit: a resumed run has a different plan.
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

/// The annotations that record `change` on a revision, to be merged into its annotations `present`.
/// Commits and plans are appended to earlier ones; the change cause is replaced, as `kubectl
/// rollout history` prints it.
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
