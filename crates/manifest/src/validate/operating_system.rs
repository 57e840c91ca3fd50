//! The operating system of a pod, and the fields that are forbidden for it (upstream: `validateOS`,
//! `validateLinux`, `validateWindows`).

use super::at::At;
use super::context::visit_containers;
use super::rules::Rule::{self, Check, Forbidden};
use super::rules::Rules;

const NOT_ON_WINDOWS: Rule = Forbidden("cannot be set for a windows pod");
/// The same for a field that Go does not have a pointer for, where `false` and an empty list count
/// as unset.
const EMPTY_ON_WINDOWS: Rule = Check(|field| {
    if field.is_true() || !field.is_empty() && !field.json().is_boolean() {
        field.check(NOT_ON_WINDOWS);
    }
});

/// A Windows pod, in upstream's order.
const WINDOWS_POD: Rules = &[
    ("securityContext.appArmorProfile", NOT_ON_WINDOWS),
    ("securityContext.seLinuxOptions", NOT_ON_WINDOWS),
    ("hostUsers", NOT_ON_WINDOWS),
    ("hostPID", EMPTY_ON_WINDOWS),
    ("hostIPC", EMPTY_ON_WINDOWS),
    ("securityContext.seccompProfile", NOT_ON_WINDOWS),
    ("securityContext.fsGroup", NOT_ON_WINDOWS),
    ("securityContext.fsGroupChangePolicy", NOT_ON_WINDOWS),
    ("securityContext.sysctls", EMPTY_ON_WINDOWS),
    ("shareProcessNamespace", NOT_ON_WINDOWS),
    ("securityContext.runAsUser", NOT_ON_WINDOWS),
    ("securityContext.runAsGroup", NOT_ON_WINDOWS),
    ("securityContext.supplementalGroups", NOT_ON_WINDOWS),
    ("securityContext.supplementalGroupsPolicy", NOT_ON_WINDOWS),
    ("securityContext.seLinuxChangePolicy", NOT_ON_WINDOWS),
];

/// The security context of a Windows container.
const WINDOWS_SECURITY_CONTEXT: Rules = &[
    ("appArmorProfile", NOT_ON_WINDOWS),
    ("seLinuxOptions", NOT_ON_WINDOWS),
    ("seccompProfile", NOT_ON_WINDOWS),
    ("capabilities", NOT_ON_WINDOWS),
    ("readOnlyRootFilesystem", NOT_ON_WINDOWS),
    ("privileged", NOT_ON_WINDOWS),
    ("allowPrivilegeEscalation", NOT_ON_WINDOWS),
    ("procMount", NOT_ON_WINDOWS),
    ("runAsUser", NOT_ON_WINDOWS),
    ("runAsGroup", NOT_ON_WINDOWS),
];

/// Validates `os`, and the pod's fields for it.
pub(super) fn check(pod: &At<'_>) {
    let Some(os) = pod.find("os") else { return };
    let name = os.get("name");
    match name.text() {
        "" => name.required(""),
        "linux" => {
            for holder in std::iter::once(pod).chain(&visit_containers(pod)) {
                let options = holder.nested("securityContext.windowsOptions");
                options.check(Forbidden("windows options cannot be set for a linux pod"));
            }
        }
        "windows" => {
            pod.check_fields(WINDOWS_POD);
            for container in visit_containers(pod) {
                container.get("securityContext").check_fields(WINDOWS_SECURITY_CONTEXT);
            }
        }
        _unknown => name.reported_at(os.path()).not_supported(&["linux", "windows"]),
    }
}
