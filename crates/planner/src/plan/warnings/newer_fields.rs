//! Fields of a template that the server is too old for (upstream: `dropDisabledFields` of
//! `pkg/api/pod`, and the types of each version).
//!
//! Defaults and validation are those of the newest version, and so is the planned template. An
//! older server drops the fields whose feature gate is off there, or refuses them; the revision is
//! then not the planned one. Not here: fields that the newest version drops too (`manifest`), and
//! the versions before 1.31, which were not compared.

use serde_json::Value;

use super::minor;
use crate::plan::document::Warning;
use daemonset::model::{ClusterInfo, DesiredDaemonSet};

/// A field of a pod's `spec`; `*` is any element of a list. With the first minor version that keeps
/// it by default.
type Field = (&'static [&'static str], u32);

/// Fields that 1.36 keeps by default and 1.31 does not.
const FIELDS: [Field; 18] = [
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

/// A warning when the template has fields that the server does not keep by default.
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
            "the server is Kubernetes {version}, which by default drops or refuses fields of newer \
             versions: {}",
            found.join(", ")
        ),
        daemon_set: Some(desired.key.to_string()),
        nodes: Vec::new(),
    })
}

/// Whether any field at `path` is set.
fn has(value: &Value, path: &[&str]) -> bool {
    match path {
        [] => true,
        ["*", rest @ ..] => value.as_array().is_some_and(|all| all.iter().any(|it| has(it, rest))),
        [name, rest @ ..] => value.get(name).is_some_and(|it| has(it, rest)),
    }
}

/// `spec.template.spec.containers[*].resizePolicy`.
fn shown(path: &[&str]) -> String {
    path.iter().fold("spec.template.spec".to_owned(), |shown, part| match *part {
        "*" => shown + "[*]",
        name => shown + "." + name,
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
}
