//! `Faults`: what goes wrong in a rehearsal, and when.
//!
//! A document of our own, read by the embedded cluster and never sent anywhere. Times count from
//! the beginning of the rehearsal. Not here: what comes of a fault (`simulator`).

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Labels, Node, NodeName, Taint};

/// A list of faults, as it is written.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Faults {
    /// Version of this document's form.
    pub api_version: FaultsVersion,
    /// Always `Faults`.
    pub kind: FaultsKind,
    /// Images that do not do what they should.
    #[serde(default)]
    pub images: Vec<ImageFault>,
    /// What happens to nodes.
    #[serde(default)]
    pub nodes: Vec<NodeEvent>,
    /// Requests that the API server does not answer as it should.
    #[serde(default)]
    pub api: Vec<ApiFault>,
    /// When no controller of the control plane runs: not the DaemonSet controller, nor the one
    /// that finds lost nodes, nor the one that collects their pods.
    #[serde(default)]
    pub controller_manager_down: Vec<Period>,
}

/// Version of the document's form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum FaultsVersion {
    /// The first form; fields may be added.
    #[default]
    #[serde(rename = "ds-plan.dev/v1alpha1")]
    V1Alpha1,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum FaultsKind {
    /// Faults.
    #[default]
    Faults,
}

impl Default for Faults {
    /// No fault at all.
    fn default() -> Self {
        Self {
            api_version: FaultsVersion::default(),
            kind: FaultsKind::default(),
            images: Vec::new(),
            nodes: Vec::new(),
            api: Vec::new(),
            controller_manager_down: Vec::new(),
        }
    }
}

/// A span of time such as `90s`, `10m` or `1h30m`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Span(pub Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let error = || format!("`{text}` is no span of time such as 90s, 10m or 1h30m");
        let span: jiff::SignedDuration = text.parse().map_err(|_| error())?;
        Duration::try_from(span).map(Self).map_err(|_| error())
    }
}

impl From<Span> for String {
    fn from(Span(span): Span) -> Self {
        format!("{}s", span.as_secs_f64())
    }
}

/// From a moment on, and maybe until another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Period {
    /// When it begins; at once if nothing is said.
    pub from: Option<Span>,
    /// When it is over; never if nothing is said.
    pub until: Option<Span>,
}

impl Period {
    /// Whether `elapsed`, counted from the beginning, falls into it; its end does not.
    pub fn contains(&self, elapsed: Duration) -> bool {
        self.from.is_none_or(|Span(from)| from <= elapsed)
            && self.until.is_none_or(|Span(until)| elapsed < until)
    }
}

/// Which nodes: those named, and those with all of the labels. Nothing said means all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeSelection {
    /// Names of nodes.
    pub names: Vec<NodeName>,
    /// Labels, all of which a node must have.
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Labels,
}

impl NodeSelection {
    /// Whether the node is one of them.
    pub fn selects(&self, node: &Node) -> bool {
        let Self { names, labels } = self;
        let has_all = || labels.iter().all(|(key, want)| node.labels.get(key) == Some(want));
        (names.is_empty() && labels.is_empty())
            || names.contains(&node.name)
            || (!labels.is_empty() && has_all())
    }
}

/// An image that does not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "fault", rename_all = "camelCase", deny_unknown_fields)]
pub enum ImageFault {
    /// It cannot be pulled.
    NeverPulls {
        /// The image as the pod names it; a `*` at its end stands for anything.
        image: String,
        /// Where.
        #[serde(default)]
        nodes: NodeSelection,
    },
    /// Its container ends soon after it has started, again and again.
    CrashLoops {
        /// The image as the pod names it; a `*` at its end stands for anything.
        image: String,
        /// Where.
        #[serde(default)]
        nodes: NodeSelection,
        /// How long it runs; one second if nothing is said.
        #[serde(default = "one_second")]
        after: Span,
    },
    /// It takes longer to become ready.
    ReadyLate {
        /// The image as the pod names it; a `*` at its end stands for anything.
        image: String,
        /// Where.
        #[serde(default)]
        nodes: NodeSelection,
        /// How much longer.
        by: Span,
    },
}

fn one_second() -> Span {
    Span(Duration::from_secs(1))
}

impl ImageFault {
    /// Whether it strikes `image` on `node`.
    pub fn strikes(&self, image: &str, node: &Node) -> bool {
        let (Self::NeverPulls { image: pattern, nodes }
        | Self::CrashLoops { image: pattern, nodes, after: _ }
        | Self::ReadyLate { image: pattern, nodes, by: _ }) = self;
        let fits = match pattern.strip_suffix('*') {
            Some(prefix) => image.starts_with(prefix),
            None => image == pattern,
        };
        fits && nodes.selects(node)
    }
}

/// Something that happens to nodes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "camelCase", deny_unknown_fields)]
pub enum NodeEvent {
    /// Its kubelet is not heard of any more, and its pods neither start nor stop.
    Dies {
        /// When.
        at: Span,
        /// Which ones.
        nodes: NodeSelection,
    },
    /// Its kubelet is back.
    ComesBack {
        /// When.
        at: Span,
        /// Which ones.
        nodes: NodeSelection,
    },
    /// A node joins; it is ready at once.
    Added {
        /// When.
        at: Span,
        /// What it is called.
        name: NodeName,
        /// Its labels.
        #[serde(default)]
        #[schemars(with = "BTreeMap<String, String>")]
        labels: Labels,
        /// Its taints.
        #[serde(default)]
        taints: Vec<Taint>,
    },
    /// The node object goes, and the machine with it.
    Removed {
        /// When.
        at: Span,
        /// Which ones.
        nodes: NodeSelection,
    },
    /// Somebody cordons it.
    Cordoned {
        /// When.
        at: Span,
        /// Which ones.
        nodes: NodeSelection,
    },
    /// Somebody takes the cordon away.
    Uncordoned {
        /// When.
        at: Span,
        /// Which ones.
        nodes: NodeSelection,
    },
    /// Somebody changes labels of it.
    Relabelled {
        /// When.
        at: Span,
        /// Which ones.
        nodes: NodeSelection,
        /// Labels that it gets; `null` takes one away.
        labels: BTreeMap<String, Option<String>>,
    },
    /// Somebody taints it.
    Tainted {
        /// When.
        at: Span,
        /// Which ones.
        nodes: NodeSelection,
        /// The taint.
        taint: Taint,
    },
    /// Somebody takes taints away.
    Untainted {
        /// When.
        at: Span,
        /// Which ones.
        nodes: NodeSelection,
        /// Key of the taints.
        key: String,
    },
}

impl NodeEvent {
    /// When it happens, from the beginning on.
    pub fn at(&self) -> Duration {
        let (Self::Dies { at, .. }
        | Self::ComesBack { at, .. }
        | Self::Added { at, .. }
        | Self::Removed { at, .. }
        | Self::Cordoned { at, .. }
        | Self::Uncordoned { at, .. }
        | Self::Relabelled { at, .. }
        | Self::Tainted { at, .. }
        | Self::Untainted { at, .. }) = self;
        at.0
    }
}

/// Requests of the program under test that are not answered as they should be.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiFault {
    /// Which verbs: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`. All if nothing
    /// is said.
    #[serde(default)]
    pub verbs: Vec<String>,
    /// Which resources, such as `pods` or `daemonsets`. All if nothing is said.
    #[serde(default)]
    pub resources: Vec<String>,
    /// How many of a hundred requests it strikes; all of them if nothing is said.
    #[serde(default = "every")]
    pub percent: f64,
    /// When.
    #[serde(default)]
    pub when: Period,
    /// What happens to them.
    pub answer: FaultyAnswer,
}

fn every() -> f64 {
    100.0
}

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum FaultyAnswer {
    /// It is refused with this HTTP status, and not carried out.
    Refused(u16),
    /// It is carried out, and the answer is lost.
    Lost,
    /// It is carried out after so long.
    Late(Span),
    /// Somebody else was first: 409, and not carried out.
    Conflict,
    /// A watch ends after so long.
    Cut(Span),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::node;

    fn read(text: &str) -> Result<Faults, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_nobody_knows_is_an_error() {
        let head = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\n";
        for (text, fits) in [
            ("", true),
            ("images: [{fault: neverPulls, image: a}]", true),
            ("images: [{fault: crashLoops, image: a, after: 3s, nodes: {names: [node]}}]", true),
            ("images: [{fault: crashLoops, image: a, afte: 3s}]", false),
            ("images: [{fault: explodes, image: a}]", false),
            ("nodes: [{event: dies, at: 1m, nodes: {labels: {a: b}}}]", true),
            ("nodes: [{event: dies, at: soon, nodes: {}}]", false),
            ("nodes: [{event: dies, at: 1m, nodes: {}, for: 3s}]", false),
            ("nodes: [{event: relabelled, at: 1m, nodes: {}, labels: {a: null, b: c}}]", true),
            ("api: [{answer: {refused: 503}, percent: 5, verbs: [delete]}]", true),
            ("api: [{answer: lost}]", true),
            ("api: [{answer: late}]", false),
            ("controllerManagerDown: [{from: 10s, until: 1h}]", true),
            ("controllerManagerDown: [{from: 10s, to: 1h}]", false),
        ] {
            let read = read(&format!("{head}{text}\n"));
            assert_eq!(read.is_ok(), fits, "{text}: {read:?}");
        }
        assert!(read("apiVersion: ds-plan.dev/v1\nkind: Faults\n").is_err());
    }

    #[test]
    fn whom_a_fault_strikes() {
        let fault = |text: &str| -> ImageFault { serde_saphyr::from_str(text).unwrap() };
        let at = node("a", &[], &[]);
        for (text, image, want) in [
            ("{fault: neverPulls, image: x:1}", "x:1", true),
            ("{fault: neverPulls, image: x:1}", "x:12", false),
            ("{fault: neverPulls, image: 'x:*'}", "x:12", true),
            ("{fault: neverPulls, image: 'x:1', nodes: {names: [a]}}", "x:1", true),
            ("{fault: neverPulls, image: 'x:1', nodes: {names: [b]}}", "x:1", false),
            ("{fault: neverPulls, image: 'x:1', nodes: {labels: {not: there}}}", "x:1", false),
        ] {
            assert_eq!(fault(text).strikes(image, &at), want, "{text} {image}");
        }
    }

    #[test]
    fn a_period_has_its_beginning_and_not_its_end() {
        let period = |from, until| Period {
            from: Option::map(from, |s| Span(Duration::from_secs(s))),
            until: Option::map(until, |s| Span(Duration::from_secs(s))),
        };
        for (from, until, at, want) in [
            (None, None, 0, true),
            (Some(5), None, 4, false),
            (Some(5), None, 5, true),
            (None, Some(5), 5, false),
            (Some(1), Some(5), 4, true),
        ] {
            let inside = period(from, until).contains(Duration::from_secs(at));
            assert_eq!(inside, want, "{from:?} {until:?} {at}");
        }
    }
}
