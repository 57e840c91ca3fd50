//! Name resolution in the pod: configuration, host aliases and the pod's host name (upstream:
//! `validatePodDNSConfig`, `ValidateHostAliases`, `validatePodHostName`).

use std::net::{IpAddr, Ipv6Addr};

use super::at::At;
use super::formats::{dns_subdomain, dns_subdomain_with_underscore};
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
    servers.items().for_each(|server| check_ip(&server));
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

/// Validates `hostAliases`.
pub(super) fn check_host_aliases(aliases: &At<'_>) {
    for alias in aliases.items() {
        check_ip(&alias.get("ip"));
        alias.get("hostnames").items().for_each(|name| name.check(Follows(dns_subdomain)));
    }
}

/// Validates an IP address that all parsers read alike (upstream: `IsValidIPForLegacyField`).
fn check_ip(ip: &At<'_>) {
    match ip.text().parse() {
        Ok(IpAddr::V4(_)) => {}
        Ok(IpAddr::V6(address)) => {
            let is_mapped = address.to_ipv4_mapped().is_some();
            ip.invalid_if(is_mapped, "must not be an IPv4-mapped IPv6 address");
        }
        Err(_) if has_leading_zeros(ip.text()) => ip.invalid("must not have leading 0s"),
        Err(_) => ip.invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
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
pub(super) fn check_hostname_override(pod: &At<'_>) {
    let Some(name) = pod.find("hostnameOverride") else { return };
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        let why = format!("may not be specified when {other} is true");
        name.forbidden_if(pod.get(other).is_true(), &why);
    }
    name.too_long_if_over(MAX_HOSTNAME, name.text().len());
    name.check(Follows(dns_subdomain));
}
