//! Name resolution in the pod: its configuration, and the pod's host name (upstream:
//! `validatePodDNSConfig`, `validatePodHostName`).

use super::at::At;
use super::formats::{dns_subdomain, dns_subdomain_with_underscore, ip_address};
use super::rules::Rule::Follows;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
/// Limit of all search domains with the spaces between them, in bytes.
const MAX_SEARCH_LIST: usize = 2048;
const MAX_HOSTNAME: usize = 64;

/// Validates `dnsConfig`. If a required nameserver is missing, nothing else is validated.
pub(super) fn check_config(pod: &At<'_>) {
    let config = pod.get("dnsConfig");
    let servers = config.get("nameservers");
    if pod.get("dnsPolicy").text() == "None" && servers.is_empty() {
        return if config.is_set() {
            servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
        } else {
            config.required("must provide `dnsConfig` when `dnsPolicy` is None");
        };
    }
    let why = format!("must not have more than {MAX_NAMESERVERS} nameservers");
    servers.invalid_json_if(servers.items().len() > MAX_NAMESERVERS, &why);
    config.check_fields(&[("nameservers[*]", Follows(ip_address))]);
    check_searches(&config.get("searches"));
    for option in config.get("options").items() {
        option.required_if(option.get("name").is_empty(), "must not be empty");
    }
}

fn check_searches(searches: &At<'_>) {
    let all = searches.texts();
    let why = format!("must not have more than {MAX_SEARCHES} search paths");
    searches.invalid_json_if(all.len() > MAX_SEARCHES, &why);
    let why = format!(
        "must not have more than {MAX_SEARCH_LIST} characters (including spaces) in the search list"
    );
    searches.invalid_json_if(all.join(" ").len() > MAX_SEARCH_LIST, &why);
    for search in searches.items().filter(|search| search.text() != ".") {
        let domain = search.text().strip_suffix('.').unwrap_or(search.text());
        search.text_follows(domain, dns_subdomain_with_underscore);
    }
}

/// Validates `hostnameOverride`.
pub(super) fn check_hostname_override(pod: &At<'_>) {
    let Some(name) = pod.find("hostnameOverride") else { return };
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        let why = format!("may not be specified when {other} is true");
        name.forbidden_if(pod.get(other).is_true(), &why);
    }
    name.too_long_if_over(MAX_HOSTNAME, name.text().len());
    name.check(Follows(dns_subdomain));
}
