//! The rules for the checks of a policy.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{MAX_NAME, Violation, of_selector};
use crate::validate::{dns_label, label_key};
use daemonset::model::{
    Check, CheckKind, ExpectedPods, HttpCheck, LabelSelector, PodsCheck, PolicySpec,
    PrometheusCheck,
};

/// Limit of checks in a policy, preconditions and gates each.
const MAX_CHECKS: usize = 20;
/// Limit of the bytes of a query or URL, and of a command.
const MAX_TEXT: usize = 10_000;
/// What a query may contain between `{{` and `}}`.
const PLACEHOLDERS: [&str; 4] = ["nodes", "others", "namespace", "name"];

/// What a check is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Precondition,
    Gate,
}

/// The violations of preconditions and gates.
pub(super) fn of_checks(spec: &PolicySpec, found: &mut Vec<Violation>) {
    let mut names = BTreeSet::new();
    for (field, checks, role) in [
        ("preconditions", &spec.preconditions, Role::Precondition),
        ("gates", &spec.gates, Role::Gate),
    ] {
        if checks.len() > MAX_CHECKS {
            let message = format!("{} checks; at most {MAX_CHECKS} are allowed", checks.len());
            found.push((format!("spec.{field}"), message));
        }
        for (at, check) in checks.iter().enumerate() {
            let path = format!("spec.{field}[{at}]");
            if let Some(message) = of_name(&check.name, &mut names) {
                found.push((format!("{path}.name"), message));
            }
            of_check(check, role, &path, found);
        }
    }
}

fn of_name<'a>(name: &'a str, seen: &mut BTreeSet<&'a str>) -> Option<String> {
    if name.len() > MAX_NAME || !dns_label(name).is_empty() {
        Some(format!(
            "`{name}` is not a name for a check: use lowercase letters, digits and `-` between \
             them, at most {MAX_NAME} characters"
        ))
    } else if !seen.insert(name) {
        Some(format!("another check before it is named `{name}`, too"))
    } else {
        None
    }
}

fn of_check(check: &Check, role: Role, path: &str, found: &mut Vec<Violation>) {
    let Check { name: _, interval, delay, allow, unknown_for: _, kind } = check;
    let mut add = |field: &str, message: String| found.push((format!("{path}{field}"), message));
    if interval.is_zero() {
        add(".interval", "use 1s or more".to_owned());
    }
    if role == Role::Precondition && !delay.is_zero() {
        let message = "a precondition is asked before a node begins, so it has no delay; leave it \
                       out"
        .to_owned();
        add(".delay", message);
    }
    let is_query = matches!(kind, CheckKind::Prometheus(_));
    if *allow > 0 && !is_query && (role == Role::Precondition || check.is_of_cluster()) {
        add(".allow", "only one sample counts here, and it has to pass; leave it out".to_owned());
    }
    match kind {
        CheckKind::Prometheus(prometheus) => of_prometheus(prometheus, &mut add),
        CheckKind::Http(HttpCheck { url, status }) => {
            if let Some(message) = of_url(url) {
                add(".http.url", message);
            }
            if !(200..=599).contains(status) {
                add(".http.status", format!("{status} is not the status of an answer"));
            }
        }
        CheckKind::Command(command) => {
            if command.first().is_none_or(String::is_empty) {
                add(".command", "name a program".to_owned());
            }
            if command.iter().map(String::len).sum::<usize>() > MAX_TEXT {
                add(".command", format!("longer than {MAX_TEXT} bytes"));
            }
        }
        CheckKind::NodeConditions(_) | CheckKind::Pods(_) => of_cluster(kind, role, &mut add),
    }
}

fn of_prometheus(prometheus: &PrometheusCheck, add: &mut impl FnMut(&str, String)) {
    let PrometheusCheck { address, query, min, max, empty: _ } = prometheus;
    if let Some(message) = of_url(address) {
        add(".prometheus.address", message);
    } else if address.contains('?') {
        add(".prometheus.address", "an address has no query".to_owned());
    }
    if query.trim().is_empty() {
        add(".prometheus.query", "it is empty".to_owned());
    }
    if query.len() > MAX_TEXT {
        add(".prometheus.query", format!("longer than {MAX_TEXT} bytes"));
    }
    if let Some(message) = of_placeholders(query) {
        add(".prometheus.query", message);
    }
    match (min, max) {
        (None, None) => add(".prometheus", "set `min`, `max`, or both".to_owned()),
        (Some(min), Some(max)) if min > max => {
            add(".prometheus.min", format!("{min} is more than `max`, {max}: nothing would pass"));
        }
        (Some(_), _) | (_, Some(_)) => {}
    }
}

/// A placeholder that would be sent as it is, and match nothing.
fn of_placeholders(query: &str) -> Option<String> {
    let known = || format!("use {}", PLACEHOLDERS.map(|it| format!("`{{{{{it}}}}}`")).join(", "));
    query.split("{{").skip(1).find_map(|rest| match rest.split_once("}}") {
        Some((name, _)) if PLACEHOLDERS.contains(&name) => None,
        Some((name, _)) => Some(format!("`{{{{{name}}}}}` is no placeholder: {}", known())),
        None => Some(format!("`{{{{` has no `}}}}`: {}", known())),
    })
}

/// What the observed cluster answers.
fn of_cluster(kind: &CheckKind, role: Role, add: &mut impl FnMut(&str, String)) {
    match kind {
        CheckKind::NodeConditions(conditions) => {
            if conditions.is_empty() {
                add(".nodeConditions", "name a condition".to_owned());
            }
            for (name, status) in conditions {
                let field = format!(".nodeConditions.{name}");
                for complaint in label_key(name) {
                    add(&field, format!("`{name}`: {complaint}"));
                }
                if !["True", "False", "Unknown"].contains(&status.as_str()) {
                    add(&field, format!("`{status}` is not \"True\", \"False\" or \"Unknown\""));
                }
            }
        }
        CheckKind::Pods(PodsCheck { selector, resource, expect, on: _ }) => {
            if selector_is_missing(selector, resource.as_ref()) {
                add(".pods", "set `selector`, `resource`, or both".to_owned());
            }
            for complaint in of_selector(selector) {
                add(".pods.selector", complaint);
            }
            for complaint in resource.iter().flat_map(|resource| label_key(resource)) {
                add(".pods.resource", complaint);
            }
            if *expect == ExpectedPods::Absent && role == Role::Gate {
                let message = "`absent` is only for preconditions: pods may start while a node is \
                               updated"
                    .to_owned();
                add(".pods.expect", message);
            }
        }
        CheckKind::Prometheus(_) | CheckKind::Http(_) | CheckKind::Command(_) => {}
    }
}

fn selector_is_missing(selector: &LabelSelector, resource: Option<&String>) -> bool {
    selector.is_empty() && resource.is_none()
}

/// Why a URL is refused. A pull request chooses it, so what it reaches is limited: `http`, which
/// anybody on the way can answer, only goes to this machine and into the cluster.
fn of_url(url: &str) -> Option<String> {
    if url.len() > MAX_TEXT {
        return Some(format!("longer than {MAX_TEXT} bytes"));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains(['\\', '#', '"', '<', '>'])
    {
        return Some(format!("`{}` has characters that a URL cannot have", url.escape_debug()));
    }
    let Some((scheme @ ("https" | "http"), rest)) = url.split_once("://") else {
        return Some("it has to begin with https:// or http://".to_owned());
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some("an address has no credentials; use `--check-token HOST=FILE`".to_owned());
    }
    let Some(host) = host_of(authority) else {
        return Some(format!("`{authority}` is not a host, with an optional port"));
    };
    (scheme == "http" && !is_near(host)).then(|| {
        format!(
            "http is only allowed to loopback and to a Service (`NAME.NAMESPACE.svc`), not to \
             `{host}`; use https"
        )
    })
}

/// The host of `HOST`, `HOST:PORT` or `[IPV6]:PORT`.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        (host, port)
    } else {
        let at = authority.find(':').unwrap_or(authority.len());
        let (host, port) = authority.split_at(at);
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        if host.is_empty() || !host.bytes().all(is_named) {
            return None;
        }
        (host, port)
    };
    match port.strip_prefix(':') {
        None => port.is_empty().then_some(host),
        Some(port) => port.parse::<u16>().is_ok_and(|port| port > 0).then_some(host),
    }
}

/// Whether a host is this machine, or a Service of the cluster.
fn is_near(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let loopback = host.parse::<Ipv4Addr>().is_ok_and(|it| it.is_loopback())
        || host.parse::<Ipv6Addr>().is_ok_and(|it| it.is_loopback())
        || host == "localhost";
    let is_service = |domain: &[&str]| {
        let labels: Vec<&str> = host.split('.').collect();
        labels.len() > domain.len() && labels.ends_with(domain)
    };
    loopback || is_service(&["svc"]) || is_service(&["svc", "cluster", "local"])
}
