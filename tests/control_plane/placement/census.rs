//! The coverage of the random shapes: how often each rule of placement was satisfied and not.

use std::collections::BTreeMap;

use daemonset::controller::node_affinity::{RequirementOutcome, Subject, TermOutcome};
use daemonset::controller::placement::{Obstacle, RuleOutcome, TaintVerdict, explain, judge};
use daemonset::model::Snapshot;

/// For each rule, how often it was satisfied and how often not; and how often it alone decided.
#[derive(Debug, Default)]
pub(super) struct Census {
    rules: BTreeMap<String, [u32; 2]>,
    decisive: BTreeMap<&'static str, u32>,
}

/// Every rule, with the minimum counts of both results.
const EXPECTED: [(&str, [u32; 2]); 18] = [
    ("a pod starts", [500, 500]),
    ("a pod stays", [500, 500]),
    ("nodeName", [1000, 100]),
    ("nodeSelector", [100, 100]),
    ("nodeAffinity", [100, 100]),
    ("label In", [50, 50]),
    ("label NotIn", [50, 50]),
    ("label Exists", [50, 50]),
    ("label DoesNotExist", [50, 50]),
    ("label Gt", [20, 50]),
    ("label Lt", [20, 50]),
    ("field In", [2, 50]),
    ("field NotIn", [50, 2]),
    ("a term that is empty", [0, 50]),
    ("a term that cannot be read", [0, 50]),
    ("a taint is tolerated", [100, 0]),
    ("a taint is tolerated automatically", [100, 0]),
    ("a taint is ignored", [100, 0]),
];

impl Census {
    /// Evaluates every rule for every DaemonSet of the snapshot on every node.
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let mut census = Self::default();
        for daemon_set in &snapshot.daemon_sets {
            let template = &daemon_set.spec.template.placement;
            for node in &snapshot.nodes {
                let placement = judge(template, node);
                census.count("a pod starts", placement.may_start);
                census.count("a pod stays", placement.may_stay);
                let decisive = placement.obstacle.as_deref().map(|obstacle| match obstacle {
                    Obstacle::OtherNodeName { .. } => "otherNodeName",
                    Obstacle::NodeSelector { .. } => "nodeSelector",
                    Obstacle::NodeAffinity { .. } => "nodeAffinity",
                    Obstacle::Taint { .. } if placement.may_stay => "taint that lets pods stay",
                    Obstacle::Taint { .. } => "taint that removes pods",
                });
                *census.decisive.entry(decisive.unwrap_or("none")).or_default() += 1;
                for outcome in explain(template, node) {
                    census.outcome(&outcome);
                }
            }
        }
        census
    }

    /// Panics unless every rule had enough results of both kinds.
    pub(super) fn assert_interesting(&self) {
        for (rule, least) in EXPECTED {
            let seen = self.rules.get(rule).copied().unwrap_or_default();
            let enough = seen.iter().zip(least).all(|(seen, least)| *seen >= least);
            assert!(enough, "{rule}: {seen:?} in {self:#?}");
        }
        for taint in ["a taint keeps pods from starting", "a taint removes pods"] {
            assert!(self.rules.get(taint).is_some_and(|seen| seen[1] >= 100), "{taint}: {self:#?}");
        }
        let decisive = ["nodeAffinity", "nodeSelector", "none", "otherNodeName"];
        let taints = ["taint that lets pods stay", "taint that removes pods"];
        let seen: Vec<_> = self.decisive.keys().copied().collect();
        assert_eq!(seen, [&decisive[..], &taints].concat(), "{self:#?}");
        assert!(self.decisive.values().all(|count| *count >= 50), "{self:#?}");
    }

    fn count(&mut self, rule: &str, yes: bool) {
        self.rules.entry(rule.to_owned()).or_default()[usize::from(!yes)] += 1;
    }

    fn outcome(&mut self, outcome: &RuleOutcome) {
        let yes = outcome.may_start();
        match outcome {
            RuleOutcome::NodeName { .. } => self.count("nodeName", yes),
            RuleOutcome::NodeSelector { .. } => self.count("nodeSelector", yes),
            RuleOutcome::NodeAffinity { terms, .. } => {
                self.count("nodeAffinity", yes);
                for term in terms {
                    self.term(term);
                }
            }
            RuleOutcome::Taint { verdict, .. } => self.count(taint(verdict), yes),
            RuleOutcome::NoNodeSelector | RuleOutcome::NoNodeAffinity | RuleOutcome::NoTaints => {}
        }
    }

    fn term(&mut self, term: &TermOutcome) {
        match term {
            TermOutcome::Empty => self.count("a term that is empty", false),
            TermOutcome::Unreadable { .. } => self.count("a term that cannot be read", false),
            TermOutcome::Asked { requirements } => {
                for RequirementOutcome { subject, operator, holds, .. } in requirements {
                    let subject = match subject {
                        Subject::Label => "label",
                        Subject::Field => "field",
                    };
                    self.count(&format!("{subject} {operator}"), *holds);
                }
            }
        }
    }
}

fn taint(verdict: &TaintVerdict) -> &'static str {
    match verdict {
        TaintVerdict::Tolerated => "a taint is tolerated",
        TaintVerdict::ToleratedAutomatically => "a taint is tolerated automatically",
        TaintVerdict::Ignored => "a taint is ignored",
        TaintVerdict::KeepsFromStarting => "a taint keeps pods from starting",
        TaintVerdict::Removes => "a taint removes pods",
    }
}
