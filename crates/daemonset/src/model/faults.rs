//! `Faults`: the faults of a rehearsal, with their times.
//!
//! A document of ds-plan, read by the embedded cluster and never sent anywhere. Times count from
//! the beginning of the rehearsal. The effects of faults are in `embedded`.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{DaemonSetKey, Labels, Node, NodeName, Taint};

/// A list of faults, as written in a file.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Faults {
    /// Version of this document's form.
    pub api_version: FaultsVersion,
    /// Always `Faults`.
    pub kind: FaultsKind,
    /// Faults of images.
    #[serde(default)]
    pub images: Vec<ImageFault>,
    /// Events on nodes.
    #[serde(default)]
    pub nodes: Vec<NodeEvent>,
    /// Requests that the API server fails, loses or delays.
    #[serde(default)]
    pub api: Vec<ApiFault>,
    /// Periods in which kube-controller-manager is down: the DaemonSet controller, the node
    /// lifecycle controller and the pod garbage collector.
    #[serde(default)]
    pub controller_manager_down: Vec<Period>,
    /// Approvals of steps (`ds-apply approve`). They are no faults, but what people do meanwhile.
    #[serde(default)]
    pub approvals: Vec<RehearsedApproval>,
    /// Answers of checks of policies. All others pass.
    #[serde(default)]
    pub checks: Vec<RehearsedCheck>,
}

/// The answer of a check for a time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RehearsedCheck {
    /// Its name in the policy.
    pub check: String,
    /// The beginning of this time. Default: the beginning of the rehearsal.
    #[serde(default)]
    pub from: Option<Span>,
    /// Its end, which is not part of it. Default: none.
    #[serde(default)]
    pub to: Option<Span>,
    /// The answer. Of several for the same time, the last one counts.
    pub answer: RehearsedAnswer,
}

/// What a check answers in a rehearsal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RehearsedAnswer {
    /// It passes.
    Pass,
    /// It fails.
    Fail,
    /// It is unknown: there is no answer, and nothing is measured.
    Unknown,
}

impl RehearsedCheck {
    /// The answer of this check at `elapsed`, counted from the beginning.
    pub fn answer_at(all: &[Self], check: &str, elapsed: Duration) -> RehearsedAnswer {
        let is_then = |it: &&Self| {
            let period = Period { from: it.from, until: it.to };
            it.check == check && period.contains(elapsed)
        };
        all.iter().rev().find(is_then).map_or(RehearsedAnswer::Pass, |it| it.answer)
    }
}

/// A step of a policy is approved during the rehearsal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RehearsedApproval {
    /// `NAMESPACE/NAME` of the DaemonSet. Default: all whose policy has the step.
    #[serde(default, deserialize_with = "key")]
    #[schemars(with = "Option<String>")]
    pub daemon_set: Option<DaemonSetKey>,
    /// The step.
    pub step: String,
    /// When it is approved. Default: the beginning of the rehearsal.
    #[serde(default)]
    pub at: Option<Span>,
}

fn key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DaemonSetKey>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
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
            approvals: Vec::new(),
            checks: Vec::new(),
        }
    }
}

/// A duration such as `90s`, `10m` or `1h30m`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Span(pub Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let error = || format!("`{text}` is not a duration such as 90s, 10m or 1h30m");
        let span: jiff::SignedDuration = text.parse().map_err(|_| error())?;
        Duration::try_from(span).map(Self).map_err(|_| error())
    }
}

impl From<Span> for String {
    fn from(Span(span): Span) -> Self {
        format!("{}s", span.as_secs_f64())
    }
}

/// A period with an optional beginning and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Period {
    /// Its beginning. Default: the beginning of the rehearsal.
    pub from: Option<Span>,
    /// Its end. Default: none.
    pub until: Option<Span>,
}

impl Period {
    /// Whether `elapsed`, counted from the beginning, is in the period; its end is excluded.
    pub fn contains(&self, elapsed: Duration) -> bool {
        self.from.is_none_or(|Span(from)| from <= elapsed)
            && self.until.is_none_or(|Span(until)| elapsed < until)
    }
}

/// The selected nodes: those named, and those with all of the labels. Default: all nodes.
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

/// A fault of an image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "fault", rename_all = "camelCase", deny_unknown_fields)]
pub enum ImageFault {
    /// The image cannot be pulled.
    NeverPulls {
        /// The image as in the pod; a `*` at its end matches any suffix.
        image: String,
        /// The nodes on which the fault occurs.
        #[serde(default)]
        nodes: NodeSelection,
    },
    /// The container exits soon after each start.
    CrashLoops {
        /// The image as in the pod; a `*` at its end matches any suffix.
        image: String,
        /// The nodes on which the fault occurs.
        #[serde(default)]
        nodes: NodeSelection,
        /// Time from start to exit. Default: one second.
        #[serde(default = "one_second")]
        after: Span,
    },
    /// The container becomes ready late.
    ReadyLate {
        /// The image as in the pod; a `*` at its end matches any suffix.
        image: String,
        /// The nodes on which the fault occurs.
        #[serde(default)]
        nodes: NodeSelection,
        /// The additional time.
        by: Span,
    },
}

fn one_second() -> Span {
    Span(Duration::from_secs(1))
}

impl ImageFault {
    /// Whether the fault affects `image` on `node`.
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

/// An event on nodes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "camelCase", deny_unknown_fields)]
pub enum NodeEvent {
    /// The kubelet stops reporting, and pods neither start nor stop.
    Dies {
        /// The time of the event.
        at: Span,
        /// The nodes.
        nodes: NodeSelection,
    },
    /// The kubelet reports again.
    ComesBack {
        /// The time of the event.
        at: Span,
        /// The nodes.
        nodes: NodeSelection,
    },
    /// A node joins and is ready at once.
    Added {
        /// The time of the event.
        at: Span,
        /// Its name.
        name: NodeName,
        /// Its labels.
        #[serde(default)]
        #[schemars(with = "BTreeMap<String, String>")]
        labels: Labels,
        /// Its taints.
        #[serde(default)]
        taints: Vec<Taint>,
    },
    /// The node object is deleted and the machine stops.
    Removed {
        /// The time of the event.
        at: Span,
        /// The nodes.
        nodes: NodeSelection,
    },
    /// Another user cordons the nodes.
    Cordoned {
        /// The time of the event.
        at: Span,
        /// The nodes.
        nodes: NodeSelection,
    },
    /// Another user uncordons the nodes.
    Uncordoned {
        /// The time of the event.
        at: Span,
        /// The nodes.
        nodes: NodeSelection,
    },
    /// Another user changes labels of the nodes.
    Relabelled {
        /// The time of the event.
        at: Span,
        /// The nodes.
        nodes: NodeSelection,
        /// Labels to set; `null` removes a label.
        labels: BTreeMap<String, Option<String>>,
    },
    /// Another user adds a taint.
    Tainted {
        /// The time of the event.
        at: Span,
        /// The nodes.
        nodes: NodeSelection,
        /// The taint.
        taint: Taint,
    },
    /// Another user removes taints.
    Untainted {
        /// The time of the event.
        at: Span,
        /// The nodes.
        nodes: NodeSelection,
        /// Key of the taints.
        key: String,
    },
}

impl NodeEvent {
    /// The time of the event, from the beginning of the rehearsal.
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

/// Requests of `ds-apply` that the API server fails, loses or delays.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiFault {
    /// The verbs: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`. Default: all.
    #[serde(default)]
    pub verbs: Vec<String>,
    /// The resources, such as `pods` or `daemonsets`. Default: all.
    #[serde(default)]
    pub resources: Vec<String>,
    /// The percentage of the requests that are affected. Default: 100.
    #[serde(default = "every")]
    pub percent: f64,
    /// The period in which requests are affected.
    #[serde(default)]
    pub when: Period,
    /// The result of the affected requests.
    pub answer: FaultyAnswer,
}

fn every() -> f64 {
    100.0
}

/// The result of an affected request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum FaultyAnswer {
    /// The request is refused with this HTTP status and not executed.
    Refused(u16),
    /// The request is executed, but the response is lost.
    Lost,
    /// The request is executed after this delay.
    Late(Span),
    /// The request fails with 409 Conflict and is not executed.
    Conflict,
    /// The watch ends after this time.
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
    fn unknown_fields_and_values_are_errors() {
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
            ("checks: [{check: errors, from: 10s, to: 1h, answer: fail}]", true),
            ("checks: [{check: errors, answer: unknown}]", true),
            ("checks: [{check: errors}]", false),
            ("checks: [{check: errors, answer: maybe}]", false),
            ("checks: [{check: errors, answer: pass, until: 1h}]", false),
        ] {
            let read = read(&format!("{head}{text}\n"));
            assert_eq!(read.is_ok(), fits, "{text}: {read:?}");
        }
        assert!(read("apiVersion: ds-plan.dev/v1\nkind: Faults\n").is_err());
    }

    #[test]
    fn a_fault_affects_matching_images_and_nodes() {
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
    fn the_last_answer_of_a_check_for_a_time_counts() {
        let all = "- {check: a, answer: fail}\n- {check: a, from: 5s, to: 9s, answer: unknown}";
        let all: Vec<RehearsedCheck> = serde_saphyr::from_str(all).unwrap();
        for (check, at, want) in [
            ("a", 0, RehearsedAnswer::Fail),
            ("a", 5, RehearsedAnswer::Unknown),
            ("a", 9, RehearsedAnswer::Fail),
            ("b", 5, RehearsedAnswer::Pass),
        ] {
            let found = RehearsedCheck::answer_at(&all, check, Duration::from_secs(at));
            assert_eq!(found, want, "{check} {at}");
        }
    }

    #[test]
    fn a_period_includes_its_beginning_and_excludes_its_end() {
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
