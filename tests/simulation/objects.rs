//! Look-ups in the store for the laws.

use std::collections::BTreeSet;

use daemonset::controller::revision_data::{Matching, matches, template_of};
use daemonset::model::{
    DaemonSet, DaemonSetKey, FAILED_TEMPLATES_ANNOTATION, Pod, Revision, failed_templates,
    lease_name,
};
use embedded::{Kind, Object, ObjectKey, Store};
use planner::digest::template_digest;
use planner::plan::{PauseState, PausedRollout};
use serde_json::Value;

use crate::cluster::NAMESPACE;
use crate::pulls::image_number;

/// The DaemonSet that an object is, or that is inside a record.
pub(crate) fn daemon_set(object: &Object) -> Option<&DaemonSet> {
    object.daemon_set().or_else(|| object.record())
}

/// All DaemonSets, including those inside records.
pub(crate) fn daemon_sets(store: &Store) -> impl Iterator<Item = &DaemonSet> {
    let of = |kind| store.objects(kind, Some(NAMESPACE));
    let all = of(Kind::DaemonSet).chain(of(Kind::ConfigMap));
    all.filter_map(|it| daemon_set(it))
}

/// One DaemonSet by its name.
pub(crate) fn live<'s>(name: &str, store: &'s Store) -> Option<&'s DaemonSet> {
    daemon_sets(store).find(|live| *live.key.name.as_str() == *name)
}

pub(crate) fn pods(store: &Store) -> impl Iterator<Item = &Pod> {
    store.objects(Kind::Pod, Some(NAMESPACE)).filter_map(|it| it.pod())
}

/// The revisions that belong to a DaemonSet.
pub(crate) fn revisions<'s>(
    live: &'s DaemonSet,
    store: &'s Store,
) -> impl Iterator<Item = &'s Revision> {
    let all = store.objects(Kind::ControllerRevision, Some(NAMESPACE));
    all.filter_map(|it| it.revision())
        .filter(|it| it.controller.as_ref().is_some_and(|owner| owner.uid == live.uid))
}

/// Whether a pod has the live template.
pub(crate) fn is_updated(pod: &Pod, live: &DaemonSet, store: &Store) -> bool {
    of_pod(pod, live, store).any(|it| matches(live.spec.template.raw(), &it.data, Matching::Exact))
}

/// Whether a pod has the template that a rollout puts on the nodes: while it waits, another one is live.
pub(crate) fn is_of_rollout(pod: &Pod, live: &DaemonSet, store: &Store) -> bool {
    let rollout = template_of_rollout(live);
    let mut templates = of_pod(pod, live, store).filter_map(|it| template_of(&it.data));
    templates.any(|template| template_digest(&template) == rollout)
}

/// The digest of the template that waits, else of the live one.
pub(crate) fn template_of_rollout(live: &DaemonSet) -> String {
    let pause = PausedRollout::of(live).ok().flatten();
    let waiting = pause.filter(|it| it.state == PauseState::Waiting).and_then(|it| it.target);
    waiting.unwrap_or_else(|| template_digest(live.spec.template.raw()))
}

/// The revision that a pod was created from.
fn of_pod<'s>(
    pod: &Pod,
    live: &'s DaemonSet,
    store: &'s Store,
) -> impl Iterator<Item = &'s Revision> {
    revisions(live, store).filter(|it| it.hash().is_some_and(|hash| pod.has_hash(&hash)))
}

/// An object's key in the agents' namespace.
pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

/// The digests of failed templates that the lease or the pause records.
pub(crate) fn failed_before(live: &DaemonSet, store: &Store) -> BTreeSet<String> {
    let aborted = PausedRollout::of(live).ok().flatten().and_then(|pause| pause.failed);
    remembered(&live.key, store).into_iter().chain(aborted).collect()
}

/// The digests of failed templates that the lease records.
pub(crate) fn remembered(key: &DaemonSetKey, store: &Store) -> BTreeSet<String> {
    let lease = store.get(Kind::Lease, NAMESPACE, &lease_name(key.name.as_str()));
    let Some(lease) = lease.map(|it| it.value()) else { return BTreeSet::new() };
    let note = lease["metadata"]["annotations"][FAILED_TEMPLATES_ANNOTATION].as_str();
    failed_templates(note.unwrap_or_default()).map(str::to_owned).collect()
}

/// The number of the image of a template.
pub(crate) fn image_of(template: &Value) -> u32 {
    let image = template["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    image_number(image).unwrap_or_default()
}
