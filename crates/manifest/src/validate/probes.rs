//! Probes and lifecycle hooks (upstream: `validateProbe`, `validateLifecycle`, `validateHandler`).

use super::at::{At, Errors};
use super::containers::Surroundings;
use super::{names, ports};

/// Validates the three probes of a container that keeps running.
pub(super) fn check(container: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    for (field, is_about_readiness) in
        [("livenessProbe", false), ("readinessProbe", true), ("startupProbe", false)]
    {
        let Some(probe) = container.find(field) else { continue };
        check_probe(&probe, around, errors);
        let (successes, grace) =
            (probe.get("successThreshold"), probe.get("terminationGracePeriodSeconds"));
        if !is_about_readiness && successes.int() != 1 {
            errors.push(successes.invalid("must be 1"));
        }
        if is_about_readiness && grace.is_set() {
            errors.push(grace.invalid("must not be set for readinessProbes"));
        }
    }
}

fn check_probe(probe: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let handlers = ["exec", "httpGet", "tcpSocket", "grpc"];
    check_handler(probe, &handlers, around, errors);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        probe.get(field).not_negative(errors);
    }
    if let Some(grace) = probe.find("terminationGracePeriodSeconds")
        && grace.int() <= 0
    {
        errors.push(grace.invalid("must be greater than 0"));
    }
}

/// Validates the hooks of a container that keeps running.
pub(super) fn check_lifecycle(container: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.get("lifecycle").find(hook) {
            check_handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], around, errors);
        }
    }
}

/// Validates that exactly one of `handlers` is set.
fn check_handler(
    holder: &At<'_>,
    handlers: &[&str],
    around: &Surroundings<'_>,
    errors: &mut Errors,
) {
    let mut found = handlers.iter().filter_map(|kind| Some((*kind, holder.find(kind)?)));
    match found.next() {
        None => errors.push(holder.required("must specify a handler type")),
        Some(("exec", handler)) => handler.get("command").not_empty(errors),
        Some(("httpGet", handler)) => check_http(&handler, errors),
        Some(("sleep", handler)) => check_sleep(&handler, around.grace_period, errors),
        Some((_socket_or_grpc, handler)) => ports::check_reference(&handler.get("port"), errors),
    }
    for (_, another) in found {
        errors.push(another.forbidden("may not specify more than 1 handler type"));
    }
}

/// Validates `httpGet`; headers are reported without an index.
fn check_http(handler: &At<'_>, errors: &mut Errors) {
    ports::check_reference(&handler.get("port"), errors);
    handler.get("scheme").one_of(&["HTTP", "HTTPS"], errors);
    let headers = handler.get("httpHeaders");
    for header in headers.items() {
        header.get("name").reported_at(headers.path()).follows(names::http_header, errors);
    }
}

/// Validates `sleep`; the error is reported at the handler, not at its `seconds`.
fn check_sleep(handler: &At<'_>, grace_period: Option<i64>, errors: &mut Errors) {
    let seconds = handler.get("seconds").int();
    let Some(grace) = grace_period else { return };
    if seconds < 0 || seconds > grace {
        let why =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(handler.invalid_as(seconds.to_string(), &why));
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("probes.yaml"));
    }
}
