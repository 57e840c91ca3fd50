//! Steps and domains of a rollout: which nodes come first, and how long the next ones wait.

use std::fmt;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::{IntOrPercentSchema, Labels};
use crate::model::{IntOrPercent, LabelSelector, LabelSelectorRequirement, NodeName};

/// A set of nodes that is complete before the next one begins. It contains the nodes of all earlier
/// steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyStep {
    /// Its name, unique in the policy: lowercase letters, digits and `-`, at most 40 characters.
    pub name: String,
    /// Its nodes: a number, a percentage of the desired nodes (rounded up), `names` of nodes, or a
    /// label selector (`matchLabels`, `matchExpressions`).
    #[schemars(with = "StepNodesSchema")]
    pub nodes: StepNodes,
    /// Key of a node label: a number or percentage of nodes is spread evenly over its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    /// Maximum number of desired nodes without an available pod during the step; makes the other
    /// limits stricter, never looser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<IntOrPercentSchema>")]
    pub max_unavailable: Option<IntOrPercent>,
    /// Whether `ds-apply approve` must allow it before it begins.
    #[serde(default)]
    pub approve: bool,
    /// Time for which all its new pods must stay Ready, without a restart, before the next step
    /// begins or the rollout ends, such as `30m` or `1h`.
    #[serde(default)]
    pub soak: Soak,
}

/// The nodes of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepNodes {
    /// This many of the desired nodes.
    Count(IntOrPercent),
    /// The nodes that it selects.
    Selected(StepSelector),
}

/// Selects nodes by name or by label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepSelector {
    /// Nodes with these names.
    Names(Vec<NodeName>),
    /// Nodes with matching labels.
    Labels(LabelSelector),
}

/// A time for which new pods must stay Ready, in seconds; zero by default.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Soak(
    /// Seconds.
    pub u32,
);

/// Groups of nodes by the value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Domains {
    /// Key of the node label, such as `topology.kubernetes.io/zone`. Nodes without it are a domain
    /// of their own, the last one.
    pub key: String,
    /// Maximum number of domains that may have an unavailable node at the same time.
    #[serde(default = "one")]
    pub at_once: u32,
    /// Maximum number of nodes without an available pod in each domain; a percentage is of the
    /// domain's desired nodes, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<IntOrPercentSchema>")]
    pub max_unavailable: Option<IntOrPercent>,
    /// The domains that come first, in this order; the others follow by name.
    #[serde(default)]
    pub first: Vec<String>,
    /// Time for which the new pods of a domain must stay Ready before the next domain or step
    /// begins, or the rollout ends.
    #[serde(default)]
    pub soak: Soak,
}

/// The template that is live while a rollout waits between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhileWaiting {
    /// The last one that finished all steps: nodes that join and pods that are recreated get it.
    #[default]
    LastGood,
    /// The one that is rolled out.
    Target,
}

fn one() -> u32 {
    1
}

impl TryFrom<String> for Soak {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let error = || format!("`{text}` is not a duration such as 90s, 30m or 1h30m");
        let duration: SignedDuration = text.parse().map_err(|_| error())?;
        if duration.subsec_nanos() != 0 {
            return Err(format!("`{text}` is not a whole number of seconds"));
        }
        u32::try_from(duration.as_secs()).map(Self).map_err(|_| error())
    }
}

impl From<Soak> for String {
    fn from(soak: Soak) -> Self {
        soak.to_string()
    }
}

impl fmt::Display for Soak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", SignedDuration::from_secs(self.0.into()))
    }
}

impl Soak {
    /// Whether it is no time at all.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Its length.
    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_secs(self.0.into())
    }
}

impl StepSelector {
    /// Whether it selects a node with this name and these labels.
    pub fn selects(&self, name: &NodeName, labels: &Labels) -> bool {
        match self {
            Self::Names(names) => names.contains(name),
            Self::Labels(selector) => selector.matches(labels),
        }
    }
}

impl<'de> Deserialize<'de> for StepNodes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let count = |value: Value| IntOrPercent::deserialize(value).map_err(de::Error::custom);
        match value {
            Value::Number(_) | Value::String(_) => Ok(Self::Count(count(value)?)),
            Value::Object(_) => {
                let selector: Selector = Selector::deserialize(value).map_err(de::Error::custom)?;
                Ok(Self::Selected(selector.checked().map_err(de::Error::custom)?))
            }
            Value::Null | Value::Bool(_) | Value::Array(_) => Err(de::Error::custom(
                "expected a number, a percentage such as 5%, `names`, or a label selector",
            )),
        }
    }
}

/// A selector as written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Selector {
    names: Option<Vec<NodeName>>,
    #[serde(default)]
    match_labels: Labels,
    #[serde(default)]
    match_expressions: Vec<LabelSelectorRequirement>,
}

impl Selector {
    fn checked(self) -> Result<StepSelector, String> {
        let Self { names, match_labels, match_expressions } = self;
        let labels = LabelSelector { match_labels, match_expressions };
        match names {
            Some(_) if !labels.is_empty() => {
                Err("set either `names` or a label selector, not both".to_owned())
            }
            Some(names) if names.is_empty() => Err("`names` is empty".to_owned()),
            Some(names) => Ok(StepSelector::Names(names)),
            None if labels.is_empty() => {
                Err("set `names`, `matchLabels` or `matchExpressions`".to_owned())
            }
            None => {
                labels.match_expressions.iter().try_for_each(check)?;
                Ok(StepSelector::Labels(labels))
            }
        }
    }
}

/// Reads a label selector strictly: with a misspelt field, it would select everything. For
/// `deserialize_with`.
pub(super) fn label_selector<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<LabelSelector, D::Error> {
    match Selector::deserialize(deserializer)?.checked().map_err(de::Error::custom)? {
        StepSelector::Labels(selector) => Ok(selector),
        StepSelector::Names(_) => {
            Err(de::Error::custom("set `matchLabels` or `matchExpressions`, not `names`"))
        }
    }
}

/// Upstream's rules for a requirement (`ValidateLabelSelectorRequirement`).
fn check(requirement: &LabelSelectorRequirement) -> Result<(), String> {
    let LabelSelectorRequirement { key, operator, values } = requirement;
    if key.is_empty() {
        return Err("a requirement has no `key`".to_owned());
    }
    match (operator.as_str(), values.is_empty()) {
        ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => Ok(()),
        ("In" | "NotIn", true) => Err(format!("`{operator}` of `{key}` needs `values`")),
        ("Exists" | "DoesNotExist", false) => {
            Err(format!("`{operator}` of `{key}` takes no `values`"))
        }
        _unknown => {
            Err(format!("`{operator}` is not an operator: use In, NotIn, Exists or DoesNotExist"))
        }
    }
}

impl Serialize for StepNodes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => count.serialize(serializer),
            Self::Selected(StepSelector::Names(names)) => {
                serde_json::json!({"names": names}).serialize(serializer)
            }
            Self::Selected(StepSelector::Labels(selector)) => selector.serialize(serializer),
        }
    }
}

/// `canary: 5%, soak 1h`.
impl fmt::Display for PolicyStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, nodes, spread, max_unavailable, approve, soak } = self;
        write!(f, "{name}: {nodes}")?;
        spread.iter().try_for_each(|key| write!(f, " over {key}"))?;
        max_unavailable.iter().try_for_each(|limit| write!(f, ", maxUnavailable {limit}"))?;
        if *approve {
            f.write_str(", approve")?;
        }
        if soak.is_zero() { Ok(()) } else { write!(f, ", soak {soak}") }
    }
}

impl fmt::Display for StepNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Selected(StepSelector::Names(names)) => {
                let names: Vec<&str> = names.iter().map(NodeName::as_str).collect();
                f.write_str(&names.join(" "))
            }
            Self::Selected(StepSelector::Labels(selector)) => selector.fmt(f),
        }
    }
}

/// `topology.kubernetes.io/zone, 1 at once`.
impl fmt::Display for Domains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, at_once, max_unavailable, first, soak } = self;
        write!(f, "{key}, {at_once} at once")?;
        max_unavailable.iter().try_for_each(|limit| write!(f, ", maxUnavailable {limit}"))?;
        if !first.is_empty() {
            write!(f, ", first {}", first.join(" "))?;
        }
        if soak.is_zero() { Ok(()) } else { write!(f, ", soak {soak}") }
    }
}

/// The JSON schema of [`StepNodes`].
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum StepNodesSchema {
    /// A number of nodes, or a percentage of the desired ones such as `5%`.
    Count(IntOrPercentSchema),
    /// Names of nodes.
    #[serde(rename_all = "camelCase")]
    Names { names: Vec<String> },
    /// A label selector, as in Kubernetes.
    Labels(LabelsSchema),
}

/// A label selector, as in Kubernetes.
#[derive(JsonSchema)]
#[schemars(rename = "LabelSelector")]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct LabelsSchema {
    /// Labels that it must have, all of them.
    match_labels: Option<std::collections::BTreeMap<String, String>>,
    /// Requirements that must all hold.
    match_expressions: Option<Vec<RequirementSchema>>,
}

/// The JSON schema of a requirement of a label selector.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct RequirementSchema {
    /// Label key.
    key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    operator: String,
    /// Operands of `In` and `NotIn`.
    values: Option<Vec<String>>,
}
