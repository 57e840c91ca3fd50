//! The operating system of a pod, and the fields that are forbidden for it (upstream: `validateOS`,
//! `validateLinux`, `validateWindows`).

use super::at::{At, Errors};
use super::containers::visit_all;

/// Fields that are forbidden for a Windows pod, in upstream's order: the path in the manifest, and
/// the name in the error.
const NOT_ON_WINDOWS: [&str; 15] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];

/// Forbidden fields of the security context of a Windows container.
const NOT_IN_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates `os`, and the pod's fields for it.
pub(super) fn check(pod: &At<'_>, errors: &mut Errors) {
    let Some(os) = pod.find("os") else { return };
    let name = os.get("name");
    match name.text() {
        "" => errors.push(name.required("")),
        "linux" => check_linux(pod, errors),
        "windows" => check_windows(pod, errors),
        _unknown => {
            let name = name.reported_at(os.path());
            errors.push(name.not_supported(&["linux", "windows"]));
        }
    }
}

fn check_linux(pod: &At<'_>, errors: &mut Errors) {
    for holder in std::iter::once(pod).chain(&visit_all(pod)) {
        if let Some(options) = holder.get("securityContext").find("windowsOptions") {
            errors.push(options.forbidden("windows options cannot be set for a linux pod"));
        }
    }
}

fn check_windows(pod: &At<'_>, errors: &mut Errors) {
    let why = "cannot be set for a windows pod";
    for path in NOT_ON_WINDOWS {
        let field = path.split('.').fold(pod.clone(), |at, name| at.get(name));
        // `false` counts as unset where Go does not have a pointer.
        let is_set = match path {
            "hostPID" | "hostIPC" => field.is_true(),
            "securityContext.sysctls" => !field.is_empty(),
            _pointer_or_list => field.is_set(),
        };
        if is_set {
            errors.push(field.forbidden(why));
        }
    }
    for container in visit_all(pod) {
        for field in NOT_IN_WINDOWS_CONTAINERS {
            if let Some(field) = container.get("securityContext").find(field) {
                errors.push(field.forbidden(why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("operating_system.yaml"));
    }
}
