//! Detects a GitOps controller that manages a DaemonSet: by the labels and annotations with which
//! Argo CD and Flux track their objects, and by their field managers.
//!
//! The `helm` CLI is not one: it applies once and does not reconcile.
//!
//! Where such a controller applies `OnDelete`, `ds-apply roll` replaces the pods, and a plan can only
//! show what the controller will write. Not here: the guard of an apply (`guards`), the merge
//! (`applied`).

use std::collections::BTreeSet;

use super::document::{Change, DaemonSetPlan, Warning};
use super::pause::PausedRollout;
use daemonset::model::{DaemonSet, DesiredDaemonSet, UpdateStrategy};

/// A GitOps controller that reapplies an object whenever it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitOps {
    /// Name of the product.
    pub product: &'static str,
    /// How it was detected: `label KEY`, `annotation KEY` or `field manager NAME`.
    pub evidence: String,
    /// The field manager, if there is no other evidence: it may have left the object.
    pub manager: Option<&'static str>,
}

impl GitOps {
    /// The field managers of the product, also those that own no field of the object.
    pub(super) fn managers(&self) -> Vec<&'static str> {
        let own = MANAGERS.iter().filter(|(_, product)| *product == self.product);
        own.map(|(name, _)| *name).collect()
    }
}

const ARGO_CD: &str = "Argo CD";
const FLUX: &str = "Flux";

/// Labels that the products set on their objects.
const LABELS: [(&str, &str); 3] = [
    ("argocd.argoproj.io/instance", ARGO_CD),
    ("kustomize.toolkit.fluxcd.io/name", FLUX),
    ("helm.toolkit.fluxcd.io/name", FLUX),
];

/// Annotations that the products set on their objects.
const ANNOTATIONS: [(&str, &str); 1] = [("argocd.argoproj.io/tracking-id", ARGO_CD)];

/// Field managers of the products.
const MANAGERS: [(&str, &str); 4] = [
    ("argocd-controller", ARGO_CD),
    ("argocd-application-controller", ARGO_CD),
    ("kustomize-controller", FLUX),
    ("helm-controller", FLUX),
];

/// Whether Argo CD or Flux manages a DaemonSet, by the marks that they set on it.
pub fn is_git_ops(live: &DaemonSet) -> bool {
    found(live, &BTreeSet::new()).is_some()
}

/// Returns the GitOps controller that manages `live`, if there is one. A field manager whose fields
/// the user takes over (`left`) is no evidence: it stays in `managedFields` after the controller has
/// left the object.
pub(super) fn found(live: &DaemonSet, left: &BTreeSet<String>) -> Option<GitOps> {
    let with = |kind: &str, (key, product): &(&str, &'static str)| GitOps {
        product,
        evidence: format!("{kind} {key}"),
        manager: None,
    };
    let label = LABELS.iter().find(|(key, _)| live.labels.get(key).is_some());
    let annotation = ANNOTATIONS.iter().find(|(key, _)| live.annotations.get(key).is_some());
    // Unreadable managed fields are reported by the merge, which needs them.
    let owners = live.raw["metadata"]["managedFields"].as_array();
    let owners = owners.into_iter().flatten().filter_map(|entry| entry["manager"].as_str());
    let writes = |name: &str| !left.contains(name) && owners.clone().any(|owner| owner == name);
    let manager = MANAGERS.iter().find(|(name, _)| writes(name));
    label
        .map(|it| with("label", it))
        .or_else(|| annotation.map(|it| with("annotation", it)))
        .or_else(|| manager.map(|it| GitOps { manager: Some(it.0), ..with("field manager", it) }))
}

/// Returns the GitOps controller that applies `desired`, if its pods are left to `ds-apply roll`.
/// `left` is that of [`found`].
pub(super) fn applies(
    live: &DaemonSet,
    desired: &DesiredDaemonSet,
    left: &BTreeSet<String>,
) -> Option<GitOps> {
    found(live, left).filter(|_| is_left_to_roll(live, desired))
}

/// Whether git declares `OnDelete`, so that `ds-apply roll` replaces the pods. What is live does not
/// matter: the strategy is written together with the template. A rollout that `ds-apply` has paused is
/// not left to it.
pub(super) fn is_left_to_roll(live: &DaemonSet, desired: &DesiredDaemonSet) -> bool {
    desired.spec.update_strategy == UpdateStrategy::OnDelete
        && matches!(PausedRollout::of(live), Ok(None))
}

/// A warning that the changes are written by `applied_by`, the controller of a preview.
pub(super) fn warning(plan: &DaemonSetPlan, applied_by: Option<&GitOps>) -> Option<Warning> {
    let GitOps { product, evidence, .. } = applied_by.filter(|_| plan.change == Change::Update)?;
    Some(Warning {
        code: "gitOps".to_owned(),
        message: format!(
            "{product} applies this DaemonSet ({evidence}): the plan shows what it will write under \
             OnDelete; replace the pods with `ds-apply roll`"
        ),
        daemon_set: Some(plan.key().to_string()),
        nodes: Vec::new(),
    })
}
