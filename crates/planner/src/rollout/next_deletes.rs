//! Which pods are deleted next, and so which nodes are updated next; or what a run waits for.
//!
//! Deletes that got no clear answer are sent again first, if their pod is still there. Then come
//! outdated pods on nodes that are Ready, in the scope of the run (`step --nodes`, `--count`):
//!
//! 1. Pods that are not Ready, by node name, if deleting them makes no further node unavailable: they
//!    never were Ready, have not been for 60 s, or have a permanent failure; or no more nodes of the
//!    DaemonSet are unavailable than its `maxUnavailable`. They take up no budget.
//! 2. Available pods, by step, by domain, and then by node name, as many as the budgets
//!    (`maxUnavailable`, of the step and the domain too) have room for. With a shared budget, nodes
//!    that another DaemonSet has begun come before the others of their step and domain.
//!
//! In both groups, only nodes are considered whose update the policy allows to begin now
//! ([`Evaluation::may_begin`]; on a node that another DaemonSet of a shared budget has begun,
//! [`Evaluation::may_finish`]), and that have the images of their new pods, if the policy has them pulled
//! first (`pulls`).
//!
//! With a shared budget, the other DaemonSets also decide whose turn it is on a node, and whether the node
//! gets a slot (`shared`). Pods that are not Ready need neither: their deletion disturbs nothing.
//!
//! The ramp limits how many nodes may be in flight, for both groups. By default that is one, plus one for
//! each node that this run has finished, up to the budget ([`Ramp::window`]). No more than
//! [`max_deletes`] deletes are pending. Nothing is deleted while a new pod, on a node whose old pod this run
//! deleted, has restarted and is not available, nor while more nodes than the budget allows have lost their
//! Ready pod within 60 s. While a check is asked, `pace` drops the deletes that are decided here.
//!
//! An outdated pod that became Ready recently is not deleted before it is available. One that became
//! NotReady recently is not deleted before it is available again or has been NotReady for 60 s. Not here:
//! whether a new pod has failed (`new_pods`), and restoring the strategy. In files of their own: a surge,
//! the images of new pods, and the other DaemonSets of a shared budget. Step, domain, wave, ramp and in flight are
//! in the glossary of the guide.
//!
//! [`Ramp::window`]: daemonset::model::Ramp::window

mod images;
mod siblings;
mod surge;

use jiff::{SignedDuration, Timestamp};

pub(super) use images::to_begin;
pub(super) use siblings::Shared;

use super::outcome::ControllerWork;
use super::request::RequestState;
use super::request::{Cost, Delete};
use super::state::{Stall, State};
use super::view::{NodeView, PodState, RolloutView, count};
use crate::classification::has_failed_permanently;
use crate::extent::Extent;
use crate::shared::Turn;
use crate::steps::{DomainProgress, Evaluation, WaitsFor, with_unavailable};
use daemonset::model::{NodeName, Pod, PodReadiness};

/// Maximum number of pending deletes, on up to 8,000 nodes.
const MIN_PENDING: usize = 16;

/// Number of nodes for each pending delete of a larger fleet. After each decision the run rests for 1 ms per
/// 50 nodes, so fleets of 8,000 nodes and more get at most 100 deletes in a second.
const NODES_A_DELETE: u32 = 500;

/// Time that an outdated pod must have been NotReady before its deletion costs nothing, and within
/// which a pod counts as having lost Ready just now: after a long outage of the API server, the pods
/// of a whole fleet are NotReady for some seconds.
const LONG_NOT_READY: SignedDuration = SignedDuration::from_secs(60);

/// Maximum number of pending deletes of a DaemonSet with `desired` desired nodes. A later decision to stop
/// does not revoke them. At most 16 of them are in flight at a time: the fence of the lock sees to it.
pub(super) fn max_deletes(desired: u32) -> usize {
    usize::try_from(desired / NODES_A_DELETE).unwrap_or(usize::MAX).max(MIN_PENDING)
}

/// The actor that replaces pods.
#[derive(Clone, Copy, Debug)]
pub(super) enum Replacer<'t> {
    /// This run, up to the extent.
    Run(&'t Extent),
    /// This run, for all steps but the last; in that one the DaemonSet controller replaces pods, by a surge.
    RunBeforeSurge,
    /// The DaemonSet controller, by the live strategy.
    Controller,
}

/// The next action.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Delete these pods.
    Delete(Vec<Delete>),
    /// Wait for pods or requests.
    Wait {
        /// The time when the next outdated pod becomes available, or has not been Ready for 60 s.
        until: Option<Timestamp>,
    },
    /// A sibling, another DaemonSet of the shared budget, still starts or waits for the answer to a check:
    /// what is next, and whether there is any progress, is not known before.
    NotKnown,
    /// No progress, though outdated pods remain.
    Stalled(Stall),
    /// The policy lets no more nodes begin for now, and none is in flight.
    MayNotBegin(Vec<WaitsFor>),
    /// Images are missing on the nodes that are left.
    NotPulled,
    /// No outdated pods remain in the scope of this run on Ready nodes.
    NothingLeft,
    /// The same of a part of the nodes, while the rollout still waits: for its last soak, say.
    PartDone,
}

/// Decides the next action. `pace` has judged the new pods before: none has failed.
pub(super) fn next(
    view: &RolloutView<'_>,
    state: &State,
    replacer: Replacer<'_>,
    steps: &Evaluation<'_>,
    shared: Option<Shared<'_>>,
) -> Next {
    match replacer {
        Replacer::Run(extent) => Replacement::of(view, state, extent, steps, shared).next(),
        Replacer::RunBeforeSurge => {
            Replacement::of(view, state, &Extent::All, steps, shared).next_before_surge()
        }
        Replacer::Controller => surge::watch(view, state, steps),
    }
}

/// The wave of the plan that is in progress, if any outdated pod is left.
pub(super) fn current(view: &RolloutView<'_>, state: &State) -> Option<u32> {
    if view.outdated() == 0 {
        return None;
    }
    let ready = view.node_views.iter().filter(|node_view| node_view.is_ready());
    let waiting = state.pods.waiting.keys();
    let recovering = waiting.filter_map(|node| state.waves.get(node)).copied();
    ready.filter_map(|node_view| node_view.wave).chain(recovering).min()
}

/// A node with an outdated pod.
#[derive(Clone, Copy)]
struct Outdated<'s, 'a> {
    /// Its position in the view.
    at: usize,
    node_view: &'s NodeView<'a>,
    pod: &'a Pod,
}

impl<'s> Outdated<'s, '_> {
    fn name(&self) -> &'s NodeName {
        &self.node_view.node.name
    }
}

/// What decides which pods this run replaces next.
struct Replacement<'s, 'a> {
    view: &'s RolloutView<'a>,
    state: &'s State,
    extent: &'s Extent,
    steps: &'s Evaluation<'s>,
    shared: Option<Shared<'s>>,
    /// Number of pods that may still be deleted, by the extent.
    left: usize,
    /// Number of nodes that count as unavailable.
    unavailable: u32,
}

impl<'s, 'a> Replacement<'s, 'a> {
    fn of(
        view: &'s RolloutView<'a>,
        state: &'s State,
        extent: &'s Extent,
        steps: &'s Evaluation<'s>,
        shared: Option<Shared<'s>>,
    ) -> Self {
        let left = match extent {
            Extent::All | Extent::Nodes(_) => usize::MAX,
            Extent::Count(count) => {
                usize::try_from(count.saturating_sub(state.pods.count)).unwrap_or(usize::MAX)
            }
        };
        Self { view, state, extent, steps, shared, left, unavailable: view.unavailable() }
    }

    fn next(&self) -> Next {
        let stops = self.restarted() || lost_ready(self.view).is_some();
        let deletes = if stops { Vec::new() } else { self.deletes() };
        if !deletes.is_empty() {
            return Next::Delete(deletes);
        }
        // Every wait ends: new pods have a deadline.
        let replacing = !self.state.pods.waiting.is_empty();
        let not_deletable_yet = if self.left > 0 { self.not_deletable_yet() } else { Vec::new() };
        if replacing || !not_deletable_yet.is_empty() || self.state.deletes_out() > 0 {
            return Next::Wait { until: not_deletable_yet.into_iter().min() };
        }
        if let Some(next) = self.waits_for_images() {
            return next;
        }
        let outdated = if self.left > 0 { count(self.outdated_in_scope()) } else { 0 };
        if let Some(next) = self.waits_for_siblings(outdated) {
            return next;
        }
        let waits_for = &self.steps.waits_for;
        if !waits_for.is_empty() && (outdated > 0 || *self.extent == Extent::All) {
            return Next::MayNotBegin(waits_for.clone());
        }
        let surplus = self
            .view
            .node_views
            .iter()
            .any(|node_view| has_outdated_of_several(node_view) && self.is_in_scope(node_view));
        if surplus {
            // The controller has not deleted them yet.
            return Next::Stalled(Stall::Controller(ControllerWork::Roll { outdated }));
        }
        let is_held_back = |outdated: Outdated<'_, '_>| self.steps.held_back.contains(&outdated.at);
        if outdated > 0 && self.outdated_in_scope().all(is_held_back) {
            return Next::MayNotBegin(self.steps.held_back_by.clone());
        }
        if outdated > 0 {
            return Next::Stalled(self.budget_reached(outdated));
        }
        if self.left > 0 && self.lacks_images() {
            return Next::NotPulled;
        }
        if waits_for.is_empty() { Next::NothingLeft } else { Next::PartDone }
    }

    /// The budget that lets no node begin.
    fn budget_reached(&self, outdated: u32) -> Stall {
        let (unavailable, allowed) = (self.unavailable, self.allowed_in_step());
        if unavailable < allowed && with_unavailable(&self.steps.domains).next().is_some() {
            return Stall::Domains { unavailable, outdated };
        }
        Stall::Budget { unavailable, allowed, outdated }
    }

    /// Nodes whose outdated pod this run replaces, now or later.
    fn outdated_in_scope(&self) -> impl Iterator<Item = Outdated<'s, 'a>> {
        let all = self.view.node_views.iter().enumerate();
        let in_scope = all.filter(|(_, node_view)| self.is_in_scope(node_view));
        in_scope.filter_map(|(at, node_view)| {
            let PodState::Outdated(pod) = node_view.pod_state else { return None };
            Some(Outdated { at, node_view, pod })
        })
    }

    /// The part of them that may begin now: the policy lets them, and their images are there.
    fn may_begin(&self) -> impl Iterator<Item = Outdated<'s, 'a>> {
        self.policy_lets_begin().filter(|outdated| !self.state.pulls.holds_back(outdated.name()))
    }

    /// The part of those whose pod is available: its deletion takes up the budgets.
    fn available(&self) -> impl Iterator<Item = Outdated<'s, 'a>> {
        self.may_begin().filter(|outdated| self.view.is_available(outdated.pod))
    }

    /// The part of them that the policy lets begin now.
    fn policy_lets_begin(&self) -> impl Iterator<Item = Outdated<'s, 'a>> {
        self.outdated_in_scope().filter(|outdated| {
            let is_open = || self.shared.is_some_and(|it| it.slots.is_open(outdated.name()));
            self.steps.may_begin(outdated.at) || (self.steps.may_finish(outdated.at) && is_open())
        })
    }

    fn is_in_scope(&self, node_view: &NodeView<'_>) -> bool {
        self.extent.may_include(&node_view.node.name) && node_view.is_ready()
    }

    /// Whether a new pod, on a node whose old pod this run deleted, was restarted and is not available: the
    /// template may be the cause.
    fn restarted(&self) -> bool {
        let renewed = &self.state.pods.renewed;
        let mut in_flight =
            self.view.node_views.iter().filter(|node_view| node_view.is_in_flight());
        let restarted = |node_view: &NodeView<'_>| {
            matches!(node_view.pod_state, PodState::UpdatedUnavailable(pod) if pod.restarts > 0)
                && renewed.contains(&node_view.node.name)
        };
        in_flight.any(restarted)
    }

    fn deletes(&self) -> Vec<Delete> {
        let room = self.requests();
        let retries: Vec<Delete> = self.retries().take(room).collect();
        let room = room - retries.len();
        let free = self.may_begin().filter(|outdated| self.is_free(outdated.pod));
        let free = free.map(|Outdated { at: _, node_view, pod }| {
            (node_view, self.delete(node_view, pod, Cost::Nothing))
        });
        let mut ramp = self.ramp();
        let within = free.chain(self.within_budget()).filter(|(node_view, _)| {
            // No new pod starts there, so the ramp does not count it.
            let starts_now = !node_view.is_desired() || ramp > 0;
            ramp = ramp.saturating_sub(u32::from(node_view.is_desired()));
            starts_now
        });
        let within = within.map(|(_, delete)| delete).take(room.min(self.left));
        retries.into_iter().chain(within).collect()
    }

    /// Number of deletes that may still be sent.
    fn requests(&self) -> usize {
        max_deletes(self.view.desired).saturating_sub(self.state.deletes_out())
    }

    /// Number of nodes that may still be put in flight.
    fn ramp(&self) -> u32 {
        let in_flight =
            count(self.view.node_views.iter().filter(|node_view| node_view.is_in_flight()));
        let available = self.state.pods.replaced.len();
        self.state
            .task
            .policy
            .ramp
            .window(available, self.allowed_in_step())
            .saturating_sub(in_flight)
    }

    /// Whether an outdated pod may be deleted without making another node unavailable: its deletion
    /// costs nothing, or it is not Ready and all unavailable nodes are within `maxUnavailable`. The limit
    /// of the step does not matter, as the node counts as unavailable already.
    fn is_free(&self, pod: &Pod) -> bool {
        let within = self.unavailable <= self.view.allowed;
        self.costs_nothing(pod) || (within && !pod.is_ready())
    }

    /// Whether the deletion of an outdated pod costs nothing: it never was Ready, has not been for
    /// a while, or has a permanent failure.
    fn costs_nothing(&self, pod: &Pod) -> bool {
        match pod.readiness {
            PodReadiness::Ready { since: _ } => false,
            PodReadiness::NotReady { since: None } => true,
            PodReadiness::NotReady { since: Some(since) } => {
                let long = since.duration_until(self.view.now) >= LONG_NOT_READY;
                long || has_failed_permanently(pod)
            }
        }
    }

    /// Retries of deletes that failed without a clear answer, while the pod still exists and is
    /// outdated, and its node is Ready: another one may have begun instead. If the pod has become Ready
    /// since, it must be available, and no more nodes than allowed unavailable, this one among them. Else
    /// it is not retried; after a minute the pod counts as present again ([`RolloutView::spared_at`]).
    fn retries(&self) -> impl Iterator<Item = Delete> {
        let ready = self.view.node_views.iter().filter(|node_view| node_view.is_ready());
        let terminating = ready.filter_map(|node_view| Some((node_view, node_view.terminating()?)));
        let stands =
            terminating.filter(|(_, pod)| !pod.terminating && !self.view.templates.is_updated(pod));
        let due = stands.filter(|(_, pod)| match self.state.pods.deleted.get(&pod.uid) {
            Some(RequestState::RetryAt(at)) => *at <= self.view.now,
            Some(RequestState::Idle | RequestState::Out) | None => false,
        });
        let room = self.unavailable <= self.view.allowed;
        let due =
            due.filter(move |(_, pod)| !pod.is_ready() || (room && self.view.is_available(pod)));
        due.map(|(node_view, pod)| self.delete(node_view, pod, Cost::Nothing))
    }

    /// Available outdated pods that may begin, by step, domain and name, as many as the budgets allow: that
    /// of the whole DaemonSet, the step's, and those of the domains.
    fn within_budget(&self) -> impl Iterator<Item = (&'s NodeView<'a>, Delete)> {
        let mut available: Vec<_> = self.available().collect();
        // In its wave (step, domain), a node that takes up a slot already comes first.
        let takes_slot = |outdated: &Outdated<'_, '_>| {
            self.shared.is_some_and(|it| !it.slots.has(outdated.name()))
        };
        available.sort_by_key(|outdated| (self.steps.waves[outdated.at], takes_slot(outdated)));
        let (unavailable, allowed) = (self.unavailable, self.allowed_in_step());
        let room = usize::try_from(allowed.saturating_sub(unavailable)).unwrap_or(usize::MAX);
        let mut rooms: Vec<u32> = self.steps.domains.iter().map(DomainProgress::room).collect();
        let mut slots = self.shared.map(|shared| shared.slots.clone());
        let has_room = move |outdated: &Outdated<'_, '_>| {
            let room = &mut rooms[self.steps.domain_of[outdated.at]];
            let has_room = *room > 0
                && self.turn(outdated) == Turn::Now
                && slots.as_mut().is_none_or(|slots| slots.take(outdated.name()));
            *room -= u32::from(has_room);
            has_room
        };
        available.into_iter().filter(has_room).take(room).zip(unavailable..).map(
            move |(Outdated { at: _, node_view, pod }, unavailable)| {
                (node_view, self.delete(node_view, pod, Cost::One { unavailable, allowed }))
            },
        )
    }

    /// Number of desired nodes that may be unavailable in the step in progress.
    fn allowed_in_step(&self) -> u32 {
        let step = self.steps.current.map(|step| &self.steps.steps[step]);
        let limit = step.and_then(|step| step.policy?.max_unavailable);
        let limit = limit.map(|limit| limit.scaled(self.view.desired).max(1));
        limit.map_or(self.view.allowed, |limit| limit.min(self.view.allowed))
    }

    /// The times at which outdated pods that are neither available nor free to delete become one of
    /// the two.
    fn not_deletable_yet(&self) -> Vec<Timestamp> {
        let in_scope = self.may_begin().filter(|outdated| {
            !self.view.is_available(outdated.pod) && !self.is_free(outdated.pod)
        });
        in_scope
            .map(|Outdated { at: _, node_view: _, pod }| match pod.readiness {
                PodReadiness::NotReady { since } => {
                    since.map_or(self.view.now, Timestamp::from) + LONG_NOT_READY
                }
                PodReadiness::Ready { since: _ } => {
                    self.view.available_at(pod).unwrap_or(self.view.now)
                }
            })
            .collect()
    }

    fn delete(&self, node_view: &NodeView<'_>, pod: &Pod, cost: Cost) -> Delete {
        Delete {
            pod: pod.name.clone(),
            uid: pod.uid.clone(),
            node: node_view.node.name.clone(),
            reason: self.view.why(node_view, pod),
            cost,
        }
    }
}

/// Number of Ready nodes whose pod became NotReady in the last 60 s, and not because this run deleted it, if
/// it exceeds the budget: then the failure affects the fleet, and no pods are replaced.
pub(super) fn lost_ready(view: &RolloutView<'_>) -> Option<u32> {
    let lost = view.node_views.iter().filter(|node_view| {
        let (PodState::UpdatedUnavailable(pod) | PodState::Outdated(pod)) = node_view.pod_state
        else {
            return false;
        };
        let lately = match pod.readiness {
            PodReadiness::NotReady { since: Some(since) } => {
                since.duration_until(view.now) < LONG_NOT_READY && !has_failed_permanently(pod)
            }
            PodReadiness::NotReady { since: None } | PodReadiness::Ready { since: _ } => false,
        };
        node_view.is_desired() && node_view.is_ready() && lately
    });
    Some(count(lost)).filter(|lost| *lost > view.allowed)
}

/// Whether the node has several pods, one of them outdated: the controller deletes all but one.
fn has_outdated_of_several(node_view: &NodeView<'_>) -> bool {
    matches!(node_view.pod_state, PodState::Several { updated: _, outdated: Some(_) })
}

/// The NotReady nodes with an outdated pod that is Ready: as long as there are any, the strategy is
/// not restored.
pub(super) fn ready_on_unready_nodes(view: &RolloutView<'_>) -> Vec<NodeName> {
    let unready = view.node_views.iter().filter(|node_view| !node_view.is_ready());
    let ready = unready.filter(|node_view| node_view.outdated_pod().is_some_and(Pod::is_ready));
    ready.map(|node_view| node_view.node.name.clone()).collect()
}
