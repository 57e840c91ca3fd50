//! The laws of pods: which one the program may delete when, and where it may create one.

use std::collections::BTreeSet;

use daemonset::model::{DaemonSet, NodeName, Pod, PodReadiness};
use embedded::{Event, Kind, Seen, Store};
use jiff::Timestamp;
use planner::plan::PausedRollout;
use serde_json::Value;

use super::{LawChecker, uid_sent};
use crate::budget::{desired_nodes, is_available, owns};
use crate::changes::Part;
use crate::objects::{image_of, is_updated, key};
use crate::reasons;
use crate::shared::{self, Replacement};
use crate::upkeep::{self, Upkeep};

impl LawChecker {
    /// The program sends a delete.
    pub(super) fn deletes(
        &mut self,
        request: &Seen,
        name: &str,
        refused: bool,
        store: &Store,
        now: Timestamp,
    ) {
        let uid = uid_sent(request);
        if uid.is_empty() {
            return self.breaks(now, format_args!("{name} was deleted without a uid precondition"));
        }
        let pod = store.at(Kind::Pod, &key(name)).and_then(|it| it.pod());
        let answered = self.answered.get(&(request.user.clone(), uid.clone()));
        // The in-process controller does not know what the rollout has sent.
        let may_repeat = || {
            let pod = pod.filter(|pod| pod.uid == *uid);
            pod.is_some_and(|pod| self.may_be_of_controller(pod, store, now))
        };
        if answered.is_some_and(|times| *times > 1 || !may_repeat()) {
            return self.breaks(now, format_args!("{name} was deleted again"));
        }
        // A delete of a terminating pod, or with another uid, changes nothing.
        let Some(pod) = pod.filter(|pod| !pod.terminating && pod.uid == *uid) else {
            return;
        };
        let all = self.live(store);
        self.nodes.look(&all, store, now);
        self.shared.look(&all, &self.policy, (store, &self.nodes), now);
        let Some(live) = all.iter().find(|live| owns(live, pod)) else {
            let owner = pod.controller.as_ref();
            let seen = self.nodes.seen_by(now);
            if owner.is_some_and(|owner| self.changes.may_seem_live(&owner.uid, seen)) {
                return;
            }
            return self
                .breaks(now, format_args!("{name} was deleted, which another controller owns"));
        };
        let upkeep = upkeep::of(pod, live, store, &self.nodes, now);
        // The in-process controller does not know what the rollout has sent.
        if upkeep != Upkeep::Gone && self.nodes.is_under_way(&request.user, pod, now) {
            self.breaks(
                now,
                format_args!("{name} was deleted while an earlier delete is in flight"),
            );
        }
        if !refused {
            let lock = self.locks.runs_out(&live.key);
            self.nodes.takes_off(request.number, &request.user, pod, lock, now);
        }
        if matches!(upkeep, Upkeep::Gone | Upkeep::Surplus { serves: true }) {
            // By what its node is, or was a moment ago, the rollout may have replaced it.
            let replaces = || upkeep::may_be_replaced(pod, live, store, &self.nodes, now);
            if upkeep == Upkeep::Gone && replaces() {
                self.flights.takes_off(live, &request.user, pod, false);
            }
            return;
        }
        let is_replaced = upkeep == Upkeep::None;
        let law = is_replaced.then(|| self.unfit(pod, live, store, now)).flatten();
        if let Some(law) = law {
            return self.breaks(now, format_args!("{name} was deleted{law}"));
        }
        let Some(node) = pod.node() else { return };
        self.nodes.acts(&request.user);
        if is_replaced && desired_nodes(live, store).any(|it| it.name == *node) {
            self.flights.look(live, &self.policy, store, now);
            let (user, seen) = (request.user.as_str(), (store, &self.nodes, now));
            let is_known =
                self.changes.is_known(&live.key, Part::Template, self.nodes.seen_by(now));
            let law = self.flights.broken(live, (user, node), &self.policy, seen);
            let waiting = self.waiting(live, &all, store, now);
            let is_first = !self.attempted.contains(&uid);
            let of_steps = self.steps.get_mut(&live.key).filter(|_| is_first);
            let known = (store, &self.nodes, &self.pulls);
            let shares = self.policy.get("sharedBudget").is_some();
            let target = of_steps.as_ref().map(|it| it.target()).filter(|_| shares);
            let has_begun =
                target.is_some_and(|target| shared::has_begun(node, (live, &all), target, store));
            let law =
                law.or_else(|| of_steps?.broken(pod, live, known, (&waiting, has_begun), now));
            let law = law.or_else(|| self.lacks_image(pod, live));
            let law = law.or_else(|| self.over_shared_budget(pod, live, &all, store, now));
            if let Some(law) = law.filter(|_| is_known) {
                return self.breaks(now, format_args!("{name} was deleted{law}"));
            }
            let is_new = self.attempted.insert(uid);
            if let Some(steps) = self.steps.get_mut(&live.key).filter(|_| is_new) {
                steps.begins(pod, live, (store, &self.nodes), now);
            }
        }
        if is_replaced {
            // Also on a node that takes no pod for now, and if the delete is rejected: another client may
            // delete the pod, and the new one is that of the rollout.
            self.flights.takes_off(live, &request.user, pod, true);
        }
        if is_available(pod, live, self.nodes.seen_by(now)) {
            self.nodes.pod_deleted(live, node, store, now);
            let Some(declared) = self.declared.get(&live.key) else { return };
            let (down, allowed) = self.nodes.budget(live, (declared, &self.policy), store, now);
            let count = down.len() as u64;
            if count > allowed {
                let key = &live.key;
                self.breaks(
                    now,
                    format_args!("{key}: {count} nodes unavailable, {allowed} allowed: {down:?}"),
                );
            }
        }
    }

    /// Whether the in-process controller deletes this pod, by what it may see.
    fn may_be_of_controller(&self, pod: &Pod, store: &Store, now: Timestamp) -> bool {
        let live = self.live(store).into_iter().find(|live| owns(live, pod));
        live.is_some_and(|live| upkeep::of(pod, &live, store, &self.nodes, now) == Upkeep::Gone)
    }

    /// The nodes that wait for the image of the target, or for another DaemonSet of a shared budget.
    fn waiting(
        &self,
        live: &DaemonSet,
        all: &[DaemonSet],
        store: &Store,
        now: Timestamp,
    ) -> BTreeSet<NodeName> {
        let Some(steps) = self.steps.get(&live.key) else { return BTreeSet::new() };
        let (rollout, known) = ((&self.policy, steps.target()), (store, &self.nodes));
        let shares = steps.rules().shared_budget.is_some();
        let pulls = steps.rules().pulls_for.is_some() && !steps.goes_back();
        let lacks_image = |node: &NodeName| pulls && !self.pulls.is_known(node, steps.target());
        let waits = |node: &NodeName| {
            lacks_image(node) || shares && self.shared.waits(node, (live, all), rollout, known, now)
        };
        let nodes = desired_nodes(live, store).map(|node| node.name.clone());
        nodes.filter(waits).collect()
    }

    /// The law that is broken if this outdated pod is deleted before its node has the image of the
    /// target.
    fn lacks_image(&self, pod: &Pod, live: &DaemonSet) -> Option<String> {
        let steps = self.steps.get(&live.key)?;
        let is_forward = image_of(live.spec.template.raw()) == steps.target();
        let is_to_pull = is_forward && !steps.goes_back() && steps.rules().pulls_for.is_some();
        (is_to_pull && !self.pulls.has(pod.node()?, steps.target()))
            .then(|| ", and its node has not pulled the image".to_owned())
    }

    /// The law of a shared budget that is broken if this outdated pod is deleted now for the first
    /// time.
    fn over_shared_budget(
        &self,
        pod: &Pod,
        live: &DaemonSet,
        all: &[DaemonSet],
        store: &Store,
        now: Timestamp,
    ) -> Option<String> {
        let is_available = is_available(pod, live, self.nodes.seen_by(now));
        if !is_available || self.attempted.contains(&pod.uid.to_string()) {
            return None;
        }
        let steps = self.steps.get(&live.key)?;
        let down = |live: &DaemonSet| {
            let declared = self.declared.get(&live.key).unwrap_or(&Value::Null);
            self.nodes.budget(live, (declared, &self.policy), store, now).0
        };
        let replacement = Replacement { pod, live, all, down: &down, target: steps.target() };
        self.shared.broken(&replacement, steps.rules(), (store, &self.nodes), now)
    }

    /// Why a pod may not be deleted, apart from the budget.
    fn unfit(&self, pod: &Pod, live: &DaemonSet, store: &Store, now: Timestamp) -> Option<String> {
        let seen = self.nodes.seen_by(now);
        let is_known = |part| self.changes.is_known(&live.key, part, seen);
        let (template, pause) = (is_known(Part::Template), is_known(Part::PausedRollout));
        if pause && PausedRollout::of(live).ok().flatten().is_none() {
            return Some(" without a pause".to_owned());
        }
        if template && is_updated(pod, live, store) {
            return Some(", which is updated".to_owned());
        }
        let known = self.changes.known_generation(&live.uid, now);
        if known.is_some_and(|known| live.status.observed_generation < known) {
            return Some(" before the controller observed the new generation".to_owned());
        }
        let former = pod.node().and_then(|node| self.nodes.former(node, now));
        if template
            && pause
            && let Some(other) = reasons::none((pod, former), live, &self.manifests, store, now)
        {
            return Some(format!(", but the plan has no reason: {other}"));
        }
        self.is_young(pod, live, now).then(|| ", which is Ready, but not yet available".to_owned())
    }

    /// The program has deleted a pod.
    pub(super) fn deleted(&mut self, request: &Seen, event: &Event, store: &Store, now: Timestamp) {
        let Some(pod) = event.previous.as_ref().and_then(|it| it.pod()) else { return };
        if pod.terminating {
            return;
        }
        if let Some(live) = self.live(store).into_iter().find(|live| owns(live, pod)) {
            self.under_lock(request, &live.key, store, now);
        }
    }

    /// The program has created a pod. It is judged by the template that was live when the request was
    /// sent: another one may be live by now.
    pub(super) fn created(&mut self, request: &Seen, event: &Event, store: &Store, now: Timestamp) {
        let Some(pod) = event.object.pod() else { return };
        let all = self.live(store);
        let Some(live) = all.iter().find(|live| owns(live, pod)) else { return };
        self.under_lock(request, &live.key, store, now);
        let sent = self.creating.remove(&request.number).unwrap_or_default();
        let as_sent = sent.iter().find(|it| it.uid == live.uid).unwrap_or(live);
        let seen = self.nodes.seen_by(now);
        if self.changes.is_known(&live.key, Part::Template, seen)
            && let Some(law) = upkeep::misplaced(pod, as_sent, store, &self.nodes, now)
        {
            self.breaks(now, format_args!("{} was created{law}", pod.name));
        }
    }

    /// Whether a pod has been Ready for long enough to be seen, but is not available yet.
    fn is_young(&self, pod: &Pod, live: &DaemonSet, now: Timestamp) -> bool {
        let PodReadiness::Ready { since: Some(since) } = pod.readiness else { return false };
        since <= self.nodes.seen_by(now) && !is_available(pod, live, now)
    }
}
