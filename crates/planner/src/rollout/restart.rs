//! `kubectl rollout restart`: it adds the time of the restart to the live template. The annotation
//! belongs to kubectl, so it stays when `ds-apply` writes another template.

use std::borrow::Cow;

use serde_json::Value;

use super::decision::is_template;
use daemonset::controller::revision_data::{Matching, data_for, matches};
use daemonset::model::DaemonSet;

/// The annotation of the template.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// Whether the live template equals this one, but for a restart.
pub(super) fn is_template_but_for_restart(live: &DaemonSet, template: &Value) -> bool {
    let raw = live.spec.template.raw();
    is_template(live, template)
        || matches(&without_restart(raw), &data_for(&without_restart(template)), Matching::Tolerant)
}

/// Whether the live template has another time of restart than this one.
pub(super) fn is_restarted(live: &DaemonSet, template: &Value) -> bool {
    let time =
        |template: &Value| annotations(template).and_then(|it| it.get(RESTARTED_AT)).cloned();
    let live = time(live.spec.template.raw());
    live.is_some() && live != time(template)
}

fn annotations(template: &Value) -> Option<&serde_json::Map<String, Value>> {
    template.pointer("/metadata/annotations")?.as_object()
}

fn without_restart(template: &Value) -> Cow<'_, Value> {
    let Some(others) = annotations(template).filter(|it| it.contains_key(RESTARTED_AT)) else {
        return Cow::Borrowed(template);
    };
    let mut template = template.clone();
    if others.len() == 1 {
        template["metadata"].as_object_mut().map(|it| it.remove("annotations"));
    } else {
        template["metadata"]["annotations"].as_object_mut().map(|it| it.remove(RESTARTED_AT));
    }
    Cow::Owned(template)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use daemonset::controller::test_cluster::Cluster;

    /// Annotations of the live template and of another one; whether they are equal but for a
    /// restart, and whether the live one was restarted.
    #[test]
    fn only_the_time_of_the_restart_may_differ() {
        for (live, other, is_equal, restarted) in [
            (json!(null), json!(null), true, false),
            (json!({RESTARTED_AT: "now"}), json!(null), true, true),
            (json!({RESTARTED_AT: "now"}), json!({RESTARTED_AT: "before"}), true, true),
            (json!({RESTARTED_AT: "now"}), json!({RESTARTED_AT: "now"}), true, false),
            (json!(null), json!({RESTARTED_AT: "before"}), true, false),
            (json!({RESTARTED_AT: "now", "a": "b"}), json!({"a": "b"}), true, true),
            (json!({RESTARTED_AT: "now", "a": "b"}), json!({"a": "c"}), false, true),
            (json!({"a": "b"}), json!(null), false, false),
        ] {
            let with = |annotations: &Value| {
                let mut cluster = Cluster::of(0);
                cluster.edit(|spec| {
                    if !annotations.is_null() {
                        spec["template"]["metadata"]["annotations"] = annotations.clone();
                    }
                });
                cluster.daemon_set
            };
            let (live_set, other_set) = (with(&live), with(&other));
            let other_template = other_set.spec.template.raw();
            let found = (
                is_template_but_for_restart(&live_set, other_template),
                is_restarted(&live_set, other_template),
            );
            assert_eq!(found, (is_equal, restarted), "{live} {other}");
        }
    }
}
