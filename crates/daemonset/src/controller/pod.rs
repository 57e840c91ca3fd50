//! The pod that the controller creates for a node (upstream: `CreatePodTemplate`,
//! `ReplaceDaemonSetPodNodeNameNodeAffinity`, `GetPodFromTemplate`).
//!
//! Pods are whole JSON, so no field of the template is lost. Changes by the API server and its
//! admission plugins are not included.

use serde_json::{Map, Value, json};

use super::Owner;
use super::tolerations::{self, PodToleration};
use super::updated::CurrentTemplate;
use crate::model::{NodeName, PodTemplate, REVISION_HASH_LABEL, TEMPLATE_GENERATION_LABEL};

/// Creates the pods of one DaemonSet, which differ only in their affinity.
#[derive(Clone, Debug)]
pub struct PodMaker {
    metadata: Value,
    spec: Map<String, Value>,
}

impl PodMaker {
    /// Pods of the owner's template, labelled as `current`.
    ///
    /// Labels, annotations and finalizers are copied from the template's metadata. Without a uid of
    /// the owner, the pods have no owner reference.
    pub fn new(owner: &Owner<'_>, current: &CurrentTemplate) -> Self {
        let template = owner.spec.template.raw();
        let spec = pod_spec(&owner.spec.template);
        Self { metadata: metadata(owner, current, &template["metadata"]), spec }
    }

    /// The pod for `node`. `spec.nodeName` is not set: the scheduler binds the pod to the only node
    /// that its affinity allows.
    pub fn pod_for(&self, node: &NodeName) -> Value {
        let mut spec = self.spec.clone();
        let affinity = spec.entry("affinity").or_insert(Value::Null);
        aim(affinity, node);
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
        pod["metadata"] = self.metadata.clone();
        pod["spec"] = spec.into();
        pod
    }
}

/// `generateName` is `<DaemonSet>-`; upstream's fallback without the dash cannot occur with a valid
/// name. The API server cuts it to 58 characters and adds 5.
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
    if let Some(reference) = owner.reference() {
        metadata["ownerReferences"] = json!([reference]);
    }
    metadata
}

/// The spec of the pods of a template: with the automatic tolerations, for no node yet.
pub fn pod_spec(template: &PodTemplate) -> Map<String, Value> {
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

/// Replaces required node affinity by one term with the node's name. Preferred terms and pod
/// (anti-)affinity are kept.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::Cluster;

    /// The pod for `host_1` from a template with this spec.
    fn made(spec: Value) -> Value {
        let mut cluster = Cluster::of(0);
        cluster.edit(|whole| whole["template"]["spec"] = spec);
        let current = CurrentTemplate::new("5cf4f4fb99".into(), Some(7));
        PodMaker::new(&Owner::from(&cluster.daemon_set), &current).pod_for(&"host_1".into())
    }

    #[test]
    fn replace_daemon_set_pod_node_name_node_affinity() {
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let terms =
            |terms: Value| json!({"nodeAffinity": {required: {"nodeSelectorTerms": terms}}});
        let on_field = |operator: &str, values: Value| {
            json!([{"matchFields":
                [{"key": "metadata.name", "operator": operator, "values": values}]}])
        };
        let aimed = terms(on_field("In", json!(["host_1"])));
        let hostname = json!({"matchExpressions":
            [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["host_1"]}]});
        let preferred = json!([{"weight": 1, "preference": hostname}]);
        let other_field = json!([{"matchFields": [{"key": "metadata.foo", "operator": "In", "values": ["bar"]}]}]);
        let pod_affinity = json!({"podAntiAffinity": {"x": 1}});
        let preferring = |aimed: &Value| {
            let mut affinity = aimed.clone();
            let key = "preferredDuringSchedulingIgnoredDuringExecution";
            affinity["nodeAffinity"][key] = preferred.clone();
            affinity
        };
        let mut with_pod_affinity = aimed.clone();
        with_pod_affinity["podAntiAffinity"] = json!({"x": 1});
        for (name, affinity, want) in [
            ("null", Value::Null, &aimed),
            ("required expressions", terms(json!([hostname])), &aimed),
            ("preferred only", preferring(&json!({"nodeAffinity": {}})), &preferring(&aimed)),
            ("a field, two values", terms(on_field("In", json!(["host_1", "host_2"]))), &aimed),
            ("empty", json!({}), &aimed),
            (
                "an expression and a field",
                terms(json!([hostname, on_field("In", json!(["host_2"]))[0]])),
                &aimed,
            ),
            ("a field that is excluded", terms(on_field("NotIn", json!(["host_2"]))), &aimed),
            ("another field", terms(other_field), &aimed),
            ("pod affinity is kept", pod_affinity, &with_pod_affinity),
        ] {
            let pod = made(json!({"affinity": affinity}));
            assert_eq!(&pod["spec"]["affinity"], want, "{name}");
        }
    }

    #[test]
    fn the_whole_pod() {
        let mut cluster = Cluster::of(0);
        cluster.edit(|spec| {
            spec["template"] = json!({
                "metadata": {
                    "name": "ignored", "namespace": "ignored", "creationTimestamp": null,
                    "labels": {"name": "simple-daemon", "controller-revision-hash": "forged"},
                    "annotations": {"a": "b"}, "finalizers": ["x/y"],
                },
                "spec": {
                    "containers": [{"name": "c", "futureField": {"kept": true}}],
                    "nodeSelector": {"disk": "ssd"},
                    "tolerations": [
                        {"key": "gpu", "operator": "Exists", "futureField": 1},
                        {"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                         "effect": "NoExecute", "tolerationSeconds": 30},
                    ],
                },
            });
        });
        let current = CurrentTemplate::new("5cf4f4fb99".into(), Some(7));
        let owner = Owner::from(&cluster.daemon_set);
        let automatic = |name: &str, effect: &str| {
            let key = format!("node.kubernetes.io/{name}");
            json!({"key": key, "operator": "Exists", "effect": effect})
        };
        let want = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "generateName": "foo-", "namespace": "default",
                "labels": {
                    "name": "simple-daemon", "controller-revision-hash": "5cf4f4fb99",
                    "pod-template-generation": "7",
                },
                "annotations": {"a": "b"}, "finalizers": ["x/y"],
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "foo", "uid": "uid-foo",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": [{"name": "c", "futureField": {"kept": true}}],
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [
                    {"key": "gpu", "operator": "Exists", "futureField": 1},
                    automatic("not-ready", "NoExecute"),
                    automatic("unreachable", "NoExecute"),
                    automatic("disk-pressure", "NoSchedule"),
                    automatic("memory-pressure", "NoSchedule"),
                    automatic("pid-pressure", "NoSchedule"),
                    automatic("unschedulable", "NoSchedule"),
                ],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchFields":
                        [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}],
                }}},
            },
        });
        assert_eq!(PodMaker::new(&owner, &current).pod_for(&"n".into()), want);

        let unborn = Owner { uid: None, ..owner };
        let pod = PodMaker::new(&unborn, &current).pod_for(&"n".into());
        assert_eq!(pod["metadata"].get("ownerReferences"), None);
        assert_eq!(pod["metadata"]["generateName"], "foo-");
    }

    #[test]
    fn labels_without_hash_or_generation_are_the_templates() {
        // TestCreatePodTemplate: neither is added when it is not known.
        let cluster = Cluster::of(0);
        let current = CurrentTemplate::new("".into(), None);
        let owner = Owner::from(&cluster.daemon_set);
        let pod = PodMaker::new(&owner, &current).pod_for(&"n".into());
        assert_eq!(pod["metadata"]["labels"], json!({"name": "simple-daemon"}));
    }
}
