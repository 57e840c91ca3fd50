//! Security contexts of pods and containers: users, sysctls, seccomp, `AppArmor` (upstream:
//! `validatePodSpecSecurityContext`, `ValidateSecurityContext`). Privileged containers are allowed.

use std::collections::BTreeSet;

use super::at::At;
use super::formats::{self, local_descending_path};
use super::go_text::GoType::Struct;
use super::go_text::{GoStruct, POINTER, STRING, json_struct};
use super::operating_system::{WINDOWS_OPTIONS, check_windows_options};
use super::rules::Rule::{self, Check, Follows, OneOf, OneOfIfSet, Within};

/// A user or group id that the kernel and the container runtimes support.
const ID: Rule = Within(0, i32::MAX);
const PROFILE_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
/// `PATH_MAX` without the terminating zero.
const APP_ARMOR_PROFILE_MAX: usize = 4095;

const SECCOMP_PROFILE: GoStruct =
    &[("Type", "type", STRING), ("LocalhostProfile", "localhostProfile", POINTER)];
const CAPABILITIES: GoStruct = &[("Add", "add", POINTER), ("Drop", "drop", POINTER)];
const SE_LINUX_OPTIONS: GoStruct = &[
    ("User", "user", STRING),
    ("Role", "role", STRING),
    ("Type", "type", STRING),
    ("Level", "level", STRING),
];
const SECURITY_CONTEXT: GoStruct = &[
    ("Capabilities", "capabilities", Struct(CAPABILITIES)),
    ("Privileged", "privileged", POINTER),
    ("SELinuxOptions", "seLinuxOptions", Struct(SE_LINUX_OPTIONS)),
    ("WindowsOptions", "windowsOptions", Struct(WINDOWS_OPTIONS)),
    ("RunAsUser", "runAsUser", POINTER),
    ("RunAsGroup", "runAsGroup", POINTER),
    ("RunAsNonRoot", "runAsNonRoot", POINTER),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", POINTER),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", POINTER),
    ("ProcMount", "procMount", POINTER),
    ("SeccompProfile", "seccompProfile", Struct(SECCOMP_PROFILE)),
    ("AppArmorProfile", "appArmorProfile", Struct(SECCOMP_PROFILE)),
];

/// Validates the pod's security context.
pub(super) fn check_pod(pod: &At<'_>) {
    let context = pod.get("securityContext");
    context.check_fields(&[
        ("fsGroup", ID),
        ("runAsUser", ID),
        ("runAsGroup", ID),
        ("supplementalGroups[*]", ID),
    ]);
    // Upstream reports this field inside the security context.
    let shared =
        pod.get("shareProcessNamespace").reported_at(context.path_of("shareProcessNamespace"));
    let both = shared.is_true() && pod.get("hostPID").is_true();
    shared.invalid_if(both, "ShareProcessNamespace and HostPID cannot both be enabled");
    check_sysctls(pod, &context.get("sysctls"));
    context.check_fields(&[
        ("fsGroupChangePolicy", OneOfIfSet(&["Always", "OnRootMismatch"])),
        ("seccompProfile", Check(check_seccomp)),
        ("windowsOptions", Check(check_windows_options)),
        ("appArmorProfile", Check(check_app_armor)),
        ("supplementalGroupsPolicy", OneOfIfSet(&["Merge", "Strict"])),
        // `MountOption` belongs to the feature gate SELinuxMount, which is off by default.
        ("seLinuxChangePolicy", OneOfIfSet(&["Recursive"])),
    ]);
}

fn check_sysctls(pod: &At<'_>, sysctls: &At<'_>) {
    let mut all_names = BTreeSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.get("name");
        if name.is_empty() {
            name.required("");
        } else if !formats::is_sysctl(name.text()) {
            name.invalid(&format!(
                "must have at most {} characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?\
                 [\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                formats::SUBDOMAIN_MAX
            ));
        } else {
            name.unique_in(&mut all_names);
        }
        check_host_sysctl(pod, &name);
    }
}

/// Rejects a sysctl of a namespace that the pod shares with the node, because it would change the
/// node.
fn check_host_sysctl(pod: &At<'_>, name: &At<'_>) {
    let sysctl = with_dots(name.text());
    let of_ipc = [
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
    ];
    let is_of_ipc = sysctl.starts_with("fs.mqueue.")
        || sysctl.strip_prefix("kernel.").is_some_and(|name| of_ipc.contains(&name));
    if pod.get("hostNetwork").is_true() && sysctl.starts_with("net.") {
        name.invalid("may not be specified when 'hostNetwork' is true");
    } else if pod.get("hostIPC").is_true() && is_of_ipc {
        name.invalid("may not be specified when 'hostIPC' is true");
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

fn check_seccomp(profile: &At<'_>) {
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    if kind.is_empty() {
        kind.required("type is required when seccompProfile is set");
    } else {
        kind.check(OneOf(PROFILE_TYPES));
    }
    match (kind.text() == "Localhost", file.is_set()) {
        (true, true) => file.check(Follows(local_descending_path)),
        (true, false) => file.required("must be set when seccomp type is Localhost"),
        (false, true) => {
            let shown = json_struct(profile.json(), SECCOMP_PROFILE);
            file.invalid_as(shown, "can only be set when seccomp type is Localhost");
        }
        (false, false) => {}
    }
}

fn check_app_armor(profile: &At<'_>) {
    let (kind, name) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "Localhost" => check_app_armor_name(&name),
        "RuntimeDefault" | "Unconfined" => {
            let why = "can only be set when AppArmor type is Localhost";
            name.invalid_json_if(name.is_set(), why);
        }
        "" => kind.required("type is required when appArmorProfile is set"),
        _unknown => kind.not_supported(PROFILE_TYPES),
    }
}

fn check_app_armor_name(name: &At<'_>) {
    let text = name.text();
    name.invalid_if(text.trim() != text, "must not be padded with whitespace");
    name.required_if(text.is_empty(), "must be set when AppArmor type is Localhost");
    name.too_long_if_over(APP_ARMOR_PROFILE_MAX, text.len());
}

/// Validates a container's security context.
pub(super) fn check(context: &At<'_>, host_users: bool) {
    let proc_mount = context.get("procMount");
    context.check_fields(&[
        ("runAsUser", ID),
        ("runAsGroup", ID),
        ("procMount", OneOfIfSet(&["Default", "Unmasked"])),
    ]);
    let is_unsafe = host_users && proc_mount.text() == "Unmasked";
    proc_mount.invalid_json_if(is_unsafe, "`hostUsers` must be false to use `Unmasked`");
    context.get("seccompProfile").check(Check(check_seccomp));
    check_escalation(context);
    context.check_fields(&[
        ("windowsOptions", Check(check_windows_options)),
        ("appArmorProfile", Check(check_app_armor)),
    ]);
}

/// Validates that privileges are not combined with `allowPrivilegeEscalation: false`.
fn check_escalation(context: &At<'_>) {
    if context.find("allowPrivilegeEscalation").is_none_or(|allowed| allowed.is_true()) {
        return;
    }
    let forbid = |what: &str| {
        let why = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
        context.invalid_as(json_struct(context.json(), SECURITY_CONTEXT), &why);
    };
    if context.get("privileged").is_true() {
        forbid("`privileged` to true");
    }
    let added = context.nested("capabilities.add").texts();
    let admin = added.iter().filter(|name| **name == "CAP_SYS_ADMIN");
    admin.for_each(|_| forbid("`capabilities.Add` CAP_SYS_ADMIN"));
}
