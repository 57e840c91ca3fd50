//! Why a check has not passed.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::words::count;
use daemonset::model::{Bound, NodeName};

/// A value of a series, which may be infinite or not a number: in JSON a text, as Prometheus writes
/// it.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(with = "String")]
pub struct SampleValue(pub f64);

/// By its bits, so that a reason equals itself.
impl PartialEq for SampleValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for SampleValue {}

impl fmt::Display for SampleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            value if value == f64::INFINITY => f.write_str("+Inf"),
            value if value == f64::NEG_INFINITY => f.write_str("-Inf"),
            value => write!(f, "{value}"),
        }
    }
}

impl Serialize for SampleValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SampleValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| de::Error::custom(format!("`{text}` is not a number")))
    }
}

/// Why a check has not passed, with every number that its sentence prints. Text in it may come from
/// others: escape it before it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CheckReason {
    /// A series is out of bounds more often than allowed.
    OutOfBounds {
        /// The labels of the series; empty if it has none.
        series: String,
        /// The last value out of bounds.
        value: SampleValue,
        /// Its time.
        at: Timestamp,
        /// Smallest value that passes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Bound>,
        /// Largest value that passes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<Bound>,
        /// Number of its samples out of bounds.
        failed: usize,
        /// Number of its samples.
        samples: usize,
        /// Number of samples that may fail.
        allowed: u32,
        /// Number of other series that are out of bounds more often than allowed, too.
        others: usize,
    },
    /// A request or program has not answered as expected.
    NotExpected {
        /// What it has answered.
        detail: String,
        /// The time of the answer.
        at: Timestamp,
        /// Number of samples that have failed.
        failed: u32,
        /// Number of samples that may fail.
        allowed: u32,
    },
    /// There is no answer.
    Unanswered {
        /// Why.
        message: String,
    },
    /// The server says that its answer may be incomplete.
    Warnings {
        /// The first warning.
        first: String,
        /// Number of the others.
        others: usize,
    },
    /// The query has no series: unknown, unless the policy says that this fails (`empty`).
    Empty,
    /// A series has a sample that is not a number.
    NotANumber {
        /// The labels of the series; empty if it has none.
        series: String,
        /// Time of the sample.
        at: Timestamp,
    },
    /// Samples are missing.
    Missing {
        /// The labels of the series; empty if it has none.
        series: String,
        /// Number of missing samples.
        missing: usize,
        /// Number of samples that there should be.
        expected: usize,
    },
    /// Conditions of nodes are not as expected, or absent.
    NodeConditions {
        /// The first of them.
        nodes: Vec<ConditionFinding>,
        /// Number of the others.
        others: usize,
    },
    /// Pods are not Ready.
    PodsNotReady {
        /// The first of them.
        pods: Vec<PodFinding>,
        /// Number of the others.
        others: usize,
    },
    /// Pods are there that should not be.
    PodsPresent {
        /// The first of them.
        pods: Vec<PodFinding>,
        /// Number of the others.
        others: usize,
    },
}

/// A condition of a node that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionFinding {
    /// The node.
    pub node: NodeName,
    /// The type of the condition.
    pub condition: String,
    /// Its status; none if the node has no such condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The expected status.
    pub expected: String,
    /// Time since which it has this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A pod that a check has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodFinding {
    /// `NAMESPACE/NAME`.
    pub pod: String,
    /// Its node; none while it is not scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// Time since which it is not Ready, or since which it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl CheckReason {
    /// The reason if there is no answer.
    pub fn unanswered(message: impl Into<String>) -> Self {
        Self::Unanswered { message: message.into() }
    }

    /// Whether it may be about a node: it names it, or it names no nodes, or not all of them.
    pub fn is_about(&self, node: &NodeName) -> bool {
        match self {
            Self::NodeConditions { nodes, others } => {
                *others > 0 || nodes.iter().any(|it| it.node == *node)
            }
            Self::PodsNotReady { pods, others } | Self::PodsPresent { pods, others } => {
                let is_there = |it: &PodFinding| it.node.as_ref().is_none_or(|it| it == node);
                *others > 0 || pods.iter().any(is_there)
            }
            Self::OutOfBounds { .. }
            | Self::NotExpected { .. }
            | Self::Unanswered { .. }
            | Self::Warnings { .. }
            | Self::Empty
            | Self::NotANumber { .. }
            | Self::Missing { .. } => true,
        }
    }

    /// The earliest time since which something that it names is as it is.
    pub fn since(&self) -> Option<Timestamp> {
        match self {
            Self::NodeConditions { nodes, others: _ } => {
                nodes.iter().filter_map(|it| it.since).min()
            }
            Self::PodsNotReady { pods, others: _ } | Self::PodsPresent { pods, others: _ } => {
                pods.iter().filter_map(|it| it.since).min()
            }
            Self::OutOfBounds { .. }
            | Self::NotExpected { .. }
            | Self::Unanswered { .. }
            | Self::Warnings { .. }
            | Self::Empty
            | Self::NotANumber { .. }
            | Self::Missing { .. } => None,
        }
    }
}

impl fmt::Display for CheckReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds { series, value, at, min, max, failed, samples, allowed, others } => {
                write!(f, "{value} at {at}")?;
                match (min, max) {
                    (Some(min), Some(max)) => write!(f, ", from {min} to {max} allowed")?,
                    (Some(min), None) => write!(f, ", at least {min} allowed")?,
                    (None, Some(max)) => write!(f, ", at most {max} allowed")?,
                    (None, None) => {}
                }
                of_series(f, series)?;
                write!(f, " ({failed} of {} failed, {allowed} may", count(*samples, "sample"))?;
                if *others > 0 {
                    write!(f, "; {} more like it", count(*others, "series"))?;
                }
                f.write_str(")")
            }
            Self::NotExpected { detail, at, failed, allowed } => {
                write!(f, "{detail} at {at} ({} failed, {allowed} may)", count(*failed, "sample"))
            }
            Self::Empty => f.write_str("the query has no series"),
            Self::Unanswered { message } => f.write_str(message),
            Self::Warnings { first, others } => {
                write!(f, "the answer may be incomplete: {first}")?;
                if *others > 0 {
                    write!(f, " and {}", count(*others, "more warning"))?;
                }
                Ok(())
            }
            Self::NotANumber { series, at } => {
                write!(f, "not a number at {at}")?;
                of_series(f, series)
            }
            Self::Missing { series, missing, expected } => {
                write!(f, "{missing} of {} missing", count(*expected, "sample"))?;
                of_series(f, series)
            }
            Self::NodeConditions { nodes, others } => list(f, nodes, *others, "node condition"),
            Self::PodsNotReady { pods, others } => {
                let each = pods.iter().map(NotReady);
                list(f, &each.collect::<Vec<_>>(), *others, "pod")
            }
            Self::PodsPresent { pods, others } => {
                let each = pods.iter().map(Present);
                list(f, &each.collect::<Vec<_>>(), *others, "pod")
            }
        }
    }
}

/// `node a-1 has NetworkUnavailable=True since 2026-01-01T00:00:00Z, not False`.
impl fmt::Display for ConditionFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, condition, status, expected, since } = self;
        let Some(status) = status else { return write!(f, "node {node} has no {condition}") };
        write!(f, "node {node} has {condition}={status}")?;
        since.iter().try_for_each(|since| write!(f, " since {since}"))?;
        write!(f, ", not {expected}")
    }
}

/// A pod, and where it is.
impl fmt::Display for PodFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, node, since: _ } = self;
        write!(f, "pod {pod}")?;
        node.iter().try_for_each(|node| write!(f, " on node {node}"))
    }
}

struct NotReady<'a>(&'a PodFinding);

impl fmt::Display for NotReady<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not Ready", self.0)?;
        self.0.since.iter().try_for_each(|since| write!(f, " since {since}"))
    }
}

struct Present<'a>(&'a PodFinding);

impl fmt::Display for Present<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is there", self.0)
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    all: &[impl fmt::Display],
    others: usize,
    noun: &str,
) -> fmt::Result {
    for (at, one) in all.iter().enumerate() {
        write!(f, "{}{one}", if at == 0 { "" } else { "; " })?;
    }
    if others == 0 { Ok(()) } else { write!(f, "; and {}", count(others, &format!("more {noun}"))) }
}

fn of_series(f: &mut fmt::Formatter<'_>, series: &str) -> fmt::Result {
    if series.is_empty() { Ok(()) } else { write!(f, ", of {{{series}}}") }
}
