//! Windows: its security options, and host-process pods (upstream:
//! `validateWindowsSecurityContextOptions`, `validateWindowsHostProcessPod`).

use super::at::{At, Errors};
use super::containers::visit_all;
use super::go_text::{json_struct, quoted};
use super::names;
use super::security_context::pointer;

const CREDENTIAL_SPEC_MAX: usize = 64 * 1024;
const DOMAIN_MAX: usize = 256;
const USER_MAX: usize = 104;

/// Validates `windowsOptions` of a pod or container.
pub(super) fn check_options(options: &At<'_>, errors: &mut Errors) {
    if let Some(name) = options.find("gmsaCredentialSpecName") {
        let complaints = names::dns_subdomain(name.text()).into_iter();
        errors.extend(complaints.map(|why| name.invalid_json(&why)));
    }
    if let Some(spec) = options.find("gmsaCredentialSpec") {
        if spec.is_empty() {
            errors.push(spec.invalid_json("gmsaCredentialSpec cannot be an empty string"));
        } else if spec.text().len() > CREDENTIAL_SPEC_MAX {
            errors.push(spec.invalid_json("gmsaCredentialSpec size must be under 64 KiB"));
        }
    }
    if let Some(user) = options.find("runAsUserName") {
        let complaints = user_name(user.text()).into_iter();
        errors.extend(complaints.map(|why| user.invalid_json(&format!("runAsUserName{why}"))));
    }
}

/// Validates `user` or `domain\user`; returns the rest of a sentence for each error.
fn user_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec![" cannot be an empty string".to_owned()];
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return vec![" cannot contain control characters".to_owned()];
    }
    let (domain, user) = match name.split_once('\\') {
        None => (None, name),
        Some((domain, user)) if !user.contains('\\') => (Some(domain), user),
        Some(_) => return vec![" cannot contain more than one backslash".to_owned()],
    };
    let mut complaints = vec![];
    let mut report_failed_create =
        |holds: bool, why: String| complaints.extend((!holds).then_some(why));
    if let Some(domain) = domain {
        report_failed_create(
            domain.len() < DOMAIN_MAX,
            format!("'s Domain length must be under {DOMAIN_MAX} characters"),
        );
        report_failed_create(
            is_net_bios(domain) || is_dns(domain),
            "'s Domain doesn't match the NetBios nor the DNS format".to_owned(),
        );
    }
    report_failed_create(!user.is_empty(), "'s User cannot be empty".to_owned());
    report_failed_create(
        user.len() <= USER_MAX,
        format!("'s User length must not be longer than {USER_MAX} characters"),
    );
    report_failed_create(
        user.is_empty() || !user.chars().all(|c| ". ".contains(c)),
        "'s User cannot contain only periods or spaces".to_owned(),
    );
    report_failed_create(
        !user.contains([
            '"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']',
        ]),
        r#"'s User cannot contain the following characters: "/\:;|=,+*?<>@[]"#.to_owned(),
    );
    complaints
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
pub(super) fn check_host_process(pod: &At<'_>, errors: &mut Errors) {
    let host_process = |holder: &At<'_>| {
        let options = holder.get("securityContext").get("windowsOptions");
        options.find("hostProcess").map(|value| value.is_true())
    };
    let of_pod = host_process(pod);
    let containers = visit_all(pod);
    for container in &containers {
        let own = host_process(container);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let path = container.path_of("securityContext.windowsOptions.hostProcess");
            let why = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            errors.push(container.clone().reported_at(path).invalid_as(own.to_string(), &why));
        }
    }
    let is_host_process = |c: &&At<'_>| host_process(c).or(of_pod) == Some(true);
    let count = containers.iter().filter(is_host_process).count();
    if count == 0 {
        return;
    }
    if count != containers.len() {
        let why = "If pod contains any hostProcess containers then all containers must be \
                   HostProcess containers";
        errors.push(pod.invalid_as(quoted(""), why));
    }
    let network = pod.get("hostNetwork");
    if !network.is_true() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(network.invalid_as("false".to_owned(), why));
    }
}

/// The options as upstream prints its internal struct.
pub(super) fn options_json(options: &At<'_>) -> String {
    let plain = |name| pointer(options, name, At::marshalled);
    json_struct(&[
        ("GMSACredentialSpecName", plain("gmsaCredentialSpecName")),
        ("GMSACredentialSpec", plain("gmsaCredentialSpec")),
        ("RunAsUserName", plain("runAsUserName")),
        ("HostProcess", plain("hostProcess")),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("windows.yaml"));
    }

    /// Not a row of the table: the error repeats the complete value.
    #[test]
    fn a_credential_spec_has_a_maximum_size() {
        let errors = |length| {
            let mut object = table::valid();
            object["spec"]["template"]["spec"]["securityContext"] =
                json!({"windowsOptions": {"gmsaCredentialSpec": "a".repeat(length)}});
            let errors = crate::validate(&object).into_iter();
            errors.map(|error| error.without_value().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(errors(65_536), [""; 0]);
        assert_eq!(
            errors(65_537),
            [
                "spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: \
              gmsaCredentialSpec size must be under 64 KiB"
            ]
        );
    }
}
