//! The nodes on which a DaemonSet's pods may start or keep running (upstream:
//! `NodeShouldRunDaemonPod`).
//!
//! Not considered, as upstream: readiness, resources, host ports, pod affinity, preferred affinity,
//! topology spread, and `spec.unschedulable` itself. `node_pods` orders several pods of a node.

mod judge;
mod judged_fields;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use judge::Judge;

use self::judged_fields::JudgedFields;
use super::node_affinity::{RequiredTerms, TermOutcome};
use super::tolerations::{self, PodToleration};
use crate::model::{Node, NodeName, PodPlacement, Taint, TaintEffect};

/// The placement of a template on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Whether a pod should run here and is created if there is none (upstream: `shouldRun`).
    pub may_start: bool,
    /// Whether a running pod is kept (upstream: `shouldContinueRunning`). Always true if
    /// [`Placement::may_start`] is.
    pub may_stay: bool,
    /// The reason why a pod may not start, or not keep running; `None` if it may start.
    pub obstacle: Option<Arc<Obstacle>>,
}

impl Placement {
    fn stopped_by(obstacle: Obstacle, may_stay: bool) -> Self {
        Self { may_start: false, may_stay, obstacle: Some(Arc::new(obstacle)) }
    }
}

/// The rule that keeps a pod off a node: the first one in upstream's order that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Obstacle {
    /// `spec.nodeName` is another node.
    OtherNodeName {
        /// That node.
        want: NodeName,
    },
    /// The node does not have a label of `spec.nodeSelector`.
    NodeSelector {
        /// Label key.
        key: String,
        /// Value in the selector.
        want: String,
        /// Value of the node, if it has the label.
        have: Option<String>,
    },
    /// No term of required node affinity matches.
    NodeAffinity {
        /// The result of each term.
        terms: Vec<TermOutcome>,
    },
    /// A taint that the pods do not tolerate. If pods may not keep running, it is one with effect
    /// `NoExecute`, else the first with `NoSchedule`.
    Taint {
        /// The taint.
        taint: Taint,
    },
}

/// The result of one rule for one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RuleOutcome {
    /// `spec.nodeName`.
    NodeName {
        /// The node's name; `None` if it is not set.
        want: Option<NodeName>,
        /// Whether it allows this node.
        passes: bool,
    },
    /// The template has no `spec.nodeSelector`.
    NoNodeSelector,
    /// One pair of `spec.nodeSelector`.
    NodeSelector {
        /// Label key.
        key: String,
        /// Value in the selector.
        want: String,
        /// Value of the node, if it has the label.
        have: Option<String>,
        /// Whether they are equal.
        passes: bool,
    },
    /// The template has no required node affinity.
    NoNodeAffinity,
    /// Required node affinity.
    NodeAffinity {
        /// The result of each term; one match is sufficient.
        terms: Vec<TermOutcome>,
        /// Whether one matches.
        passes: bool,
    },
    /// The node has no taints.
    NoTaints,
    /// One taint of the node.
    Taint {
        /// The taint.
        taint: Taint,
        /// Its effect on the pods.
        verdict: TaintVerdict,
    },
}

/// The effect of a taint on a DaemonSet's pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TaintVerdict {
    /// A toleration of the template tolerates it.
    Tolerated,
    /// A toleration that the controller adds to every daemon pod tolerates it.
    ToleratedAutomatically,
    /// The controller ignores `PreferNoSchedule`.
    Ignored,
    /// No pod starts here; a running pod is kept.
    KeepsFromStarting,
    /// No pod starts here, and a running pod is removed.
    Removes,
}

/// The placement of a template on one node.
pub fn judge(template: &PodPlacement, node: &Node) -> Placement {
    Rules::of(template).judge(node)
}

/// The result of every rule, in the controller's order. The controller stops at the first rule that
/// fails; this evaluates all rules.
pub fn explain(template: &PodPlacement, node: &Node) -> Vec<RuleOutcome> {
    Rules::of(template).outcomes(node)
}

/// The parsed rules of a template.
#[derive(Debug)]
struct Rules<'a> {
    template: &'a PodPlacement,
    terms: Option<RequiredTerms<'a>>,
    tolerations: Vec<PodToleration<'a>>,
    judged_fields: JudgedFields<'a>,
}

impl<'a> Rules<'a> {
    fn of(template: &'a PodPlacement) -> Self {
        let terms = template.required_terms.as_deref().map(RequiredTerms::read);
        let selected = template.node_selector.iter().map(|(key, _)| key);
        let labels = selected.chain(terms.iter().flat_map(RequiredTerms::label_keys));
        let pinned = template.node_name.iter().map(NodeName::as_str);
        let names = pinned.chain(terms.iter().flat_map(RequiredTerms::names));
        let judged_fields = JudgedFields::new(labels.collect(), names.collect());
        Self { template, terms, tolerations: tolerations::of_pod(template), judged_fields }
    }

    fn judge(&self, node: &Node) -> Placement {
        if let Some(want) = self.other_node_name(node) {
            return Placement::stopped_by(Obstacle::OtherNodeName { want: want.clone() }, false);
        }
        if let Some((key, want)) = self.selector_mismatch(node) {
            let have = node.labels.get(key).map(str::to_owned);
            let (key, want) = (key.to_owned(), want.to_owned());
            return Placement::stopped_by(Obstacle::NodeSelector { key, want, have }, false);
        }
        if let Some(terms) = self.terms.as_ref().filter(|terms| !terms.matches(node)) {
            let terms = terms.outcomes(node);
            return Placement::stopped_by(Obstacle::NodeAffinity { terms }, false);
        }
        let untolerated = |verdict| node.taints.iter().find(|t| self.taint(t) == verdict).cloned();
        if let Some(taint) = untolerated(TaintVerdict::Removes) {
            return Placement::stopped_by(Obstacle::Taint { taint }, false);
        }
        if let Some(taint) = untolerated(TaintVerdict::KeepsFromStarting) {
            return Placement::stopped_by(Obstacle::Taint { taint }, true);
        }
        Placement { may_start: true, may_stay: true, obstacle: None }
    }

    fn outcomes(&self, node: &Node) -> Vec<RuleOutcome> {
        let mut outcomes = vec![RuleOutcome::NodeName {
            want: self.template.node_name.clone(),
            passes: self.other_node_name(node).is_none(),
        }];
        if self.template.node_selector.is_empty() {
            outcomes.push(RuleOutcome::NoNodeSelector);
        }
        for (key, want) in self.template.node_selector.iter() {
            outcomes.push(RuleOutcome::NodeSelector {
                key: key.to_owned(),
                want: want.to_owned(),
                have: node.labels.get(key).map(str::to_owned),
                passes: selects(node, key, want),
            });
        }
        outcomes.push(match &self.terms {
            None => RuleOutcome::NoNodeAffinity,
            Some(terms) => RuleOutcome::NodeAffinity {
                terms: terms.outcomes(node),
                passes: terms.matches(node),
            },
        });
        if node.taints.is_empty() {
            outcomes.push(RuleOutcome::NoTaints);
        }
        outcomes.extend(
            node.taints.iter().map(|taint| RuleOutcome::Taint {
                taint: taint.clone(),
                verdict: self.taint(taint),
            }),
        );
        outcomes
    }

    /// The node in the template's `nodeName`, if it is another one.
    fn other_node_name(&self, node: &Node) -> Option<&'a NodeName> {
        self.template.node_name.as_ref().filter(|want| **want != node.name)
    }

    /// The first pair of the node selector that the node's labels do not match.
    fn selector_mismatch(&self, node: &Node) -> Option<(&'a str, &'a str)> {
        self.template.node_selector.iter().find(|(key, want)| !selects(node, key, want))
    }

    /// The effect of one taint on the pods.
    fn taint(&self, taint: &Taint) -> TaintVerdict {
        let covering = || self.tolerations.iter().find(|toleration| toleration.tolerates(taint));
        match (taint.effect, covering()) {
            (TaintEffect::PreferNoSchedule, _) => TaintVerdict::Ignored,
            (_, Some(PodToleration::Template(..))) => TaintVerdict::Tolerated,
            (_, Some(PodToleration::Automatic(..))) => TaintVerdict::ToleratedAutomatically,
            (TaintEffect::NoSchedule, None) => TaintVerdict::KeepsFromStarting,
            (TaintEffect::NoExecute, None) => TaintVerdict::Removes,
        }
    }
}

fn selects(node: &Node, key: &str, want: &str) -> bool {
    node.labels.get(key) == Some(want)
}

impl RuleOutcome {
    /// Whether the rule allows a pod to start.
    pub fn may_start(&self) -> bool {
        match self {
            Self::NoNodeSelector | Self::NoNodeAffinity | Self::NoTaints => true,
            Self::NodeName { passes, .. }
            | Self::NodeSelector { passes, .. }
            | Self::NodeAffinity { passes, .. } => *passes,
            Self::Taint { verdict, .. } => match verdict {
                TaintVerdict::Tolerated
                | TaintVerdict::ToleratedAutomatically
                | TaintVerdict::Ignored => true,
                TaintVerdict::KeepsFromStarting | TaintVerdict::Removes => false,
            },
        }
    }

    /// Whether the rule allows a running pod to keep running.
    pub fn may_stay(&self) -> bool {
        match self {
            Self::Taint { verdict: TaintVerdict::KeepsFromStarting, .. } => true,
            Self::NodeName { .. }
            | Self::NoNodeSelector
            | Self::NodeSelector { .. }
            | Self::NoNodeAffinity
            | Self::NodeAffinity { .. }
            | Self::NoTaints
            | Self::Taint { .. } => self.may_start(),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherNodeName { want } => write!(f, "nodeName is another node, {want}"),
            Self::NodeSelector { key, want, have } => {
                write!(f, "nodeSelector {key}={want} does not match ")?;
                write_have(f, key, have.as_deref())
            }
            Self::NodeAffinity { terms } => {
                f.write_str("required node affinity does not match: ")?;
                write_terms(f, terms)
            }
            Self::Taint { taint } => {
                write_taint(f, taint)?;
                f.write_str(" is not tolerated")
            }
        }
    }
}

impl fmt::Display for RuleOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeName { want: None, passes: _ } => f.write_str("nodeName is not set"),
            Self::NodeName { want: Some(_), passes: true } => f.write_str("nodeName is this node"),
            Self::NodeName { want: Some(want), passes: false } => {
                write!(f, "nodeName is another node, {want}")
            }
            Self::NoNodeSelector => f.write_str("no nodeSelector"),
            Self::NodeSelector { key, want, have, passes } => {
                let verb = if *passes { "matches" } else { "does not match" };
                write!(f, "nodeSelector {key}={want} {verb} ")?;
                write_have(f, key, have.as_deref())
            }
            Self::NoNodeAffinity => f.write_str("no required node affinity"),
            Self::NodeAffinity { terms, passes: true } => {
                f.write_str("required node affinity matches: ")?;
                let matching = terms.iter().find(|term| term.matches());
                matching.map_or(Ok(()), |term| write!(f, "{term}"))
            }
            Self::NodeAffinity { terms, passes: false } => {
                f.write_str("required node affinity does not match: ")?;
                write_terms(f, terms)
            }
            Self::NoTaints => f.write_str("no taints"),
            Self::Taint { taint, verdict } => {
                write_taint(f, taint)?;
                f.write_str(match verdict {
                    TaintVerdict::Tolerated => " is tolerated",
                    TaintVerdict::ToleratedAutomatically => " is tolerated by every daemon pod",
                    TaintVerdict::Ignored => " is ignored",
                    TaintVerdict::KeepsFromStarting => {
                        " is not tolerated: no pod starts, a running pod is kept"
                    }
                    TaintVerdict::Removes => {
                        " is not tolerated: no pod starts, a running pod is removed"
                    }
                })
            }
        }
    }
}

fn write_have(f: &mut fmt::Formatter<'_>, key: &str, have: Option<&str>) -> fmt::Result {
    match have {
        Some(have) => write!(f, "(node has {key}={have})"),
        None => write!(f, "(node has no {key})"),
    }
}

fn write_terms(f: &mut fmt::Formatter<'_>, terms: &[TermOutcome]) -> fmt::Result {
    if terms.is_empty() {
        return f.write_str("it has no terms");
    }
    for (at, term) in terms.iter().enumerate() {
        let separator = if at == 0 { "" } else { "; nor: " };
        write!(f, "{separator}{term}")?;
    }
    Ok(())
}

fn write_taint(f: &mut fmt::Formatter<'_>, taint: &Taint) -> fmt::Result {
    let Taint { key, value, effect } = taint;
    let equals = if value.is_empty() { "" } else { "=" };
    write!(f, "taint {key}{equals}{value}:{}", effect.as_str())
}

#[cfg(test)]
mod tests;
