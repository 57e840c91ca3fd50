//! The laws at the end of each run, when it reports that all is done, and some time after that.

use std::sync::Arc;

use daemonset::controller::revision_data::data_for;
use daemonset::model::{DaemonSet, Pod, UpdateStrategy};
use ds_plan::{Ended, Exit};
use embedded::{Kind, Object, Store};
use planner::annotations::{PLAN_DIGEST_ANNOTATION, ROLLOUT_ANNOTATION};
use planner::plan::PausedRollout;
use serde_json::json;

use crate::budget::{desired_nodes, owns};
use crate::cluster::NAMESPACE;
use crate::laws::LawChecker;
use crate::objects::{daemon_sets, is_updated, live, pods, remembered, revisions};
use crate::scenario::{AgentSpec, Change, Fate, Scenario, What};
use crate::trial::FIRST;

/// The broken law if a run does not end with one of the expected exit codes.
pub(crate) fn bad_end(scenario: &Scenario, user: &str, ended: &Ended) -> Option<String> {
    let has_interrupts = scenario.story.as_ref().is_some_and(|it| !it.interrupts.is_empty());
    let is_interrupted = scenario.fates.iter().any(|it| matches!(it, Fate::Interrupted(_)));
    let has_other_clocks = scenario.managed && !scenario.clocks.is_empty();
    match ended.exit {
        Exit::Done | Exit::Paused | Exit::Stale | Exit::Blocked | Exit::Locked => None,
        Exit::Failed if scenario.is_cut_off() || !scenario.external_actors.is_empty() => None,
        // The in-process controller does not act while the servers' time is not known.
        Exit::Failed if has_other_clocks && is_not_reconciled(ended) => None,
        Exit::Interrupted if is_interrupted && user == FIRST => None,
        Exit::Interrupted if has_interrupts => None,
        Exit::Waiting | Exit::ApprovalNeeded if scenario.story.is_some() => None,
        Exit::Changes
        | Exit::Drift
        | Exit::Waiting
        | Exit::ApprovalNeeded
        | Exit::Failed
        | Exit::Usage
        | Exit::Interrupted
        | Exit::Terminated => Some(format!("{user} ended with {ended:?}")),
    }
}

/// Whether nothing failed but to reconcile the pods of empty plans.
fn is_not_reconciled(ended: &Ended) -> bool {
    let failed: Vec<_> = ended.errors.iter().filter(|(exit, _)| *exit == Exit::Failed).collect();
    let is_that = |message: &str| message.contains("could not be reconciled within 30 s");
    !failed.is_empty() && failed.iter().all(|(_, message)| is_that(message))
}

/// The broken laws of aborted DaemonSets: the failure must be recorded where no other controller
/// removes it.
pub(crate) fn bad_pause(scenario: &Scenario, store: &Store) -> Vec<String> {
    let is_killed = scenario.story.as_ref().is_some_and(|story| !story.kills.is_empty());
    let is_left_alone = scenario.external_actors.is_empty() && scenario.fates.is_empty();
    if scenario.is_cut_off() || !is_left_alone || is_killed {
        return Vec::new();
    }
    let aborted = scenario.agents.iter().filter_map(|agent| {
        let live = live(agent.name, store)?;
        let failed = PausedRollout::of(live).ok()??.failed?;
        (!remembered(&live.key, store).contains(&failed))
            .then(|| format!("{} is aborted, but the failure is not recorded", agent.name))
    });
    aborted.collect()
}

/// The broken law if a killed rollback was not resumed by the next run.
pub(crate) fn left(
    scenario: &Scenario,
    ended: &[(String, Ended)],
    store: &Store,
) -> Option<String> {
    let [agent] = &scenario.agents[..] else { return None };
    let rolls_back = scenario.policy.as_ref().is_some_and(|it| it["onFailure"] == "rollback");
    let is_refused = ended.last().is_some_and(|(_, ended)| ended.exit == Exit::Blocked);
    if !rolls_back || !is_refused || scenario.is_cut_off() || !scenario.external_actors.is_empty() {
        return None;
    }
    let live = live(agent.name, store)?;
    PausedRollout::of(live).ok()??.failed?;
    let is_bad = |pod: &&Pod| owns(live, pod) && !pod.terminating && !is_updated(pod, live, store);
    let node = |pod: &Pod| store.get(Kind::Node, "", pod.node()?.as_str());
    let is_ready = |pod: &&Pod| {
        node(pod).and_then(|it| it.node().map(|it| it.readiness.is_ready())).unwrap_or_default()
    };
    let bad = pods(store).filter(is_bad).find(is_ready)?;
    Some(format!("the rollback of {} was not resumed, nor that of {}", agent.name, bad.name))
}

/// The broken laws at the moment when a run reports that all is done.
pub(crate) fn not_whole(scenario: &Scenario, store: &Store, checker: &LawChecker) -> Vec<String> {
    let mut broken = Vec::new();
    // Another client may delete a pod of the first DaemonSet while the run is at the next one.
    let mut others = scenario.external_actors.iter();
    let deletes = scenario.agents.len() > 1 && others.any(|it| it.what == What::Pod);
    for (agent, live) in undisturbed(scenario, store, checker) {
        let data = data_for(live.spec.template.raw());
        let matching: Vec<_> = revisions(live, store).filter(|it| *it.data == data).collect();
        let [revision] = matching[..] else {
            broken.push(format!("done, but {} has {} revisions", agent.name, matching.len()));
            continue;
        };
        let recorded = revision.annotations.get(PLAN_DIGEST_ANNOTATION).is_some();
        if agent.change == Change::Image && !recorded {
            broken.push(format!("done, but {} has no origin", revision.name));
        }
        if agent.strategy["type"] == "OnDelete" || !scenario.faults_are_of_api() {
            continue;
        }
        if deletes && agent.name == scenario.agents[0].name {
            continue;
        }
        for node in desired_nodes(live, store).filter(|node| node.readiness.is_ready()) {
            let mut here = pods(store).filter(|pod| pod.node() == Some(&node.name));
            if agent.change == Change::Image
                && !here
                    .any(|pod| owns(live, pod) && is_updated(pod, live, store) && pod.is_ready())
            {
                broken.push(format!("done, but {} is not Ready on {}", agent.name, node.name));
            }
        }
    }
    broken
}

/// The DaemonSets that no other client has changed, with their live state.
fn undisturbed<'s>(
    scenario: &'s Scenario,
    store: &'s Store,
    checker: &LawChecker,
) -> Vec<(&'s AgentSpec, &'s DaemonSet)> {
    let live = scenario.agents.iter().filter_map(|agent| {
        let live = live(agent.name, store)?;
        (!checker.was_interfered_with(&live.key)).then_some((agent, live))
    });
    live.collect()
}

/// Whether a pod has no owner and is not terminating.
fn is_left_alone(pod: &Pod) -> bool {
    pod.controller.is_none() && !pod.terminating
}

/// The broken laws some time after a run has reported that all is done.
pub(crate) fn not_done(scenario: &Scenario, store: &Store, checker: &LawChecker) -> Vec<String> {
    // Without a controller, nothing completes what a failed request has left behind.
    let quiet = scenario.faults_are_of_api() && !(scenario.managed && scenario.is_cut_off());
    let mut broken = Vec::new();
    for agent in &scenario.agents {
        if let Some(pod) = pods(store).find(|pod| is_left_alone(pod) && quiet) {
            broken.push(format!("done, but {} has no owner", pod.name));
        }
        if live(agent.name, store).is_none() && scenario.external_actors.is_empty() {
            broken.push(format!("done, but {} does not exist", agent.name));
        }
    }
    for (agent, live) in undisturbed(scenario, store, checker) {
        let container = &live.raw["spec"]["template"]["spec"]["containers"][0];
        let context = &container["securityContext"];
        if agent.change == Change::Emptied && *context != serde_json::json!({}) {
            broken.push(format!("done, but {} has the security context {context}", agent.name));
        }
        let image = &container["image"];
        let last = checker.target().unwrap_or(2);
        if agent.change == Change::Image && *image != format!("registry.example/agent:{last}") {
            broken.push(format!("done, but {} has the image {image}", agent.name));
        }
        if agent.strategy["type"] == "OnDelete" {
            continue;
        }
        if live.spec.update_strategy == UpdateStrategy::OnDelete {
            broken.push(format!("done, but {} is paused", agent.name));
        }
        for node in desired_nodes(live, store).filter(|node| quiet && node.readiness.is_ready()) {
            let here = pods(store).filter(|pod| pod.node() == Some(&node.name) && owns(live, pod));
            let here: Vec<&Pod> = here.collect();
            // A controller would create it later; without one, the run has to create it before it
            // is done.
            let lacks = scenario.managed && scenario.external_actors.is_empty() && here.is_empty();
            if lacks {
                broken.push(format!("done, but {} has no pod on {}", agent.name, node.name));
            }
            if !here.iter().all(|pod| {
                // A DaemonSet that is not to be changed stays as it was, Ready or not.
                let is_first = checker.target() == Some(1);
                let ready = pod.is_ready() || agent.change == Change::Nothing || is_first;
                ready && is_updated(pod, live, store)
            }) {
                broken.push(format!("done, but {} is outdated on {}", agent.name, node.name));
            }
        }
    }
    broken
}

/// The state of the cluster that must be the same however a run got there.
pub(crate) fn state(store: &Store) -> String {
    let daemon_sets = daemon_sets(store).map(|live| {
        let mut pods: Vec<String> = pods(store)
            .filter(|pod| pod.controller.as_ref().is_some_and(|it| it.uid == live.uid))
            .map(|pod| {
                let node = pod.node().map(ToString::to_string).unwrap_or_default();
                format!("{node} {:?} {}", pod.revision_hash(), pod.is_ready())
            })
            .collect();
        pods.sort();
        let owned =
            |object: &&Arc<Object>| object.meta().owners.iter().any(|owner| owner.uid == live.uid);
        let revisions: Vec<_> = store
            .objects(Kind::ControllerRevision, Some(NAMESPACE))
            .filter(owned)
            .filter_map(|it| it.revision())
            .map(|it| json!({"number": it.number, "data": *it.data}))
            .collect();
        let held = live.annotations.get(ROLLOUT_ANNOTATION).is_some();
        let spec = &live.raw["spec"];
        json!({"spec": spec, "paused": held, "pods": pods, "revisions": revisions})
    });
    let daemon_sets: Vec<String> = daemon_sets.map(|it| format!("{it:#}")).collect();
    daemon_sets.join("\n")
}
