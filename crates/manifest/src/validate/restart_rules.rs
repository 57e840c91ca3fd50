//! Restart policies and rules of a container (upstream: `validateContainerRestartPolicy`).

use super::at::{At, Errors};

const NEEDS_POLICY: &str = "must specify restartPolicy when restart rules are used";
const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

/// Validates `restartPolicy` and `restartPolicyRules` of a container.
pub(super) fn check(container: &At<'_>, errors: &mut Errors) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    policy.one_of_if_set(&["Always", "Never", "OnFailure"], errors);
    if rules.is_empty() {
        return;
    }
    if !policy.is_set() {
        errors.push(policy.required(NEEDS_POLICY));
    }
    if rules.items().len() > MAX_RULES {
        errors.push(rules.too_many(MAX_RULES));
    }
    for rule in rules.items() {
        check_rule(&rule, errors);
    }
}

/// Validates an init container, whose rules are ignored without a policy.
pub(super) fn check_init(container: &At<'_>, errors: &mut Errors) {
    let policy = container.get("restartPolicy");
    if policy.is_set() {
        check(container, errors);
    } else if !container.get("restartPolicyRules").is_empty() {
        errors.push(policy.required(NEEDS_POLICY));
    }
}

fn check_rule(rule: &At<'_>, errors: &mut Errors) {
    rule.get("action").one_of(&["Restart", "RestartAllContainers"], errors);
    match rule.find("exitCodes") {
        None => errors.push(rule.get("exitCodes").required("must be specified")),
        Some(codes) => {
            codes.get("operator").one_of(&["In", "NotIn"], errors);
            if codes.get("values").items().len() > MAX_EXIT_CODES {
                errors.push(codes.get("values").too_many(MAX_EXIT_CODES));
            }
        }
    }
}
