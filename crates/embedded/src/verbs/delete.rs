//! Deletes objects, at once or in steps: grace period, finalizers, dependents (upstream:
//! `Store.Delete`, `BeforeDelete`, the pod strategy's `CheckGracefulDelete`).
//!
//! Dependents are handled by the garbage collector.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Target, Verbs, metadata};
use crate::clock::whole_second;
use crate::{Kind, Object, Status};
use daemonset::model::Uid;

/// Finalizer of an object whose dependents are to be orphaned.
pub(super) const ORPHAN: &str = "orphan";

/// Finalizer of an object whose dependents are to be deleted first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// The treatment of dependents (upstream: `DeletionPropagation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Dependents stay, without the owner.
    Orphan,
    /// Dependents are deleted after the owner.
    Background,
    /// Dependents are deleted before the owner.
    Foreground,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// Required uid.
    pub(crate) uid: Option<Uid>,
    /// Required version.
    pub(crate) resource_version: Option<String>,
    /// Grace period that replaces the object's own, in seconds.
    pub(crate) grace_seconds: Option<i64>,
    /// Treatment of dependents; `None` is the kind's default, in the background.
    pub(crate) propagation: Option<Propagation>,
}

impl DeleteOptions {
    /// Options for an immediate deletion, as by the kubelet when a pod has terminated.
    pub(crate) fn now() -> Self {
        Self { grace_seconds: Some(0), ..Self::default() }
    }
}

/// The progress of a deletion.
#[derive(Clone, Debug)]
pub(crate) enum Deleted {
    /// The object was removed; with its last state.
    Gone(Arc<Object>),
    /// The object terminates: it waits for its grace period or for finalizers.
    Going(Arc<Object>),
}

impl Deleted {
    /// The current or last state of the object.
    pub(crate) fn object(&self) -> &Arc<Object> {
        match self {
            Self::Gone(object) | Self::Going(object) => object,
        }
    }
}

impl Verbs<'_> {
    /// Deletes an object.
    ///
    /// # Errors
    /// 404 if it does not exist; 409 if its uid or version differ; 501 for Namespaces, which upstream
    /// empties first.
    pub(crate) fn delete(
        &mut self,
        target: Target<'_>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let live = self.get(target)?;
        check_preconditions(target, &live, options)?;
        if target.kind == Kind::Namespace {
            return Err(Status::not_implemented("the deletion of Namespaces"));
        }
        let mut draft = live.draft();
        let object = &mut draft.value;
        let grace = match self.grace(&live, object, options) {
            Grace::Pending => return Ok(Deleted::Going(live)),
            Grace::Runs => true,
            Grace::None => false,
        };
        let finalizers = finalizers(&live, options);
        let waits = !finalizers.is_empty();
        let finalizers = waits.then(|| json!(finalizers));
        metadata::set(object, "finalizers", finalizers);
        let period = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
        if waits && !grace {
            self.mark_as_deleting(&live, object);
        }
        if waits && *object == live.draft().value {
            // It waits for its dependents already, and there is nothing to write.
            return Ok(Deleted::Going(live));
        }
        if waits || grace && period > 0 {
            return self.keep(target.kind, draft).map(Deleted::Going);
        }
        if grace {
            // Upstream writes a grace period of 0, and then deletes: two changes.
            draft = self.keep(target.kind, draft)?.draft();
        }
        self.take_away(target.kind, draft).map(Deleted::Gone)
    }

    /// Starts or shortens the grace period of a pod, the only kind that has one.
    fn grace(&self, live: &Object, object: &mut Value, options: &DeleteOptions) -> Grace {
        if live.kind() != Kind::Pod {
            return Grace::None;
        }
        let asked = options.grace_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
        let meta = live.meta();
        if let Some(until) = meta.deleted {
            let running = meta.grace_seconds.unwrap_or_default();
            return match asked {
                _ if running == 0 => Grace::None,
                None => Grace::Pending,
                Some(asked) if asked >= running => Grace::Pending,
                Some(asked) => {
                    let began = until - SignedDuration::from_secs(running);
                    let ends = began + SignedDuration::from_secs(asked);
                    // The end is never in the past, and only an explicit 0 is immediate.
                    let (ends, period) = match ends < self.now {
                        true if asked > 0 => (self.now, 1),
                        true => (self.now, asked),
                        false => (ends, asked),
                    };
                    set_deletion(object, ends, period);
                    Grace::Runs
                }
            };
        }
        let period = own_grace(live, asked);
        set_deletion(object, self.now + SignedDuration::from_secs(period), period);
        bump_generation(live, object);
        Grace::Runs
    }

    /// Sets the deletion timestamp (upstream: `markAsDeleting`).
    fn mark_as_deleting(&self, live: &Object, object: &mut Value) {
        let until = live.meta().deleted.filter(|until| *until <= self.now);
        if live.meta().deleted.is_none() {
            bump_generation(live, object);
        }
        set_deletion(object, until.unwrap_or(self.now), 0);
    }
}

enum Grace {
    /// No grace period: the object waits at most for finalizers.
    None,
    /// The grace period runs already, and is not shortened.
    Pending,
    /// The grace period starts, or is shortened.
    Runs,
}

/// The grace period in a pod's spec.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnGrace {
    termination_grace_period_seconds: Option<i64>,
}

/// A pod's grace period: 0 if the pod is not bound, or has terminated.
fn own_grace(pod: &Object, asked: Option<i64>) -> i64 {
    let own = || pod.spec::<OwnGrace>().termination_grace_period_seconds.unwrap_or(30);
    match asked.unwrap_or_else(own) {
        _ if pod.pod().is_some_and(|pod| !pod.is_bound() || pod.is_terminal()) => 0,
        ..0 => 1,
        period => period,
    }
}

fn set_deletion(object: &mut Value, until: Timestamp, period: i64) {
    metadata::set(object, "deletionTimestamp", Some(whole_second(until).into()));
    metadata::set(object, "deletionGracePeriodSeconds", Some(period.into()));
}

fn bump_generation(live: &Object, object: &mut Value) {
    let generation = live.meta().generation;
    if generation > 0 {
        metadata::set(object, "generation", Some((generation + 1).into()));
    }
}

/// The finalizers, with those of the garbage collector for the options (upstream:
/// `deletionFinalizersForGarbageCollection`).
fn finalizers(live: &Object, options: &DeleteOptions) -> Vec<String> {
    let own = &live.meta().finalizers;
    let others = own.iter().filter(|it| !matches!(&***it, ORPHAN | FOREGROUND));
    let mut all: Vec<String> = others.map(ToString::to_string).collect();
    let has = |finalizer: &str| own.iter().any(|it| **it == *finalizer);
    let propagation = options.propagation.or_else(|| {
        has(ORPHAN)
            .then_some(Propagation::Orphan)
            .or_else(|| has(FOREGROUND).then_some(Propagation::Foreground))
    });
    match propagation {
        Some(Propagation::Orphan) => all.push(ORPHAN.to_owned()),
        Some(Propagation::Foreground) => all.push(FOREGROUND.to_owned()),
        Some(Propagation::Background) | None => {}
    }
    all
}

fn check_preconditions(
    target: Target<'_>,
    live: &Object,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let Target { kind, name, .. } = target;
    let uid = &live.meta().uid;
    if let Some(wanted) = options.uid.as_ref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The \
             object might have been deleted and then recreated"
        );
        return Err(Status::conflict_of_kind(kind, name, &why));
    }
    let version = live.version().to_string();
    if let Some(wanted) = options.resource_version.as_ref().filter(|wanted| **wanted != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the \
             ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(Status::conflict_of_kind(kind, name, &why));
    }
    Ok(())
}
