//! Security contexts of pods and containers: users, sysctls, seccomp, `AppArmor` (upstream:
//! `validatePodSpecSecurityContext`, `ValidateSecurityContext`). Privileged containers are allowed.

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::go_text::json_struct;
use super::{names, paths, windows};

/// Largest user and group id that the kernel and the container runtimes support.
const MAX_ID: i64 = i32::MAX as i64;
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// `PATH_MAX` without the terminating zero.
const APP_ARMOR_PROFILE_MAX: usize = 4095;

/// Validates the pod's security context.
pub(super) fn check_pod(pod: &At<'_>, errors: &mut Errors) {
    let context = pod.get("securityContext");
    for id in ["fsGroup", "runAsUser", "runAsGroup"] {
        context.get(id).within(0, MAX_ID, errors);
    }
    for group in context.get("supplementalGroups").items() {
        group.within(0, MAX_ID, errors);
    }
    check_shared_processes(pod, errors);
    check_sysctls(pod, &context.get("sysctls"), errors);
    context.get("fsGroupChangePolicy").one_of_if_set(&["Always", "OnRootMismatch"], errors);
    check_seccomp(&context.get("seccompProfile"), errors);
    windows::check_options(&context.get("windowsOptions"), errors);
    check_app_armor(&context.get("appArmorProfile"), errors);
    context.get("supplementalGroupsPolicy").one_of_if_set(&["Merge", "Strict"], errors);
    // `MountOption` belongs to the feature gate SELinuxMount, which is off by default.
    context.get("seLinuxChangePolicy").one_of_if_set(&["Recursive"], errors);
}

/// Validates `shareProcessNamespace`; the error is reported inside the security context, although
/// the field is outside of it.
fn check_shared_processes(pod: &At<'_>, errors: &mut Errors) {
    let shared = pod.get("shareProcessNamespace");
    if shared.is_true() && pod.get("hostPID").is_true() {
        let path = pod.get("securityContext").path_of("shareProcessNamespace");
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(shared.reported_at(path).invalid(why));
    }
}

fn check_sysctls(pod: &At<'_>, sysctls: &At<'_>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.get("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !names::is_sysctl(name.text()) {
            errors.push(name.invalid(&format!(
                "must have at most {} characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?\
                 [\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                names::SUBDOMAIN_MAX
            )));
        } else if taken.contains(name.text()) {
            errors.push(name.duplicate());
        }
        check_host_sysctl(pod, &name, errors);
        taken.insert(name.text());
    }
}

/// Rejects a sysctl of a namespace that the pod shares with the node, because it would change the
/// node.
fn check_host_sysctl(pod: &At<'_>, name: &At<'_>, errors: &mut Errors) {
    let sysctl = with_dots(name.text());
    let is_of_ipc = sysctl.starts_with("fs.mqueue.")
        || [
            "sem",
            "shmall",
            "shmmax",
            "shmmni",
            "shm_rmid_forced",
            "shm",
            "msgmax",
            "msgmnb",
            "msgmni",
            "msg",
        ]
        .iter()
        .any(|known| sysctl.strip_prefix("kernel.") == Some(*known));
    if pod.get("hostNetwork").is_true() && sysctl.starts_with("net.") {
        errors.push(name.invalid("may not be specified when 'hostNetwork' is true"));
    } else if pod.get("hostIPC").is_true() && is_of_ipc {
        errors.push(name.invalid("may not be specified when 'hostIPC' is true"));
    }
}

/// Normalises a sysctl: if its first separator is a slash, slashes and dots are swapped (upstream:
/// `NormalizeName`); the text after a star does not matter.
fn with_dots(sysctl: &str) -> String {
    let swapped = sysctl.chars().map(|c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    });
    let dotted = match sysctl.find(['.', '/']) {
        Some(first) if sysctl[first..].starts_with('/') => swapped.collect(),
        Some(_) | None => sysctl.to_owned(),
    };
    dotted.split('*').next().unwrap_or_default().to_owned()
}

fn check_seccomp(profile: &At<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    if kind.is_empty() {
        errors.push(kind.required("type is required when seccompProfile is set"));
    } else {
        kind.one_of(&PROFILE_TYPES, errors);
    }
    match (kind.text() == "Localhost", file.is_set()) {
        (true, true) => paths::local_descending(&file, errors),
        (true, false) => errors.push(file.required("must be set when seccomp type is Localhost")),
        (false, true) => {
            let why = "can only be set when seccomp type is Localhost";
            errors.push(file.invalid_as(profile_json(profile), why));
        }
        (false, false) => {}
    }
}

fn check_app_armor(profile: &At<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, name) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "Localhost" => check_app_armor_name(&name, errors),
        "RuntimeDefault" | "Unconfined" if name.is_set() => {
            errors.push(name.invalid_json("can only be set when AppArmor type is Localhost"));
        }
        "RuntimeDefault" | "Unconfined" => {}
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _unknown => errors.push(kind.not_supported(&PROFILE_TYPES)),
    }
}

fn check_app_armor_name(name: &At<'_>, errors: &mut Errors) {
    if name.text().trim() != name.text() {
        errors.push(name.invalid("must not be padded with whitespace"));
    } else if name.is_empty() {
        errors.push(name.required("must be set when AppArmor type is Localhost"));
    }
    if name.text().len() > APP_ARMOR_PROFILE_MAX {
        errors.push(name.too_long(APP_ARMOR_PROFILE_MAX));
    }
}

/// Validates a container's security context.
pub(super) fn check(context: &At<'_>, host_users: bool, errors: &mut Errors) {
    for id in ["runAsUser", "runAsGroup"] {
        context.get(id).within(0, MAX_ID, errors);
    }
    let proc_mount = context.get("procMount");
    proc_mount.one_of_if_set(&["Default", "Unmasked"], errors);
    if host_users && proc_mount.text() == "Unmasked" {
        errors.push(proc_mount.invalid_json("`hostUsers` must be false to use `Unmasked`"));
    }
    check_seccomp(&context.get("seccompProfile"), errors);
    check_escalation(context, errors);
    windows::check_options(&context.get("windowsOptions"), errors);
    check_app_armor(&context.get("appArmorProfile"), errors);
}

/// Validates that privileges are not combined with `allowPrivilegeEscalation: false`.
fn check_escalation(context: &At<'_>, errors: &mut Errors) {
    let escalation = context.get("allowPrivilegeEscalation");
    if !escalation.is_set() || escalation.is_true() {
        return;
    }
    if context.get("privileged").is_true() {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(context.invalid_as(context_json(context), why));
    }
    let added = context.get("capabilities").get("add").texts();
    for _admin in added.iter().filter(|name| **name == "CAP_SYS_ADMIN") {
        let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                   CAP_SYS_ADMIN";
        errors.push(context.invalid_as(context_json(context), why));
    }
}

/// The security context as upstream prints its internal struct, whose fields have Go's names.
fn context_json(context: &At<'_>) -> String {
    let plain = |name| pointer(context, name, At::marshalled);
    let profile = |name| pointer(context, name, profile_json);
    json_struct(&[
        (
            "Capabilities",
            pointer(context, "capabilities", |capabilities| {
                let list = |name| pointer(capabilities, name, At::marshalled);
                json_struct(&[("Add", list("add")), ("Drop", list("drop"))])
            }),
        ),
        ("Privileged", plain("privileged")),
        (
            "SELinuxOptions",
            pointer(context, "seLinuxOptions", |options| {
                let text = |name| options.get(name).marshalled();
                json_struct(&[
                    ("User", text("user")),
                    ("Role", text("role")),
                    ("Type", text("type")),
                    ("Level", text("level")),
                ])
            }),
        ),
        ("WindowsOptions", pointer(context, "windowsOptions", windows::options_json)),
        ("RunAsUser", plain("runAsUser")),
        ("RunAsGroup", plain("runAsGroup")),
        ("RunAsNonRoot", plain("runAsNonRoot")),
        ("ReadOnlyRootFilesystem", plain("readOnlyRootFilesystem")),
        ("AllowPrivilegeEscalation", plain("allowPrivilegeEscalation")),
        ("ProcMount", plain("procMount")),
        ("SeccompProfile", profile("seccompProfile")),
        ("AppArmorProfile", profile("appArmorProfile")),
    ])
}

fn profile_json(profile: &At<'_>) -> String {
    let file = pointer(profile, "localhostProfile", At::marshalled);
    json_struct(&[("Type", profile.get("type").marshalled()), ("LocalhostProfile", file)])
}

/// A field that is a pointer in Go, as JSON.
pub(super) fn pointer<'a>(holder: &At<'a>, name: &str, json: impl Fn(&At<'a>) -> String) -> String {
    holder.find(name).map_or_else(|| "null".to_owned(), |value| json(&value))
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("security_context.yaml"));
    }
}
