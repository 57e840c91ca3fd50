//! The operating system of a pod and the fields that are forbidden for it, the security options of
//! Windows, and its host-process pods (upstream: `validateOS`,
//! `validateWindowsSecurityContextOptions`, `validateWindowsHostProcessPod`).

use super::at::At;
use super::context::visit_containers;
use super::formats::{dns_subdomain, violated};
use super::go_text::{GoStruct, POINTER, quoted};
use super::rules::Rule::{self, Empty, Forbidden};
use super::rules::Rules;

const CREDENTIAL_SPEC_MAX: usize = 64 * 1024;

const NOT_ON_WINDOWS: Rule = Forbidden("cannot be set for a windows pod");
/// The same for fields whose `false` or empty list counts as unset.
const EMPTY_ON_WINDOWS: Rule = Empty("cannot be set for a windows pod");

/// `windowsOptions` as upstream prints them.
pub(super) const WINDOWS_OPTIONS: GoStruct = &[
    ("GMSACredentialSpecName", "gmsaCredentialSpecName", POINTER),
    ("GMSACredentialSpec", "gmsaCredentialSpec", POINTER),
    ("RunAsUserName", "runAsUserName", POINTER),
    ("HostProcess", "hostProcess", POINTER),
];

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

/// Validates `windowsOptions` of a pod or container.
pub(super) fn check_windows_options(options: &At<'_>) {
    if let Some(name) = options.find("gmsaCredentialSpecName") {
        name.invalids_json(dns_subdomain(name.text()));
    }
    if let Some(spec) = options.find("gmsaCredentialSpec") {
        spec.invalid_json_if(spec.is_empty(), "gmsaCredentialSpec cannot be an empty string");
        let is_too_large = spec.text().len() > CREDENTIAL_SPEC_MAX;
        spec.invalid_json_if(is_too_large, "gmsaCredentialSpec size must be under 64 KiB");
    }
    if let Some(user) = options.find("runAsUserName") {
        user.invalids_json(user_name(user.text()));
    }
}

/// Validates `user` or `domain\user`.
fn user_name(name: &str) -> Vec<String> {
    let (domain, user) = name.split_once('\\').unwrap_or(("", name));
    let whole = violated(&[
        (!name.is_empty(), "runAsUserName cannot be an empty string"),
        (
            !name.chars().any(|c| c.is_ascii_control()),
            "runAsUserName cannot contain control characters",
        ),
        (!user.contains('\\'), "runAsUserName cannot contain more than one backslash"),
    ]);
    if let Some(first) = whole.into_iter().next() {
        return vec![first];
    }
    let has_domain = name.contains('\\');
    let is_padding = !user.is_empty() && user.chars().all(|c| ". ".contains(c));
    let reserved =
        ['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'];
    violated(&[
        (domain.len() < 256, "runAsUserName's Domain length must be under 256 characters"),
        (
            !has_domain || is_net_bios(domain) || is_dns(domain),
            "runAsUserName's Domain doesn't match the NetBios nor the DNS format",
        ),
        (!user.is_empty(), "runAsUserName's User cannot be empty"),
        (user.len() <= 104, "runAsUserName's User length must not be longer than 104 characters"),
        (!is_padding, "runAsUserName's User cannot contain only periods or spaces"),
        (
            !user.contains(reserved),
            r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#,
        ),
    ])
}

fn is_net_bios(domain: &str) -> bool {
    let length = domain.chars().count();
    (1..=15).contains(&length)
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|part| {
        (1..=63).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    })
}

/// Validates host-process pods: all containers must be host processes, with `hostNetwork`.
pub(super) fn check_host_process(pod: &At<'_>) {
    let field = "securityContext.windowsOptions.hostProcess";
    let of_pod = pod.nested(field);
    let containers: Vec<At<'_>> =
        visit_containers(pod).iter().map(|container| container.nested(field)).collect();
    let why = format!(
        "pod hostProcess value must be identical if both are specified, was {}",
        of_pod.is_true()
    );
    for own in &containers {
        let both = of_pod.is_set() && own.is_set();
        own.invalid_if(both && of_pod.is_true() != own.is_true(), &why);
    }
    let is_host_process =
        |own: &&At<'_>| if own.is_set() { own.is_true() } else { of_pod.is_true() };
    let count = containers.iter().filter(is_host_process).count();
    if count == 0 {
        return;
    }
    if count != containers.len() {
        let why = "If pod contains any hostProcess containers then all containers must be \
                   HostProcess containers";
        pod.invalid_as(quoted(""), why);
    }
    let network = pod.get("hostNetwork");
    if !network.is_true() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        network.invalid_as("false".to_owned(), why);
    }
}
