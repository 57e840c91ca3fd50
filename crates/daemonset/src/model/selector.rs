//! Label selectors, which select the pods and revisions that a DaemonSet may claim.

use serde::{Deserialize, Serialize};

use super::Labels;
use super::scheduling::null_as_default;

/// `spec.selector` of a DaemonSet (upstream: `metav1.LabelSelector`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that an object must have, all of them.
    pub match_labels: Labels,
    /// Requirements that must all hold.
    #[serde(deserialize_with = "null_as_default")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One requirement of a label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    /// Label key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Operands of `In` and `NotIn`.
    #[serde(deserialize_with = "null_as_default")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Whether it has no requirement at all. Such a selector would match everything; the
    /// controller touches nothing then (upstream event `SelectingAll`).
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether `labels` satisfy every requirement; an unknown operator satisfies nothing.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, want)| labels.get(key) == Some(want))
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }
}

impl LabelSelectorRequirement {
    /// Whether `labels` satisfy it; an unknown operator is never satisfied.
    pub fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let listed = || value.is_some_and(|v| self.values.iter().any(|want| want == v));
        match self.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_read_as_upstream_reads_them() {
        let labels: Labels = [("app", "agent"), ("tier", "node")].into_iter().collect();
        for (selector, want) in [
            (r#"{"matchLabels":{"app":"agent"}}"#, true),
            (r#"{"matchLabels":{"app":"agent","tier":"other"}}"#, false),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"In","values":["x","agent"]}]}"#,
                true,
            ),
            (r#"{"matchExpressions":[{"key":"none","operator":"NotIn","values":["x"]}]}"#, true),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"NotIn","values":["agent"]}]}"#,
                false,
            ),
            (r#"{"matchExpressions":[{"key":"tier","operator":"Exists","values":null}]}"#, true),
            (r#"{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}"#, false),
            (r#"{"matchExpressions":[{"key":"tier","operator":"Like","values":["node"]}]}"#, false),
        ] {
            let parsed: LabelSelector = serde_json::from_str(selector).unwrap();
            assert_eq!(parsed.matches(&labels), want, "{selector}");
        }
    }
}
