//! A DaemonSet: a slim typed view for decisions, and the raw JSON for comparison.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::null_timestamps::drop_null_timestamps;
use super::scheduling::null_as_default;
use super::{
    DaemonSetName, IntOrPercent, LabelSelector, Labels, ManagedBy, NamespaceName, NodeName,
    NodeSelectorTerm, PodPlacement, TEMPLATE_GENERATION_ANNOTATION, Toleration, Uid,
};

/// Namespace and name of a DaemonSet, written `NAMESPACE/NAME`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct DaemonSetKey {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
}

impl DaemonSetKey {
    /// The key of `name` in `namespace`.
    pub fn new(namespace: impl Into<NamespaceName>, name: impl Into<DaemonSetName>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for DaemonSetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The text is not `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not of the form NAMESPACE/NAME")]
pub struct ParseKeyError(String);

impl FromStr for DaemonSetKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((namespace, name))
                if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
            {
                Ok(Self::new(namespace, name))
            }
            _ => Err(ParseKeyError(text.to_owned())),
        }
    }
}

/// A live DaemonSet of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonSet {
    /// Namespace and name.
    pub key: DaemonSetKey,
    /// The controller that manages it, and so its object in the cluster: a DaemonSet or a record.
    pub managed_by: ManagedBy,
    /// `metadata.uid`; of a record, the ConfigMap's.
    pub uid: Uid,
    /// `metadata.generation`: grows with each change of the spec.
    pub generation: i64,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`.
    pub annotations: Labels,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Whether `metadata.deletionTimestamp` is set: the controller does nothing then.
    pub terminating: bool,
    /// Its `spec`.
    pub spec: DaemonSetSpec,
    /// The status that the controller wrote last.
    pub status: DaemonSetStatus,
    /// The object as served, without `status`: what a diff compares.
    pub raw: Arc<Value>,
}

impl DaemonSet {
    /// `metadata.resourceVersion`: the version of the object. A recording may have none.
    pub fn resource_version(&self) -> Option<&str> {
        self.raw.get("metadata")?.get("resourceVersion")?.as_str()
    }

    /// `templateGeneration`, served as an annotation; `None` when absent or not a number. In a
    /// record no controller maintains it, so there it is ignored.
    pub fn template_generation(&self) -> Option<i64> {
        match self.managed_by {
            ManagedBy::DaemonSetController => {
                self.annotations.get(TEMPLATE_GENERATION_ANNOTATION)?.parse().ok()
            }
            ManagedBy::DsApply => None,
        }
    }
}

/// `spec` of a DaemonSet, defaulted and valid.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetSpec {
    /// The selector of its pods. Immutable.
    pub selector: LabelSelector,
    /// The template of its pods.
    pub template: PodTemplate,
    /// The strategy for replacing pods.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,
    /// Seconds that a new pod must be Ready to count as available.
    #[serde(default)]
    pub min_ready_seconds: u32,
    /// Number of old revisions that are kept.
    #[serde(default = "ten")]
    pub revision_history_limit: u32,
}

fn ten() -> u32 {
    10
}

/// `spec.updateStrategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "WireStrategy")]
pub enum UpdateStrategy {
    /// A pod is replaced after it is deleted.
    OnDelete,
    /// The controller replaces pods within a budget.
    RollingUpdate {
        /// Number of desired nodes that may be without an available pod.
        max_unavailable: IntOrPercent,
        /// Number of nodes that may run an old and a new pod at the same time.
        max_surge: IntOrPercent,
    },
}

impl Default for UpdateStrategy {
    fn default() -> Self {
        Self::RollingUpdate {
            max_unavailable: IntOrPercent::Int(1),
            max_surge: IntOrPercent::Int(0),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireStrategy {
    #[serde(default, rename = "type")]
    kind: String,
    rolling_update: Option<WireRollingUpdate>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireRollingUpdate {
    max_unavailable: Option<IntOrPercent>,
    max_surge: Option<IntOrPercent>,
}

impl From<WireStrategy> for UpdateStrategy {
    fn from(wire: WireStrategy) -> Self {
        if wire.kind == "OnDelete" {
            return Self::OnDelete;
        }
        let limits = wire.rolling_update.unwrap_or_default();
        Self::RollingUpdate {
            max_unavailable: limits.max_unavailable.unwrap_or(IntOrPercent::Int(1)),
            max_surge: limits.max_surge.unwrap_or(IntOrPercent::Int(0)),
        }
    }
}

/// `spec.template`: the whole JSON, with a typed view of the fields for placement and display.
#[derive(Clone, Debug, PartialEq)]
pub struct PodTemplate {
    /// The template as the API server serves it, or would after defaulting, but without null
    /// timestamps.
    raw: Arc<Value>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// The fields that decide on which nodes its pods run.
    pub placement: PodPlacement,
}

/// The PriorityClasses that every cluster has (upstream: `SystemPriorityClasses`).
const SYSTEM_PRIORITY_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

impl PodTemplate {
    /// The PriorityClass that has to exist for the pods to be created: `spec.priorityClassName`,
    /// unless it is empty or a class that every cluster has.
    pub fn needed_priority_class(&self) -> Option<&str> {
        let name = self.raw.pointer("/spec/priorityClassName")?.as_str()?;
        (!name.is_empty() && !SYSTEM_PRIORITY_CLASSES.contains(&name)).then_some(name)
    }

    /// Reads the typed view from a whole template.
    ///
    /// # Errors
    /// A field of the view has another type than in the API.
    pub fn from_json(mut raw: Value) -> Result<Self, serde_json::Error> {
        drop_null_timestamps(&mut raw);
        let view = TemplateView::deserialize(&raw)?;
        let spec = view.spec;
        let required = spec.affinity.and_then(|a| a.node_affinity).and_then(|a| a.required);
        Ok(Self {
            labels: view.metadata.unwrap_or_default().labels,
            placement: PodPlacement {
                node_name: spec.node_name.filter(|name| !name.is_empty()),
                node_selector: spec.node_selector,
                required_terms: required.map(|r| r.node_selector_terms),
                tolerations: spec.tolerations,
                host_network: spec.host_network,
            },
            raw: Arc::new(raw),
        })
    }

    /// Changes values in the raw template that are not in the view, such as those of env vars.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        change(Arc::make_mut(&mut self.raw));
    }

    /// The whole template.
    pub fn raw(&self) -> &Value {
        &self.raw
    }
}

impl<'de> Deserialize<'de> for PodTemplate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[derive(Deserialize)]
struct TemplateView {
    metadata: Option<MetadataView>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: SpecView,
}

#[derive(Default, Deserialize)]
struct MetadataView {
    #[serde(default)]
    labels: Labels,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecView {
    node_name: Option<NodeName>,
    node_selector: Labels,
    #[serde(deserialize_with = "null_as_default")]
    tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "null_as_default")]
    host_network: bool,
    affinity: Option<AffinityView>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AffinityView {
    node_affinity: Option<NodeAffinityView>,
}

#[derive(Deserialize)]
struct NodeAffinityView {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<RequiredView>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequiredView {
    #[serde(default, deserialize_with = "null_as_default")]
    node_selector_terms: Vec<NodeSelectorTerm>,
}

/// `status` of a DaemonSet: seven counters, and the generation that the controller has observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    /// The generation of the counters.
    pub observed_generation: i64,
    /// Nodes that should run a pod.
    pub desired_number_scheduled: u32,
    /// Nodes that should run a pod and do.
    pub current_number_scheduled: u32,
    /// Nodes that run a pod and should not.
    pub number_misscheduled: u32,
    /// Desired nodes whose pod is Ready.
    pub number_ready: u32,
    /// Desired nodes whose pod counts as updated by upstream's rule.
    pub updated_number_scheduled: u32,
    /// Desired nodes whose pod is available by upstream's rule.
    pub number_available: u32,
    /// Desired nodes without an available pod.
    pub number_unavailable: u32,
    /// Number of collisions of a revision's name with another template; part of the hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<u32>,
}

impl DaemonSetStatus {
    /// The counters as the API server serves them: the first three and `numberReady` always, the
    /// others only when they are not 0, as Go leaves out empty fields. `collisionCount` is none of
    /// them.
    pub fn served(&self) -> [(&'static str, Option<i64>); 8] {
        let Self {
            observed_generation,
            desired_number_scheduled,
            current_number_scheduled,
            number_misscheduled,
            number_ready,
            updated_number_scheduled,
            number_available,
            number_unavailable,
            collision_count: _,
        } = *self;
        let always = |count: u32| Some(i64::from(count));
        let unless_0 = |count: i64| Some(count).filter(|count| *count != 0);
        [
            ("currentNumberScheduled", always(current_number_scheduled)),
            ("desiredNumberScheduled", always(desired_number_scheduled)),
            ("numberMisscheduled", always(number_misscheduled)),
            ("numberReady", always(number_ready)),
            ("numberAvailable", unless_0(number_available.into())),
            ("numberUnavailable", unless_0(number_unavailable.into())),
            ("observedGeneration", unless_0(observed_generation)),
            ("updatedNumberScheduled", unless_0(updated_number_scheduled.into())),
        ]
    }
}

/// Whether the pods of a deleted DaemonSet are deleted too (upstream: `propagationPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Cascade {
    /// The garbage collector deletes them too.
    Background,
    /// They are kept, without an owner.
    Orphan,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_has_the_placement_fields_and_keeps_the_raw_template() {
        let raw = serde_json::json!({
            "metadata": {"labels": {"app": "a"}, "unknown": 1},
            "spec": {
                "nodeSelector": {"disk": "ssd"}, "hostNetwork": true, "nodeName": "",
                "affinity": {"nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
                }},
                "tolerations": null,
            }
        });
        let template = PodTemplate::from_json(raw.clone()).unwrap();
        assert_eq!(template.raw(), &raw);
        assert_eq!(template.placement.node_name, None);
        assert_eq!(template.placement.required_terms.as_deref().map(<[_]>::len), Some(1));
        assert!(template.placement.host_network && template.placement.tolerations.is_empty());
    }

    #[test]
    fn a_key_has_two_parts() {
        assert_eq!("a/b".parse(), Ok(DaemonSetKey::new("a", "b")));
        for text in ["", "a", "/b", "a/", "a/b/c"] {
            assert!(text.parse::<DaemonSetKey>().is_err(), "{text:?}");
        }
    }
}
