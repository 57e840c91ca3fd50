//! The laws of what the program writes: a DaemonSet, or its record.

use std::collections::BTreeSet;

use daemonset::controller::hash::hash;
use daemonset::controller::placement::judge;
use daemonset::controller::revision_data::data_for;
use daemonset::model::{DaemonSet, Revision, UpdateStrategy};
use embedded::{Event, Kind, Seen, Store};
use jiff::Timestamp;
use planner::digest::template_digest;
use planner::plan::{PauseState, PausedRollout};
use serde_json::Value;

use super::{LawChecker, is_rolled};
use crate::budget::{desired_nodes, is_available, owns};
use crate::objects::{daemon_set, failed_before, is_updated, pods, revisions};

impl LawChecker {
    /// The program has written a DaemonSet or its record.
    pub(super) fn written(&mut self, request: &Seen, event: &Event, store: &Store, now: Timestamp) {
        let Some(live) = daemon_set(&event.object) else { return };
        let Some(declared) = self.declared.get(&live.key).cloned() else { return };
        let key = &live.key;
        self.under_lock(request, key, store, now);
        if let Some(law) = self.steps.get_mut(&live.key).and_then(|steps| steps.written(live, now))
        {
            self.breaks(now, format_args!("{key}{law}"));
        }
        let before = event.previous.as_ref().and_then(|it| daemon_set(it));
        let sent: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let names = |field: &str| sent["metadata"][field].is_string();
        // Without a controller the program also writes the status.
        if event.object.kind() == Kind::ConfigMap && sent["data"].get("daemonSet").is_none() {
            if !names("uid") {
                self.breaks(now, format_args!("{key}: status written without a uid precondition"));
            }
            return;
        }
        let pause = PausedRollout::of(live).ok().flatten();
        let strategy = &live.raw["spec"]["updateStrategy"];
        let kept = pause.as_ref().map_or(strategy, |pause| &pause.declared);
        if !is_declared(kept, &declared) {
            self.breaks(now, format_args!("{key} has the strategy {strategy}"));
        }
        if before.is_some() && !sent.is_array() && !(names("uid") && names("resourceVersion")) {
            self.breaks(now, format_args!("{key} was written without preconditions"));
        }
        if pause.is_none() && is_rolled(strategy) {
            self.given_free(live, store, now);
        }
        if let Some(PausedRollout { state: PauseState::Aborted, from, failed, .. }) = &pause {
            let is_from = |it: &&Revision| from.as_ref().is_some_and(|from| from.name == it.name);
            let data = data_for(live.spec.template.raw());
            let good = revisions(live, store).find(is_from).is_some_and(|it| *it.data == data);
            let bad = *failed == Some(template_digest(live.spec.template.raw()));
            // Fields of other owners stay, which results in another template.
            if (!good || bad) && !self.was_interfered_with(key) {
                self.breaks(now, format_args!("{key} is aborted with another template"));
            }
        }
        let Some(before) = before else { return };
        if before.spec.template.raw() != live.spec.template.raw() {
            self.another_template(before, live, &declared, store, now);
        }
    }

    /// The program has changed the template.
    fn another_template(
        &mut self,
        before: &DaemonSet,
        live: &DaemonSet,
        declared: &Value,
        store: &Store,
        now: Timestamp,
    ) {
        let key = &live.key;
        let digest = template_digest(live.spec.template.raw());
        if failed_before(before, store).contains(&digest) {
            self.breaks(now, format_args!("{key} got a template that failed before"));
        }
        if !self.nodes.are_known(now) {
            return;
        }
        let evicted = pods(store).filter(|pod| owns(live, pod) && is_available(pod, live, now));
        let evicted = evicted.filter_map(|pod| {
            let node = store.get(Kind::Node, "", pod.node()?.as_str())?.node()?;
            let may_stay = |it: &DaemonSet| judge(&it.spec.template.placement, node).may_stay;
            (may_stay(before) && !may_stay(live)).then_some(&node.name)
        });
        let evicted = evicted.collect::<BTreeSet<_>>().len() as u64;
        let by_hand = declared["type"] == "OnDelete";
        // The DaemonSet's own limit at most: that of the policy, or the one before, may be stricter.
        let own = self.nodes.allowed(live, declared, &Value::Null);
        let allowed = if by_hand { 1 } else { own };
        if evicted > allowed {
            let text =
                format!("{key} got a template that evicts {evicted} pods, {allowed} allowed");
            self.breaks(now, text);
        }
    }

    /// The controller may replace pods again: no pod that it would replace may be left, except on
    /// skipped nodes.
    fn given_free(&mut self, live: &DaemonSet, store: &Store, now: Timestamp) {
        let desired: BTreeSet<_> = desired_nodes(live, store).map(|it| it.name.clone()).collect();
        let to_come = hash(live.spec.template.raw(), None);
        let old: Vec<String> = pods(store)
            .filter(|pod| owns(live, pod) && is_available(pod, live, self.nodes.seen_by(now)))
            .filter(|pod| !is_updated(pod, live, store) && !pod.has_hash(&to_come))
            .filter(|pod| {
                let desired = |name: &&daemonset::model::NodeName| desired.contains(*name);
                pod.node().filter(desired).is_some_and(|it| self.nodes.is_ready(it, now))
            })
            .map(|pod| pod.name.to_string())
            .collect();
        if !old.is_empty() {
            let key = &live.key;
            self.breaks(
                now,
                format_args!("{key}: strategy restored, but these pods are outdated: {old:?}"),
            );
        }
    }
}

/// Whether a strategy is the declared one with the server's defaults.
fn is_declared(strategy: &Value, declared: &Value) -> bool {
    let read = |value: &Value| serde_json::from_value::<UpdateStrategy>(value.clone()).ok();
    read(strategy).is_some() && read(strategy) == read(declared)
}
