//! Windows: its security options, and host-process pods (upstream:
//! `validateWindowsSecurityContextOptions`, `validateWindowsHostProcessPod`).

use super::at::At;
use super::context::visit_containers;
use super::formats::{dns_subdomain, violated};
use super::go_text::{GoStruct, POINTER, quoted};

const CREDENTIAL_SPEC_MAX: usize = 64 * 1024;

/// Validates `windowsOptions` of a pod or container.
pub(super) fn check_options(options: &At<'_>) {
    if let Some(name) = options.find("gmsaCredentialSpecName") {
        dns_subdomain(name.text()).iter().for_each(|why| name.invalid_json(why));
    }
    if let Some(spec) = options.find("gmsaCredentialSpec") {
        spec.invalid_json_if(spec.is_empty(), "gmsaCredentialSpec cannot be an empty string");
        let is_too_large = spec.text().len() > CREDENTIAL_SPEC_MAX;
        spec.invalid_json_if(is_too_large, "gmsaCredentialSpec size must be under 64 KiB");
    }
    if let Some(user) = options.find("runAsUserName") {
        let complaints = user_name(user.text());
        complaints.iter().for_each(|why| user.invalid_json(&format!("runAsUserName{why}")));
    }
}

/// Validates `user` or `domain\user`; returns the rest of a sentence for each error.
fn user_name(name: &str) -> Vec<String> {
    let (domain, user) = name.split_once('\\').unwrap_or(("", name));
    let whole = violated(&[
        (!name.is_empty(), " cannot be an empty string"),
        (!name.chars().any(|c| c.is_ascii_control()), " cannot contain control characters"),
        (!user.contains('\\'), " cannot contain more than one backslash"),
    ]);
    if let Some(first) = whole.into_iter().next() {
        return vec![first];
    }
    let has_domain = name.contains('\\');
    let is_padding = !user.is_empty() && user.chars().all(|c| ". ".contains(c));
    let reserved =
        ['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'];
    violated(&[
        (domain.len() < 256, "'s Domain length must be under 256 characters"),
        (
            !has_domain || is_net_bios(domain) || is_dns(domain),
            "'s Domain doesn't match the NetBios nor the DNS format",
        ),
        (!user.is_empty(), "'s User cannot be empty"),
        (user.len() <= 104, "'s User length must not be longer than 104 characters"),
        (!is_padding, "'s User cannot contain only periods or spaces"),
        (
            !user.contains(reserved),
            r#"'s User cannot contain the following characters: "/\:;|=,+*?<>@[]"#,
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

/// The options as upstream prints them.
pub(super) const OPTIONS: GoStruct = &[
    ("GMSACredentialSpecName", "gmsaCredentialSpecName", POINTER),
    ("GMSACredentialSpec", "gmsaCredentialSpec", POINTER),
    ("RunAsUserName", "runAsUserName", POINTER),
    ("HostProcess", "hostProcess", POINTER),
];
