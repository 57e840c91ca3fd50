//! Checks the steps and domains of a plan: waves are of steps, in their order, and equal in the
//! limits of domains.

use std::collections::{BTreeMap, BTreeSet};

use super::Flaw;
use crate::plan::document::{Action, DaemonSetPlan, StepState, Wave};
use daemonset::model::NodeName;

pub(super) fn steps(daemon_set: &DaemonSetPlan, flaws: &mut Vec<Flaw>) {
    let steps = &daemon_set.steps;
    let position =
        |wave: &Wave| steps.iter().position(|step| Some(&step.name) == wave.step.as_ref());
    let mut latest = 0;
    let mut seen = BTreeSet::new();
    for wave in &daemon_set.waves {
        match position(wave) {
            Some(at) if steps[at].state == StepState::Done => {
                flaws.push(Flaw::WaveStep(wave.index));
            }
            None if wave.step.is_some() || !steps.is_empty() => {
                flaws.push(Flaw::WaveStep(wave.index));
            }
            Some(_) | None => {}
        }
        let at = position(wave).unwrap_or(latest);
        if at < latest || !seen.insert((&wave.step, &wave.domain)) {
            flaws.push(Flaw::StepOrder(wave.index));
        }
        latest = latest.max(at);
    }
    domains(&daemon_set.waves, flaws);
    next_domains(daemon_set, flaws);
    nodes(daemon_set, flaws);
}

/// The limits of a domain are the same in all of its waves, and those of all domains in all waves.
fn domains(waves: &[Wave], flaws: &mut Vec<Flaw>) {
    let Some(first) = waves.first() else { return };
    let of_all = |wave: &Wave| (wave.domains_at_once, wave.soak_seconds, wave.domain.is_some());
    let mut limits = BTreeMap::new();
    for wave in waves {
        let limit = wave.domain_max_unavailable;
        let has_domains = wave.domains_at_once.is_some();
        let fits = of_all(wave) == of_all(first)
            && has_domains == wave.domain.is_some()
            && wave.domains_at_once != Some(0)
            && limit != Some(0)
            && *limits.entry(&wave.domain).or_insert(limit) == limit;
        if !fits {
            flaws.push(Flaw::Domains(wave.index));
        }
    }
}

/// More domains than may be at once come next only if each of them is disturbed. How many are, the
/// document does not say: at most the nodes without an available pod, those that are to get one, and
/// those that keep theirs or wait, as a new pod may be too young, or the node not Ready.
fn next_domains(daemon_set: &DaemonSetPlan, flaws: &mut Vec<Flaw>) {
    let DaemonSetPlan { waves, next_waves, totals, status, .. } = daemon_set;
    let next = || waves.iter().filter(|wave| next_waves.contains(&wave.index));
    let domains = next().filter_map(|wave| wave.domain.as_ref()).collect::<BTreeSet<_>>().len();
    let at_once = next().filter_map(|wave| wave.domains_at_once).max().unwrap_or(u32::MAX);
    let unavailable = status.map_or(0, |status| status.unavailable);
    let disturbed = [unavailable, totals.create, totals.keep, totals.wait];
    let disturbed: u64 = disturbed.into_iter().map(u64::from).sum();
    if domains as u64 > u64::from(at_once) && domains as u64 > disturbed {
        flaws.push(Flaw::NextDomains(domains));
    }
}

/// A step has no fewer nodes than the one before it, and those of its waves and of earlier ones that
/// are not updated yet. Only desired nodes count: a pod that is deleted and not recreated is in a
/// wave, but its node in no step.
fn nodes(daemon_set: &DaemonSetPlan, flaws: &mut Vec<Flaw>) {
    let leaving = daemon_set.nodes.iter().filter(|node| node.action == Action::Delete);
    let leaving: BTreeSet<&NodeName> = leaving.map(|node| &node.name).collect();
    let (mut before, mut to_roll) = (0, 0);
    for step in &daemon_set.steps {
        let waves = daemon_set.waves.iter().filter(|wave| wave.step.as_ref() == Some(&step.name));
        let nodes = waves.flat_map(|wave| &wave.nodes).filter(|node| !leaving.contains(node));
        to_roll += u32::try_from(nodes.count()).unwrap_or(u32::MAX);
        if step.nodes < before || u64::from(step.updated) + u64::from(to_roll) > step.nodes.into() {
            flaws.push(Flaw::StepNodes(step.name.clone()));
        }
        before = step.nodes;
    }
}
