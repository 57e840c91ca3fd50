//! The checks of a policy: what is asked before a node begins (preconditions), and what updated
//! nodes must keep (gates).
//!
//! Not here: asking, and the judgement of an answer.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Soak;
use crate::model::{CheckEndpoint, LabelSelector};

/// A check, with what it asks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenCheck")]
pub struct Check {
    /// Its name, unique in the policy.
    pub name: String,
    /// Time between two samples.
    pub interval: Soak,
    /// Time from the first available new pod of a step to the first sample.
    pub delay: Soak,
    /// Number of samples that may fail.
    pub allow: u32,
    /// Unknown for longer than this, the rollout is paused.
    pub unknown_for: Soak,
    /// What is asked.
    pub kind: CheckKind,
}

/// What a check asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// A range query.
    Prometheus(PrometheusCheck),
    /// An HTTP request.
    Http(HttpCheck),
    /// A program and its arguments.
    Command(Vec<String>),
    /// Conditions that a node must have, with their status.
    NodeConditions(BTreeMap<String, String>),
    /// Pods next to the new one.
    Pods(PodsCheck),
}

/// A check as written in a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Check")]
pub(super) struct WrittenCheck {
    /// Its name, unique among all checks of the policy: lowercase letters, digits and `-`, at most
    /// 40 characters.
    name: String,
    /// Time between two samples, at least `1s`.
    #[serde(default = "a_minute")]
    interval: Soak,
    /// Time from the first available new pod of a step to the first sample. Only for gates.
    #[serde(default)]
    delay: Soak,
    /// Number of samples that may fail.
    #[serde(default)]
    allow: u32,
    /// The rollout is paused if the answer is unknown for longer than this.
    #[serde(default = "an_hour")]
    unknown_for: Soak,
    /// A range query to Prometheus; each point of each of its series must be within the bounds.
    #[serde(default)]
    prometheus: Option<PrometheusCheck>,
    /// An HTTP request (`GET`) that must be answered with the expected status.
    #[serde(default)]
    http: Option<HttpCheck>,
    /// A program with its arguments: exit status 0 passes, 1 fails, everything else is unknown. It
    /// runs only with `--allow-commands`.
    #[serde(default)]
    command: Option<Vec<String>>,
    /// Conditions of a node and the status that they must have, such as `Ready: "True"`.
    #[serde(default)]
    node_conditions: Option<BTreeMap<String, String>>,
    /// Other pods that must stay Ready, or must not be there.
    #[serde(default)]
    pods: Option<PodsCheck>,
}

/// A range query to Prometheus.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrometheusCheck {
    /// Address of the server: `https`, or `http` to loopback or to a Service (`NAME.NAMESPACE.svc`),
    /// with an optional path prefix.
    pub address: String,
    /// The query. `{{nodes}}` and `{{others}}` are regular expressions for the updated and for the
    /// other nodes; `{{namespace}}` and `{{name}}` are those of the DaemonSet.
    pub query: String,
    /// Smallest value that passes.
    #[serde(default)]
    pub min: Option<Bound>,
    /// Largest value that passes.
    #[serde(default)]
    pub max: Option<Bound>,
    /// The answer if the query has no series.
    #[serde(default)]
    pub empty: EmptyAnswer,
}

/// An HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpCheck {
    /// The URL: `https`, or `http` to loopback or to a Service (`NAME.NAMESPACE.svc`). Redirects are
    /// not followed.
    pub url: String,
    /// The expected status.
    #[serde(default = "ok")]
    pub status: u16,
}

/// Other pods.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodsCheck {
    /// Label selector of the pods; may be left out if `resource` is set.
    #[serde(default, deserialize_with = "super::steps::label_selector")]
    #[schemars(with = "Option<super::steps::LabelsSchema>")]
    pub selector: LabelSelector,
    /// Only pods that request this resource, such as `nvidia.com/gpu`.
    #[serde(default)]
    pub resource: Option<String>,
    /// What is expected of them.
    #[serde(default)]
    pub expect: ExpectedPods,
    /// Where they are looked for.
    // YAML 1.1, as Kubernetes reads it, has a key `on` as `true`.
    #[serde(default, alias = "true")]
    pub on: PodsOn,
}

/// The answer of an empty query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EmptyAnswer {
    /// Unknown: a metric that is misspelt must not pass.
    #[default]
    Unknown,
    /// It passes.
    Pass,
    /// It fails.
    Fail,
}

/// What is expected of other pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ExpectedPods {
    /// Those that were Ready before the new pod stay Ready.
    #[default]
    Ready,
    /// There are none. Only for preconditions.
    Absent,
}

/// Where other pods are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PodsOn {
    /// On the node itself.
    #[default]
    Node,
    /// In the whole cluster.
    Cluster,
}

/// A bound of values: a finite number, so that two can be compared.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, JsonSchema)]
pub struct Bound(f64);

impl Eq for Bound {}

impl Bound {
    /// The bound, if it is finite.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// Its value.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| de::Error::custom(format!("{value} is not a finite number")))
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn a_minute() -> Soak {
    Soak(60)
}

fn an_hour() -> Soak {
    Soak(60 * 60)
}

fn ok() -> u16 {
    200
}

impl TryFrom<WrittenCheck> for Check {
    type Error = String;

    fn try_from(written: WrittenCheck) -> Result<Self, Self::Error> {
        let WrittenCheck {
            name,
            interval,
            delay,
            allow,
            unknown_for,
            prometheus,
            http,
            command,
            node_conditions,
            pods,
        } = written;
        let mut kinds = [
            prometheus.map(CheckKind::Prometheus),
            http.map(CheckKind::Http),
            command.map(CheckKind::Command),
            node_conditions.map(CheckKind::NodeConditions),
            pods.map(CheckKind::Pods),
        ]
        .into_iter()
        .flatten();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err(format!(
                "check `{name}`: set exactly one of `prometheus`, `http`, `command`, \
                 `nodeConditions` and `pods`"
            ));
        };
        Ok(Self { name, interval, delay, allow, unknown_for, kind })
    }
}

impl Check {
    /// Whom to ask.
    pub fn endpoint(&self) -> CheckEndpoint {
        match &self.kind {
            CheckKind::Prometheus(PrometheusCheck { address, query, .. }) => {
                CheckEndpoint::Prometheus { address: address.clone(), query: query.clone() }
            }
            CheckKind::Http(HttpCheck { url, status }) => {
                CheckEndpoint::Http { url: url.clone(), status: *status }
            }
            CheckKind::Command(command) => CheckEndpoint::Command(command.clone()),
            CheckKind::NodeConditions(_) | CheckKind::Pods(_) => CheckEndpoint::Cluster,
        }
    }

    /// Whether the observed cluster has the answer.
    pub fn is_of_cluster(&self) -> bool {
        matches!(self.kind, CheckKind::NodeConditions(_) | CheckKind::Pods(_))
    }

    /// Whether it is answered only for moments at which a run asks.
    pub fn is_sampled(&self) -> bool {
        !matches!(self.kind, CheckKind::Prometheus(_))
    }
}

impl fmt::Display for CheckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prometheus(PrometheusCheck { address: _, query, min, max, empty: _ }) => {
                f.write_str(query)?;
                min.iter().try_for_each(|min| write!(f, ", at least {min}"))?;
                max.iter().try_for_each(|max| write!(f, ", at most {max}"))
            }
            Self::Http(HttpCheck { url, status }) => {
                write!(f, "{} has status {status}", WithoutQuery(url))
            }
            Self::Command(command) => write!(f, "`{}` exits with 0", command.join(" ")),
            Self::NodeConditions(conditions) => {
                let each = conditions.iter().map(|(name, status)| format!("{name}={status}"));
                write!(f, "node conditions {}", each.collect::<Vec<_>>().join(", "))
            }
            Self::Pods(PodsCheck { selector, resource, expect, on }) => {
                f.write_str("pods")?;
                if !selector.is_empty() {
                    write!(f, " {selector}")?;
                }
                resource.iter().try_for_each(|resource| write!(f, " with {resource}"))?;
                f.write_str(match on {
                    PodsOn::Node => " on the node",
                    PodsOn::Cluster => " in the cluster",
                })?;
                f.write_str(match expect {
                    ExpectedPods::Ready => " stay Ready",
                    ExpectedPods::Absent => " are absent",
                })
            }
        }
    }
}

/// A URL without its query, in which some endpoints expect secrets: `https://x.example/up?…`.
struct WithoutQuery<'a>(&'a str);

impl fmt::Display for WithoutQuery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once(['?', '#']) {
            Some((shown, _)) => write!(f, "{shown}?…"),
            None => f.write_str(self.0),
        }
    }
}

/// `errors: rate(x[5m]), at most 0.01`.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, interval: _, delay, allow, unknown_for: _, kind } = self;
        write!(f, "{name}: {kind}")?;
        if *allow > 0 {
            write!(f, ", {allow} may fail")?;
        }
        if delay.is_zero() { Ok(()) } else { write!(f, ", after {delay}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_a_url_is_not_shown() {
        for (url, want) in [
            ("https://x.example/up", "https://x.example/up has status 200"),
            ("https://x.example/up?token=hunter8", "https://x.example/up?… has status 200"),
            ("https://x.example/up#hunter8", "https://x.example/up?… has status 200"),
        ] {
            let kind = CheckKind::Http(HttpCheck { url: url.to_owned(), status: 200 });
            assert_eq!(kind.to_string(), want);
        }
    }
}
