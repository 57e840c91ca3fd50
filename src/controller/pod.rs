//! The pod that the controller creates for a node (upstream: `CreatePodTemplate`,
//! `ReplaceDaemonSetPodNodeNameNodeAffinity`, `GetPodFromTemplate`).
//!
//! Whole JSON, so nothing of the template is lost. What the API server and its admission plugins
//! add to every pod is not here.

use serde_json::{Map, Value, json};

use super::Owner;
use super::owner::KIND;
use super::tolerations::{self, PodToleration};
use super::updated::CurrentTemplate;
use crate::model::{NodeName, REVISION_HASH_LABEL, TEMPLATE_GENERATION_LABEL};

/// Makes the pods of one DaemonSet; only the affinity differs from node to node.
#[derive(Clone, Debug)]
pub struct PodMaker {
    metadata: Value,
    spec: Map<String, Value>,
}

impl PodMaker {
    /// Pods of the owner's template, labelled as `current`.
    ///
    /// Of the template's metadata, labels, annotations and finalizers are taken. While the owner
    /// has no uid, the pods carry no owner reference.
    pub fn new(owner: &Owner<'_>, current: &CurrentTemplate) -> Self {
        let template = owner.spec.template.raw();
        Self { metadata: metadata(owner, current, &template["metadata"]), spec: spec(owner) }
    }

    /// The pod for `node`. `spec.nodeName` stays unset: the scheduler binds the pod, and the
    /// affinity leaves it no choice.
    pub fn pod_for(&self, node: &NodeName) -> Value {
        let mut spec = self.spec.clone();
        let affinity = spec.entry("affinity").or_insert(Value::Null);
        aim(affinity, node);
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": self.metadata, "spec": spec})
    }
}

/// `generateName` is `<DaemonSet>-`; the fallback without the dash that upstream has cannot be
/// reached with a valid name. The API server cuts it to 58 characters and adds 5.
fn metadata(owner: &Owner<'_>, current: &CurrentTemplate, template: &Value) -> Value {
    let name = owner.key.name.as_str();
    let mut labels = object(&template["labels"]);
    if let Some(generation) = current.generation() {
        labels.insert(TEMPLATE_GENERATION_LABEL.to_owned(), generation.into());
    }
    if !current.hash().is_empty() {
        labels.insert(REVISION_HASH_LABEL.to_owned(), current.hash().as_str().into());
    }
    let mut metadata = json!({
        "generateName": format!("{name}-"),
        "namespace": owner.key.namespace,
        "labels": labels,
    });
    for key in ["annotations", "finalizers"] {
        if !template[key].is_null() {
            metadata[key] = template[key].clone();
        }
    }
    if let Some(uid) = owner.uid {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": KIND, "name": name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
    }
    metadata
}

fn spec(owner: &Owner<'_>) -> Map<String, Value> {
    let template = &owner.spec.template;
    let mut spec = object(&template.raw()["spec"]);
    let written = spec.remove("tolerations").unwrap_or_default();
    let tolerations = tolerations::of_pod(&template.placement).into_iter().map(|toleration| {
        match toleration {
            // As written, unknown fields included.
            PodToleration::Template(at, _) => written[at].clone(),
            PodToleration::Automatic(key, effect) => {
                json!({"key": key, "operator": "Exists", "effect": effect})
            }
        }
    });
    spec.insert("tolerations".to_owned(), tolerations.collect());
    spec
}

/// Replaces required node affinity by one term that names the node. Preferred terms and pod
/// (anti-)affinity stay.
fn aim(affinity: &mut Value, node: &NodeName) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let mut place = affinity;
    for key in ["nodeAffinity", required, "nodeSelectorTerms"] {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[key];
    }
    *place = json!([{
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}],
    }]);
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
