//! The images that a rollout pulls before it replaces pods, for the plan.

use std::collections::BTreeSet;

use super::daemon_set_view::DaemonSetView;
use super::document::{PrePullPlan, Strategy, Wave};
use crate::pre_pull::{TemplateImages, revisions_with};
use daemonset::controller::claims::Claims;
use daemonset::model::{NodeName, PolicySpec, Snapshot};

/// What is pulled before the pods of these waves are replaced; `None` if that is nothing.
pub(super) fn pre_pull(
    view: &DaemonSetView<'_>,
    waves: &[Wave],
    policy: &PolicySpec,
    strategy: Strategy,
    snapshot: &Snapshot,
) -> Option<PrePullPlan> {
    let pre_pull = policy.pre_pull.filter(|_| strategy != Strategy::OnDelete)?;
    let template = view.owner.spec.template.raw();
    let revisions = Claims::of(&view.owner, snapshot.revisions_in(&view.owner.key.namespace));
    let with_images = revisions_with(template, &revisions.claimed);
    let replaced: BTreeSet<&NodeName> = waves.iter().flat_map(|wave| &wave.nodes).collect();
    let pods = view
        .pods
        .claimed
        .iter()
        .filter(|pod| !pod.terminating && !with_images.iter().any(|hash| pod.has_hash(hash)));
    let nodes: BTreeSet<&NodeName> =
        pods.filter_map(|pod| pod.node()).filter(|node| replaced.contains(node)).collect();
    let images = TemplateImages::of(template);
    (!nodes.is_empty()).then(|| PrePullPlan {
        images: images.iter().map(|it| it.image.clone()).collect(),
        nodes: u32::try_from(nodes.len()).unwrap_or(u32::MAX),
        parallel: pre_pull.parallel,
        timeout_seconds: pre_pull.timeout.0,
    })
}
