//! Probes and lifecycle hooks (upstream: `validateProbe`, `validateLifecycle`, `validateHandler`).

use super::at::At;
use super::context::ContainerContext;
use super::formats::http_header;
use super::ports;
use super::rules::Rule::{Follows, NotNegative, OneOf, Required};
use super::rules::Rules;

const PROBE: Rules = &[
    ("initialDelaySeconds", NotNegative),
    ("timeoutSeconds", NotNegative),
    ("periodSeconds", NotNegative),
    ("successThreshold", NotNegative),
    ("failureThreshold", NotNegative),
];

/// Validates the hooks and probes of a container that keeps running.
pub(super) fn check(container: &At<'_>, context: &ContainerContext<'_>) {
    for hook in container.get("lifecycle").find_all(&["postStart", "preStop"]) {
        check_handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], context);
    }
    for (field, is_about_readiness) in
        [("livenessProbe", false), ("readinessProbe", true), ("startupProbe", false)]
    {
        let Some(probe) = container.find(field) else { continue };
        check_handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], context);
        probe.check_fields(PROBE);
        let (successes, grace) =
            (probe.get("successThreshold"), probe.get("terminationGracePeriodSeconds"));
        grace.invalid_if(grace.is_set() && grace.int() <= 0, "must be greater than 0");
        successes.invalid_if(!is_about_readiness && successes.int() != 1, "must be 1");
        let is_useless = is_about_readiness && grace.is_set();
        grace.invalid_if(is_useless, "must not be set for readinessProbes");
    }
}

/// Validates that exactly one of `handlers` is set.
fn check_handler(holder: &At<'_>, handlers: &[&str], context: &ContainerContext<'_>) {
    let mut found = handlers.iter().filter_map(|kind| Some((*kind, holder.find(kind)?)));
    match found.next() {
        None => holder.required("must specify a handler type"),
        Some(("exec", handler)) => handler.get("command").check(Required),
        Some(("httpGet", handler)) => check_http(&handler),
        Some(("sleep", handler)) => check_sleep(&handler, context.grace_period),
        Some((_socket_or_grpc, handler)) => ports::check_reference(&handler.get("port")),
    }
    found.for_each(|(_, another)| another.forbidden("may not specify more than 1 handler type"));
}

/// Validates `httpGet`; headers are reported without an index.
fn check_http(handler: &At<'_>) {
    ports::check_reference(&handler.get("port"));
    handler.get("scheme").check(OneOf(&["HTTP", "HTTPS"]));
    let headers = handler.get("httpHeaders");
    for header in headers.items() {
        header.get("name").reported_at(headers.path()).check(Follows(http_header));
    }
}

/// Validates `sleep`; the error is reported at the handler, not at its `seconds`.
fn check_sleep(handler: &At<'_>, grace_period: Option<i64>) {
    let seconds = handler.get("seconds").int();
    let Some(grace) = grace_period else { return };
    if seconds < 0 || seconds > grace {
        let why =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        handler.invalid_as(seconds.to_string(), &why);
    }
}
