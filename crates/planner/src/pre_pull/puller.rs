//! The pod that makes a node pull images.
//!
//! It can do as little as possible: it starts nothing, has no token, no volumes and no requests, and
//! `PodSecurity` `restricted` accepts it. Only the network of the host is taken over from a template
//! that uses it: its namespace accepts that already, and such a pod starts also where the agent is
//! what makes the network of pods work.

use serde_json::{Map, Value, json};

use super::TemplateImages;
use daemonset::controller::pod::pod_spec;
use daemonset::model::{
    DaemonSetKey, NodeName, PRE_PULL_IMAGES_LABEL, PRE_PULL_LABEL, PodTemplate, PrePull,
    puller_label, puller_name,
};

/// A program that no image has.
const NO_PROGRAM: &str = "/ds-plan.dev/pre-pull/starts-nothing";

/// The user of its containers, which never run: `nobody`. Without one, a kubelet refuses images whose
/// own user is root, or has no number.
const NOBODY: u32 = 65_534;

/// Time after the timeout until its kubelet ends the pod, in seconds: the run may have been killed.
const LEFT_OVER: u32 = 60;

/// The fields of the template that decide whether and how its images can be pulled. Service accounts
/// may have pull secrets, runtimes their own stores of images.
const TAKEN_OVER: [&str; 5] =
    ["imagePullSecrets", "serviceAccountName", "hostNetwork", "runtimeClassName", "os"];

/// The puller of the images of a template on a node. The caller adds its owner, the Lease.
pub(crate) fn puller(
    daemon_set: &DaemonSetKey,
    template: &PodTemplate,
    node: &NodeName,
    pre_pull: PrePull,
) -> Value {
    let images = TemplateImages::of(template.raw());
    let digest = images.digest();
    let written = pod_spec(template);
    let taken_over = TAKEN_OVER.into_iter().filter_map(|field| Some((field, written.get(field)?)));
    let mut spec: Map<String, Value> =
        taken_over.map(|(field, value)| (field.to_owned(), value.clone())).collect();
    spec.insert("nodeName".to_owned(), json!(node));
    spec.insert("tolerations".to_owned(), written.get("tolerations").cloned().unwrap_or_default());
    spec.insert("restartPolicy".to_owned(), "Never".into());
    spec.insert("automountServiceAccountToken".to_owned(), false.into());
    spec.insert("enableServiceLinks".to_owned(), false.into());
    spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    let deadline = pre_pull.timeout.0.saturating_add(LEFT_OVER);
    spec.insert("activeDeadlineSeconds".to_owned(), deadline.into());
    // The server accepts no fields of Linux in a pod for Windows.
    let is_linux = spec.get("os").is_none_or(|os| os["name"] != "windows");
    if is_linux {
        let confined = json!({
            "runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        });
        spec.insert("securityContext".to_owned(), confined);
    }
    spec.insert("containers".to_owned(), containers(&images, is_linux));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": puller_name(&daemon_set.name, node, &digest),
            "namespace": daemon_set.namespace,
            "labels": {
                PRE_PULL_LABEL: puller_label(&daemon_set.name),
                PRE_PULL_IMAGES_LABEL: digest,
            },
        },
        "spec": spec,
    })
}

fn containers(images: &TemplateImages, is_linux: bool) -> Value {
    let container = |(at, it): (usize, &super::ImageToPull)| {
        let mut container = json!({
            "name": format!("image-{at}"),
            "image": it.image,
            "command": [NO_PROGRAM],
        });
        if is_linux {
            container["securityContext"] = json!({
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            });
        }
        if let Some(policy) = &it.policy {
            container["imagePullPolicy"] = policy.as_str().into();
        }
        container
    };
    images.iter().enumerate().map(container).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::model::Deadline;

    fn made(spec: &Value) -> Value {
        let template = PodTemplate::from_json(json!({
            "metadata": {"labels": {"app": "agent"}, "annotations": {"a": "b"}}, "spec": spec,
        }));
        let pre_pull = PrePull { parallel: 1, timeout: Deadline(600) };
        puller(&DaemonSetKey::new("ns", "agent"), &template.unwrap(), &"a".into(), pre_pull)
    }

    #[test]
    fn it_takes_over_what_decides_about_pulls_and_nothing_else() {
        let pod = made(&json!({
            "initContainers": [{"name": "i", "image": "setup:1", "command": ["sh"]}],
            "containers": [{
                "name": "c", "image": "agent:2", "imagePullPolicy": "Always",
                "ports": [{"hostPort": 80, "containerPort": 80}],
                "securityContext": {"privileged": true},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "resources": {"requests": {"cpu": "1"}},
                "envFrom": [{"secretRef": {"name": "s"}}],
            }],
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
            "hostPID": true, "hostNetwork": true, "priorityClassName": "system-node-critical",
            "imagePullSecrets": [{"name": "registry"}], "serviceAccountName": "agent",
            "nodeSelector": {"x": "y"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        }));
        let spec = pod["spec"].as_object().unwrap();
        let mut fields: Vec<&str> = spec.keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(
            fields,
            [
                "activeDeadlineSeconds",
                "automountServiceAccountToken",
                "containers",
                "enableServiceLinks",
                "hostNetwork",
                "imagePullSecrets",
                "nodeName",
                "restartPolicy",
                "securityContext",
                "serviceAccountName",
                "terminationGracePeriodSeconds",
                "tolerations",
            ]
        );
        assert_eq!((&spec["nodeName"], &spec["restartPolicy"]), (&json!("a"), &json!("Never")));
        assert_eq!(spec["automountServiceAccountToken"], false);
        assert_eq!(spec["activeDeadlineSeconds"], 660);
        let tolerations = spec["tolerations"].as_array().unwrap();
        assert_eq!(tolerations[0], json!({"key": "gpu", "operator": "Exists"}));
        assert!(tolerations.iter().any(|it| it["key"] == "node.kubernetes.io/unschedulable"));
        let containers = spec["containers"].as_array().unwrap();
        let images: Vec<&Value> = containers.iter().map(|it| &it["image"]).collect();
        assert_eq!(images, ["setup:1", "agent:2"]);
        assert_eq!(containers[1]["imagePullPolicy"], "Always");
        assert_eq!(containers[0].get("imagePullPolicy"), None);
        for container in containers {
            let mut fields: Vec<&str> =
                container.as_object().unwrap().keys().map(String::as_str).collect();
            fields.retain(|field| *field != "imagePullPolicy");
            fields.sort_unstable();
            assert_eq!(fields, ["command", "image", "name", "securityContext"]);
        }
    }

    #[test]
    fn it_has_no_label_of_the_template() {
        let pod = made(&json!({"containers": [{"name": "c", "image": "agent:2"}]}));
        let labels = pod["metadata"]["labels"].as_object().unwrap();
        assert_eq!(labels.keys().collect::<Vec<_>>(), [PRE_PULL_LABEL, PRE_PULL_IMAGES_LABEL]);
        assert_eq!(labels[PRE_PULL_LABEL], "agent");
        assert_eq!(pod["spec"].get("hostNetwork"), None);
    }

    #[test]
    fn on_windows_it_has_no_fields_of_linux() {
        let containers = json!([{"name": "c", "image": "agent:2"}]);
        let pod = made(&json!({"os": {"name": "windows"}, "containers": containers}));
        assert_eq!(pod["spec"]["os"]["name"], "windows");
        assert_eq!(pod["spec"].get("securityContext"), None);
        assert_eq!(pod["spec"]["containers"][0].get("securityContext"), None);
    }

    /// The fields that `PodSecurity` of level `restricted` requires.
    #[test]
    fn the_level_restricted_accepts_it() {
        let pod = made(&json!({"containers": [{"name": "c", "image": "agent:2"}]}));
        let (of_pod, of_container) =
            (&pod["spec"]["securityContext"], &pod["spec"]["containers"][0]["securityContext"]);
        assert_eq!(of_pod["runAsNonRoot"], true);
        assert_eq!(of_pod["seccompProfile"]["type"], "RuntimeDefault");
        assert!(of_pod["runAsUser"].as_u64().is_some_and(|user| user > 0));
        assert_eq!(of_container["allowPrivilegeEscalation"], false);
        assert_eq!(of_container["capabilities"]["drop"], json!(["ALL"]));
    }
}
