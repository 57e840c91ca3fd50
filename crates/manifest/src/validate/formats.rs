//! The formats of names, keys, paths and other short strings (upstream: `k8s.io/apimachinery`'s
//! `util/validation` and `api/validate/content`).

use std::net::{IpAddr, Ipv6Addr};

/// Validates a string; returns upstream's messages, none for a valid string.
pub(super) type Format = fn(&str) -> Vec<String>;

const LABEL_FMT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FMT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const UNDERSCORE_SUBDOMAIN_FMT: &str =
    r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const KEY_FMT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE_FMT: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// Maximum length of a DNS label, label value, and name part of a label key, in bytes.
const LABEL_MAX: usize = 63;
/// Maximum length of a DNS subdomain, in bytes.
pub(super) const SUBDOMAIN_MAX: usize = 253;

/// Validates a DNS label (upstream: `IsDNS1123Label`).
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, LABEL_MAX, "characters");
    if !is_label(text) {
        complaints.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character",
                LABEL_FMT,
                &["my-name", "123-abc"],
            )
        });
    }
    complaints
}

/// A DNS subdomain (upstream: `IsDNS1123Subdomain`), the format of most object names.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain_measured_in(text, "characters")
}

/// Validates a name that will get a prefix or a suffix: it may end with a dash (upstream:
/// `NameIsDNSSubdomain` with `prefix`, which also ignores the character before the dash).
pub(super) fn dns_subdomain_prefix(text: &str) -> Vec<String> {
    match text.strip_suffix('-') {
        Some(start) if !start.is_empty() => {
            let kept: String = start.chars().take(start.chars().count() - 1).collect();
            dns_subdomain(&format!("{kept}a"))
        }
        Some(_) | None => dns_subdomain(text),
    }
}

/// A DNS subdomain whose parts may contain underscores (upstream:
/// `IsDNS1123SubdomainWithUnderscore`).
pub(super) fn dns_subdomain_with_underscore(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, SUBDOMAIN_MAX, "characters");
    let is_part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        is_framed(part, is_lower_alphanumeric, |b| is_lower_alphanumeric(b) || b"-_".contains(&b))
    };
    if !text.split('.').all(is_part) {
        complaints.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '_', '-' or '.', and must start and end with an alphanumeric character",
            UNDERSCORE_SUBDOMAIN_FMT,
            &["example.com"],
        ));
    }
    complaints
}

/// The key of a label, the name of a resource, a condition or a finalizer: `[prefix/]name`
/// (upstream: `IsLabelKey`, also known as `IsQualifiedName`).
pub(crate) fn label_key(text: &str) -> Vec<String> {
    let format = || {
        regex_error(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
             with an alphanumeric character",
            KEY_FMT,
            &["MyName", "my.name", "123-abc"],
        )
    };
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            let optional = " with an optional DNS subdomain prefix and '/' (e.g. \
                            'example.com/MyName')";
            return vec![format!("a valid label key {}{optional}", format())];
        }
    };
    let mut complaints = match prefix {
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => {
            let complaints = subdomain_measured_in(prefix, "bytes").into_iter();
            complaints.map(|why| format!("prefix part {why}")).collect()
        }
        None => vec![],
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    }
    complaints
        .extend(too_long(name, LABEL_MAX, "bytes").iter().map(|why| format!("name part {why}")));
    if !is_key(name) {
        complaints.push(format!("name part {}", format()));
    }
    complaints
}

/// The value of a label (upstream: `IsLabelValue`).
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, LABEL_MAX, "bytes");
    if !text.is_empty() && !is_key(text) {
        complaints.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            VALUE_FMT,
            &["MyValue", "my_value", "12345"],
        ));
    }
    complaints
}

/// The name of a port (upstream: `IsValidPortName`).
pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, 15, "characters");
    complaints.extend(violated(&[
        (
            !text.is_empty() && text.bytes().all(|b| is_lower_alphanumeric(b) || b == b'-'),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (text.bytes().any(|b| b.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (!text.contains("--"), "must not contain consecutive hyphens"),
        (!text.starts_with('-') && !text.ends_with('-'), "must not begin or end with a hyphen"),
    ]));
    complaints
}

/// An absolute path.
pub(super) fn absolute_path(text: &str) -> Vec<String> {
    violated(&[(text.starts_with('/'), "must be an absolute path")])
}

/// A path without `..` as an element (upstream: `validatePathNoBacksteps`).
pub(super) fn path_no_backsteps(text: &str) -> Vec<String> {
    violated(&[(!has_backsteps(text), "must not contain '..'")])
}

/// A relative path without `..` as an element (upstream: `validateLocalDescendingPath`).
pub(super) fn local_descending_path(text: &str) -> Vec<String> {
    violated(&[
        (!text.starts_with('/'), "must be a relative path"),
        (!has_backsteps(text), "must not contain '..'"),
    ])
}

/// Such a path that does not begin with two dots either: the kubelet reserves such names (upstream:
/// `validateLocalNonReservedPath`).
pub(super) fn local_non_reserved_path(text: &str) -> Vec<String> {
    let mut complaints = local_descending_path(text);
    let is_reserved = text.starts_with("..") && !text.starts_with("../");
    complaints.extend(violated(&[(!is_reserved, "must not start with '..'")]));
    complaints
}

/// `true` if an element of the path is `..`.
pub(super) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|element| element == "..")
}

/// The messages of the conditions that do not hold.
pub(super) fn violated(conditions: &[(bool, &str)]) -> Vec<String> {
    let violated = conditions.iter().filter(|(holds, _)| !holds);
    violated.map(|(_, why)| (*why).to_owned()).collect()
}

/// An IP address that all parsers read alike (upstream: `IsValidIPForLegacyField`).
pub(super) fn ip_address(text: &str) -> Vec<String> {
    let why = match text.parse() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address"
        }
        Ok(IpAddr::V4(_) | IpAddr::V6(_)) => return vec![],
        Err(_) if has_leading_zeros(text) => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    vec![why.to_owned()]
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

/// A percentage (upstream: `IsValidPercent`).
pub(super) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return vec![];
    }
    vec![regex_error(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// The name of an HTTP header (upstream: `IsHTTPHeaderName`).
pub(super) fn http_header(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return vec![];
    }
    vec![regex_error(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// The name of an environment variable, or the prefix of several (upstream:
/// `IsRelaxedEnvVarName`).
pub(super) fn env_name(text: &str) -> Vec<String> {
    let is_printable = text.bytes().all(|b| (b == b' ' || b.is_ascii_graphic()) && b != b'=');
    violated(&[
        (!text.is_empty(), "environment variable name must be non-empty"),
        (
            is_printable,
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='",
        ),
    ])
}

/// A key of a `ConfigMap` or Secret (upstream: `IsConfigMapKey`).
pub(super) fn config_map_key(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, SUBDOMAIN_MAX, "characters");
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        complaints.push(regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    complaints.extend(violated(&[
        (text != ".", "must not be '.'"),
        (text != "..", "must not be '..'"),
        (text == ".." || !text.starts_with(".."), "must not start with '..'"),
    ]));
    complaints
}

/// `true` for a valid name of a sysctl, with dots or slashes (upstream: `IsValidSysctlName`).
pub(super) fn is_sysctl(text: &str) -> bool {
    let is_part = |part: &str| {
        is_framed(part, is_lower_alphanumeric, |b| is_lower_alphanumeric(b) || b"-_".contains(&b))
    };
    text.len() <= SUBDOMAIN_MAX && text.split(['.', '/']).all(is_part)
}

fn subdomain_measured_in(text: &str, unit: &str) -> Vec<String> {
    let mut complaints = too_long(text, SUBDOMAIN_MAX, unit);
    if !is_subdomain(text) {
        complaints.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_FMT,
            &["example.com"],
        ));
    }
    complaints
}

/// The error for a string longer than `max` bytes; older checks of upstream call them characters.
fn too_long(text: &str, max: usize, unit: &str) -> Vec<String> {
    if text.len() <= max {
        return vec![];
    }
    vec![format!("must be no more than {max} {unit}")]
}

fn regex_error(what: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{what} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn is_label(text: &str) -> bool {
    is_framed(text, is_lower_alphanumeric, |b| is_lower_alphanumeric(b) || b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    is_framed(text, |b| b.is_ascii_alphanumeric(), inside)
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// `true` for a non-empty string whose bytes all match `inside`, and whose first and last match
/// `ends`.
fn is_framed(text: &str, ends: fn(u8) -> bool, inside: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| ends(*b))
        && bytes.last().is_some_and(|b| ends(*b))
        && bytes.iter().all(|b| inside(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of each message, short enough for a table.
    fn gist(complaints: &[String]) -> Vec<&str> {
        complaints.iter().map(|why| why.split(" (").next().unwrap_or_default()).collect()
    }

    #[test]
    fn valid_names_are_accepted() {
        let long = "a".repeat(63);
        let subdomain = format!("{}.{}.{}.{}", long, long, long, "a".repeat(61));
        for (check, text) in [
            (dns_label as Format, "a"),
            (dns_label, "0-9"),
            (dns_label, &long),
            (dns_subdomain, "a.b-c.0"),
            (dns_subdomain, &subdomain),
            (dns_subdomain_prefix, "web-"),
            (dns_subdomain_prefix, "a.-"),
            (dns_subdomain_with_underscore, "_tcp.a_b"),
            (label_key, "App"),
            (label_key, "example.com/My_name.1"),
            (label_value, ""),
            (label_value, "A_b.c-1"),
            (port_name, "http-2"),
            (percent, "100%"),
            (http_header, "X-Y-1"),
            (env_name, "1 a-b.c%"),
            (config_map_key, ".dot_file-1"),
        ] {
            assert_eq!(check(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        let long = "a".repeat(254);
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                     or '-', and must start and end with an alphanumeric character";
        let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                         characters, '-' or '.', and must start and end with an alphanumeric \
                         character";
        let key = "must consist of alphanumeric characters, '-', '_' or '.', and must start and \
                   end with an alphanumeric character";
        for (check, text, want) in [
            (dns_label as Format, "", vec![label]),
            (dns_label, "A", vec![label]),
            (dns_label, "a-", vec![label]),
            (dns_label, "a.b", vec!["must not contain dots"]),
            (dns_label, &long, vec!["must be no more than 63 characters"]),
            (dns_subdomain, "a..b", vec![subdomain]),
            (dns_subdomain, "ä", vec![subdomain]),
            (dns_subdomain, &long, vec!["must be no more than 253 characters"]),
            (dns_subdomain_prefix, "-", vec![subdomain]),
            (label_key, "a/b/c", vec![&format!("a valid label key {key}")]),
            (label_key, "/a", vec!["prefix part must be non-empty"]),
            (label_key, "A/b", vec![&format!("prefix part {subdomain}")]),
            (label_key, "a/", vec!["name part must be non-empty", &format!("name part {key}")]),
            (label_key, &long, vec!["name part must be no more than 63 bytes"]),
            (label_value, &long, vec!["must be no more than 63 bytes"]),
            (
                port_name,
                "-",
                vec!["must contain at least one letter", "must not begin or end with a hyphen"],
            ),
            (port_name, "a--b", vec!["must not contain consecutive hyphens"]),
            (
                port_name,
                "0123456789012345",
                vec!["must be no more than 15 characters", "must contain at least one letter"],
            ),
            (env_name, "", vec!["environment variable name must be non-empty"]),
            (config_map_key, "..", vec!["must not be '..'"]),
            (config_map_key, "..a", vec!["must not start with '..'"]),
            (config_map_key, ".", vec!["must not be '.'"]),
        ] {
            assert_eq!(gist(&check(text)), want, "{text}");
        }
        assert!(!percent("10").is_empty() && !percent("%").is_empty());
        assert!(!env_name("a=b").is_empty() && !env_name("ä").is_empty());
        assert!(!http_header("a b").is_empty() && !http_header("").is_empty());
        assert!(!is_sysctl("net..ipv4") && !is_sysctl("") && is_sysctl("net/ipv4/a_b-c.d"));
    }

    #[test]
    fn messages_contain_examples_and_regex() {
        assert_eq!(
            dns_label("A"),
            ["a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
              '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
              '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"]
        );
    }
}
