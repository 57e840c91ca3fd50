//! Name resolution in the pod: policy, configuration, host aliases and the pod's host name
//! (upstream: `validatePodDNSConfig`, `ValidateHostAliases`, `validatePodHostName`).

use std::net::{IpAddr, Ipv6Addr};

use super::at::{At, Errors};
use super::names;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
/// Limit of all search domains with the spaces between them, in bytes.
const MAX_SEARCH_LIST: usize = 2048;
const MAX_HOSTNAME: usize = 64;

/// Validates `dnsPolicy`.
pub(super) fn check_policy(policy: &At<'_>, errors: &mut Errors) {
    let known = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    policy.required_one_of(&known, errors);
}

/// Validates `dnsConfig`. If a required nameserver is missing, nothing else is validated.
pub(super) fn check_config(pod: &At<'_>, errors: &mut Errors) {
    let config = pod.get("dnsConfig");
    let (servers, searches) = (config.get("nameservers"), config.get("searches"));
    if pod.get("dnsPolicy").text() == "None" {
        if !config.is_set() {
            errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(servers.required(why));
            return;
        }
    }
    if servers.items().len() > MAX_NAMESERVERS {
        let why = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        errors.push(servers.invalid_json(&why));
    }
    for server in servers.items() {
        check_ip(&server, errors);
    }
    check_searches(&searches, errors);
    for option in config.get("options").items() {
        if option.get("name").is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

fn check_searches(searches: &At<'_>, errors: &mut Errors) {
    let all = searches.texts();
    if all.len() > MAX_SEARCHES {
        let why = format!("must not have more than {MAX_SEARCHES} search paths");
        errors.push(searches.invalid_json(&why));
    }
    if all.join(" ").len() > MAX_SEARCH_LIST {
        let why = format!(
            "must not have more than {MAX_SEARCH_LIST} characters (including spaces) in the search \
             list"
        );
        errors.push(searches.invalid_json(&why));
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let domain = search.text().strip_suffix('.').unwrap_or(search.text());
        let complaints = names::dns_subdomain_with_underscore(domain).into_iter();
        let shown = super::go_text::quoted(domain);
        errors.extend(complaints.map(|why| search.invalid_as(shown.clone(), &why)));
    }
}

/// Validates `hostAliases`.
pub(super) fn check_host_aliases(aliases: &At<'_>, errors: &mut Errors) {
    for alias in aliases.items() {
        check_ip(&alias.get("ip"), errors);
        for name in alias.get("hostnames").items() {
            name.follows(names::dns_subdomain, errors);
        }
    }
}

/// Validates an IP address that all parsers read alike (upstream: `IsValidIPForLegacyField`).
fn check_ip(ip: &At<'_>, errors: &mut Errors) {
    match ip.text().parse() {
        Ok(IpAddr::V4(_)) => {}
        Ok(IpAddr::V6(address)) => {
            if address.to_ipv4_mapped().is_some() {
                errors.push(ip.invalid("must not be an IPv4-mapped IPv6 address"));
            }
        }
        Err(_) if has_leading_zeros(ip.text()) => {
            errors.push(ip.invalid("must not have leading 0s"));
        }
        Err(_) => {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(ip.invalid(why));
        }
    }
}

/// `true` if it would be an address with fewer leading zeros.
fn has_leading_zeros(text: &str) -> bool {
    let (before, decimal) = text.rsplit_once(':').map_or(("", text), |(v6, v4)| (v6, v4));
    let parts: Vec<&str> = decimal.split('.').collect();
    let numbers = parts.iter().map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| part.trim_start_matches('0')).and_then(|digits| match digits {
            "" => Some(0),
            digits => digits.parse::<u8>().ok(),
        })
    });
    let Some(numbers) = numbers.collect::<Option<Vec<u8>>>() else { return false };
    let v4 = numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(".");
    numbers.len() == 4
        && (before.is_empty() && !text.contains(':')
            || format!("{before}:{v4}").parse::<Ipv6Addr>().is_ok())
}

/// Validates `hostnameOverride`.
pub(super) fn check_hostname_override(pod: &At<'_>, errors: &mut Errors) {
    let Some(name) = pod.find("hostnameOverride") else { return };
    for (other, spelled) in [
        ("setHostnameAsFQDN", "may not be specified when setHostnameAsFQDN is true"),
        ("hostNetwork", "may not be specified when hostNetwork is true"),
    ] {
        if pod.get(other).is_true() {
            errors.push(name.forbidden(spelled));
        }
    }
    if name.text().len() > MAX_HOSTNAME {
        errors.push(name.too_long(MAX_HOSTNAME));
    }
    name.follows(names::dns_subdomain, errors);
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("dns.yaml"));
    }
}
