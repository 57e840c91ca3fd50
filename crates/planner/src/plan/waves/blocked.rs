//! Steps of which nodes would wait for ever: pods of later steps that are not available use up what
//! may be unavailable, and a step replaces only its own.
//!
//! Not here: unavailable pods that no step replaces, which use up the whole budget (`budget`).

use super::Stepped;
use super::budget::{BudgetView, PodBudgetState};
use crate::plan::document::{NodePlan, Wave};
use crate::steps::Evaluation;
use daemonset::model::{NodeName, NodeReadiness};

/// A step that would never be complete.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::plan) struct BlockedStep {
    /// Its name.
    pub name: String,
    /// Number of nodes that may be without an available pod in it.
    pub allowed: u32,
    /// The field that allows no more.
    pub limit: &'static str,
    /// The nodes that are, and that it does not change.
    pub unavailable: Vec<NodeName>,
    /// Number of its nodes that wait.
    pub waiting: usize,
}

impl Stepped<'_> {
    /// The first step that would never be complete. `already` are the positions of unavailable nodes
    /// that no wave changes.
    pub(super) fn blocked_step(
        &self,
        evaluation: &Evaluation<'_>,
        nodes: &[NodePlan],
        budget_views: &[BudgetView],
        waves: &[Wave],
        already: &[usize],
    ) -> Option<BlockedStep> {
        // In a surge, no node is without a pod.
        for wave in waves.iter().filter(|wave| wave.max_surge == 0) {
            let name = wave.step.as_ref()?;
            let step = evaluation.steps.iter().position(|step| step.name() == name)?;
            let is_of_step = |at: usize| self.step_of(evaluation, at) == Some(step);
            let waits = |at: &usize| {
                is_of_step(*at)
                    && nodes[*at].wave.is_some()
                    && budget_views[*at].pod == PodBudgetState::OutdatedReady
            };
            let waiting = (0..nodes.len()).filter(waits).count();
            let is_later = |at: usize| self.step_of(evaluation, at).is_some_and(|it| it > step);
            let is_unavailable = |at: &usize| {
                let view = &budget_views[*at];
                let is_stuck = view.is_desired()
                    && view.node == NodeReadiness::Ready
                    && view.stays_unready
                    && is_later(*at)
                    && !self.is_broken(evaluation, *at);
                is_stuck || already.contains(at)
            };
            let unavailable: Vec<NodeName> =
                (0..nodes.len()).filter(is_unavailable).map(|at| nodes[at].name.clone()).collect();
            let (allowed, limit) = tightest(wave);
            if waiting > 0 && u32::try_from(unavailable.len()).unwrap_or(u32::MAX) >= allowed {
                return Some(BlockedStep {
                    name: name.clone(),
                    allowed,
                    limit,
                    unavailable,
                    waiting,
                });
            }
        }
        None
    }

    fn step_of(&self, evaluation: &Evaluation<'_>, at: usize) -> Option<usize> {
        self.positions[at].map(|at| evaluation.step_of[at])
    }

    /// Whether an intermediate version has broken it: it may be replaced in any step.
    fn is_broken(&self, evaluation: &Evaluation<'_>, at: usize) -> bool {
        self.positions[at].is_some_and(|at| evaluation.is_broken[at])
    }
}

/// How many nodes may be without an available pod during a wave, and the field that says so. To a
/// shared budget, other DaemonSets may add more.
fn tightest(wave: &Wave) -> (u32, &'static str) {
    match wave.shared_budget {
        Some(shared) if shared < wave.max_unavailable => (shared, "sharedBudget"),
        Some(_) | None => (wave.max_unavailable, "maxUnavailable"),
    }
}
