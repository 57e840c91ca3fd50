//! Pulling images before pods are replaced (`prePull` of a policy): which images, and the pod that
//! makes a node pull them. Plan and rollout share it.
//!
//! The pod has a container for each image, with a command that does not exist: so the kubelet pulls
//! the image and fails to start it, and nothing of the image runs. Not here: which nodes pull now
//! (`rollout/pulls`).

use std::collections::BTreeSet;

use serde_json::Value;

use daemonset::controller::history::hash_of;
use daemonset::controller::revision_data::template_of;
use daemonset::model::{Revision, RevisionHash};

mod puller;
mod template_images;

pub(crate) use puller::puller;
pub use template_images::{ImageToPull, TemplateImages};

/// The hashes of the revisions whose pods have all images of a template.
pub(crate) fn revisions_with(template: &Value, revisions: &[&Revision]) -> BTreeSet<RevisionHash> {
    let target = TemplateImages::of(template);
    let has_them = |template: Value| target.are_among(&TemplateImages::of(&template));
    let with_images = revisions.iter().filter(|it| template_of(&it.data).is_some_and(has_them));
    with_images.map(|revision| hash_of(revision)).collect()
}
