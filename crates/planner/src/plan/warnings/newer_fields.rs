//! Fields of a template, and values of them, that the server is too old for (upstream:
//! `dropDisabledFields` of `pkg/api/pod`, the types of each version, and, for the values,
//! `validateInitContainerRestartPolicy` and `validateContainerRestartPolicy`).
//!
//! Defaults and validation are those of the newest version, and so is the planned template. An
//! older server drops the fields whose feature gate is off there, or refuses them; the revision is
//! then not the planned one. Not here: fields that the newest version drops too (`manifest`), and
//! the versions before 1.31, which were not compared.

use serde_json::Value;

use super::minor;
use crate::plan::document::Warning;
use daemonset::model::{ClusterInfo, DesiredDaemonSet};

/// A field of a pod's `spec`; `*` is any element of a list, and `name=value` any whose field `name`
/// has this value. With the first minor version that keeps it by default.
type Field = (&'static [&'static str], u32);

/// Fields that 1.36 keeps by default and 1.31 does not.
const FIELDS: [Field; 23] = [
    // PodLevelResources
    (&["resources"], 34),
    // HostnameOverride
    (&["hostnameOverride"], 35),
    // UserNamespacesSupport
    (&["hostUsers"], 33),
    // DynamicResourceAllocation
    (&["resourceClaims"], 34),
    (&["containers", "*", "resources", "claims"], 34),
    (&["initContainers", "*", "resources", "claims"], 34),
    // SupplementalGroupsPolicy
    (&["securityContext", "supplementalGroupsPolicy"], 33),
    // SELinuxChangePolicy
    (&["securityContext", "seLinuxChangePolicy"], 33),
    // ContainerRestartRules; before, only init containers have a restartPolicy
    (&["containers", "*", "restartPolicy"], 35),
    (&["containers", "*", "restartPolicyRules"], 35),
    (&["initContainers", "*", "restartPolicyRules"], 35),
    // The same gate; before, the only value is Always
    (&["initContainers", "restartPolicy=Never"], 35),
    (&["initContainers", "restartPolicy=OnFailure"], 35),
    // RestartAllContainersOnContainerExits, which also lets sidecars have rules
    (&["containers", "*", "restartPolicyRules", "action=RestartAllContainers"], 36),
    (&["initContainers", "*", "restartPolicyRules", "action=RestartAllContainers"], 36),
    (&["initContainers", "restartPolicy=Always", "restartPolicyRules"], 36),
    // InPlacePodVerticalScaling
    (&["containers", "*", "resizePolicy"], 33),
    (&["initContainers", "*", "resizePolicy"], 33),
    // EnvFiles
    (&["containers", "*", "env", "*", "valueFrom", "fileKeyRef"], 35),
    (&["initContainers", "*", "env", "*", "valueFrom", "fileKeyRef"], 35),
    // ProcMountType
    (&["containers", "*", "securityContext", "procMount"], 33),
    (&["initContainers", "*", "securityContext", "procMount"], 33),
    // ImageVolume
    (&["volumes", "*", "image"], 35),
];

/// A warning when the template has fields or values that the server does not keep by default.
pub(in crate::plan) fn warning(
    desired: &DesiredDaemonSet,
    cluster: &ClusterInfo,
) -> Option<Warning> {
    let version = cluster.version.as_deref()?;
    let server = minor(version)?;
    let spec = desired.raw.pointer("/spec/template/spec")?;
    let newer = FIELDS.iter().filter(|(path, since)| *since > server && has(spec, path));
    let found: Vec<String> =
        newer.map(|(path, since)| format!("{} (1.{since})", shown(path))).collect();
    (!found.is_empty()).then(|| Warning {
        code: "newerFields".to_owned(),
        message: format!(
            "the server is Kubernetes {version}, which by default drops or refuses fields and \
             values of newer versions: {}",
            found.join(", ")
        ),
        daemon_set: Some(desired.key.to_string()),
        nodes: Vec::new(),
    })
}

/// Whether any field at `path` is set.
fn has(value: &Value, path: &[&str]) -> bool {
    let Some((part, rest)) = path.split_first() else { return true };
    let mut elements = value.as_array().into_iter().flatten();
    match part.split_once('=') {
        Some((name, text)) => {
            elements.any(|it| it.get(name).and_then(Value::as_str) == Some(text) && has(it, rest))
        }
        None if *part == "*" => elements.any(|it| has(it, rest)),
        None => value.get(part).is_some_and(|it| has(it, rest)),
    }
}

/// `spec.template.spec.containers[*].resizePolicy`.
fn shown(path: &[&str]) -> String {
    path.iter().fold("spec.template.spec".to_owned(), |shown, part| {
        if *part == "*" || part.contains('=') {
            format!("{shown}[{part}]")
        } else {
            format!("{shown}.{part}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_is_found_in_any_element_of_a_list() {
        let spec = json!({"containers": [{"name": "a"}, {"env": [{}, {"valueFrom": {}}]}]});
        for (path, expected) in [
            (&["containers", "*", "env", "*", "valueFrom"][..], true),
            (&["containers", "*", "env", "*", "value"], false),
            (&["containers", "name"], false),
            (&["containers", "*", "name", "*"], false),
            (&["volumes", "*", "image"], false),
        ] {
            assert_eq!(has(&spec, path), expected, "{path:?}");
        }
        assert_eq!(shown(&["volumes", "*", "image"]), "spec.template.spec.volumes[*].image");
    }

    #[test]
    fn a_value_is_found_in_any_element_of_a_list() {
        let rules = json!([{"action": "Restart"}, {"action": "RestartAllContainers"}]);
        let spec = json!({
            "containers": [{"name": "a", "restartPolicyRules": rules}],
            "initContainers": [
                {"name": "b", "restartPolicy": "Always"},
                {"name": "c", "restartPolicy": "Never", "restartPolicyRules": []},
            ],
        });
        for (path, expected) in [
            (&["containers", "*", "restartPolicyRules", "action=RestartAllContainers"][..], true),
            (&["containers", "*", "restartPolicyRules", "action=Restart"], true),
            (&["containers", "*", "restartPolicyRules", "action=Stop"], false),
            (&["containers", "action=Restart"], false),
            (&["containers", "restartPolicyRules=Restart"], false),
            (&["initContainers", "restartPolicy=Never"], true),
            (&["initContainers", "restartPolicy=OnFailure"], false),
            // The value and the field have to be those of one element.
            (&["initContainers", "restartPolicy=Never", "restartPolicyRules"], true),
            (&["initContainers", "restartPolicy=Always", "restartPolicyRules"], false),
        ] {
            assert_eq!(has(&spec, path), expected, "{path:?}");
        }
        assert_eq!(
            shown(&["initContainers", "restartPolicy=Always", "restartPolicyRules"]),
            "spec.template.spec.initContainers[restartPolicy=Always].restartPolicyRules"
        );
    }
}
