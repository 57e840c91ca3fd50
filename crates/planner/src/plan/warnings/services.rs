//! Services that gain or lose endpoints: the endpoints of a Service are the Ready pods of its
//! namespace that have all labels of its selector (upstream: the `EndpointSlice` controller).
//!
//! Not here: which Services were read at all (`unchecked`).

use std::fmt;

use crate::plan::daemon_set_view::DaemonSetView;
use crate::plan::document::{Action, Change, DaemonSetPlan, Warning};
use crate::words::count;
use daemonset::model::{DaemonSet, Labels, Pod, Service, Snapshot};

/// The effect of the plan on the endpoints of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It selects the current pods but not the new ones.
    Loses { ours: usize },
    /// It selects the new pods but not the current ones.
    Gains,
    /// It has other endpoints, and selects the pods of a new DaemonSet.
    Mixes { others: usize },
    /// It selects both, and `gone` of its endpoints are removed at the same time.
    Thins { gone: usize, endpoints: usize },
}

/// A warning for each Service of the namespace that gains or loses endpoints, or many at a time.
pub(in crate::plan) fn warnings(
    plan: &DaemonSetPlan,
    daemon_set_view: &DaemonSetView<'_>,
    live: Option<&DaemonSet>,
    snapshot: &Snapshot,
) -> Vec<Warning> {
    if plan.change == Change::Recreate || live.is_some_and(|live| live.terminating) {
        return Vec::new();
    }
    let key = daemon_set_view.owner.key;
    let pods = Pods {
        now: live.map(|live| &live.spec.template.labels),
        to_come: &daemon_set_view.owner.spec.template.labels,
        ours: &daemon_set_view.pods.claimed,
        all: snapshot.pods_in(&key.namespace),
        gone_together: gone_together(plan),
    };
    let services = snapshot.services_in(&key.namespace).iter();
    let changed = services.filter_map(|service| Some((service, pods.effect_on(service)?)));
    changed
        .map(|(service, effect)| Warning {
            code: effect.code().to_owned(),
            message: sentence(service, effect),
            daemon_set: Some(key.to_string()),
            nodes: Vec::new(),
        })
        .collect()
}

/// The maximum number of pods that are gone at the same time: those of a wave, and those that the
/// controller deletes at once.
fn gone_together(plan: &DaemonSetPlan) -> usize {
    let of_wave = plan.waves.iter().map(|wave| {
        let allowed = usize::try_from(wave.max_unavailable).unwrap_or(usize::MAX);
        allowed.min(wave.nodes.len())
    });
    let removed = |action: Action, wave: Option<u32>| action == Action::Delete && wave.is_none();
    let at_once = plan.nodes.iter().filter(|node| removed(node.action, node.wave)).count();
    of_wave.max().unwrap_or_default() + at_once
}

/// The pods that a Service may select.
struct Pods<'a> {
    /// Labels of the live template; none when the DaemonSet is new.
    now: Option<&'a Labels>,
    /// Labels of the target template.
    to_come: &'a Labels,
    /// The DaemonSet's pods.
    ours: &'a [&'a Pod],
    /// All pods of the namespace.
    all: &'a [Pod],
    gone_together: usize,
}

impl Pods<'_> {
    fn effect_on(&self, service: &Service) -> Option<Effect> {
        let now = self.now.map(|labels| service.selects(labels));
        match (now, service.selects(self.to_come)) {
            (Some(true), false) => {
                let ours = self.ours.iter().filter(|pod| is_endpoint(pod, service)).count();
                Some(Effect::Loses { ours })
            }
            (Some(false), true) => Some(Effect::Gains),
            (None, true) => {
                let others = self.endpoints(service);
                (others > 0).then_some(Effect::Mixes { others })
            }
            (Some(true), true) => self.thinned(service),
            (Some(false) | None, false) => None,
        }
    }

    /// The effect when at least half of the endpoints are removed at once, and more than the one
    /// pod that every rolling update replaces.
    fn thinned(&self, service: &Service) -> Option<Effect> {
        let ours = self.ours.iter().filter(|pod| is_endpoint(pod, service)).count();
        let gone = self.gone_together.min(ours);
        let is_much = |of: usize| gone > 1 && gone * 2 >= of;
        // A namespace may have many pods: count them only if it can make a difference.
        if !is_much(ours) {
            return None;
        }
        let endpoints = self.endpoints(service);
        is_much(endpoints).then_some(Effect::Thins { gone, endpoints })
    }

    fn endpoints(&self, service: &Service) -> usize {
        self.all.iter().filter(|pod| is_endpoint(pod, service)).count()
    }
}

fn is_endpoint(pod: &Pod, service: &Service) -> bool {
    pod.is_ready() && !pod.terminating && service.selects(&pod.labels)
}

impl Effect {
    fn code(self) -> &'static str {
        match self {
            Self::Loses { .. } => "serviceLosesEndpoints",
            Self::Gains => "serviceGainsEndpoints",
            Self::Mixes { .. } => "serviceMixesEndpoints",
            Self::Thins { .. } => "serviceThinsOut",
        }
    }
}

fn sentence(service: &Service, effect: Effect) -> String {
    let Service { namespace, name, selector, headless } = service;
    let selector = Pairs(selector);
    let service = format!("{}Service {namespace}/{name}", if *headless { "headless " } else { "" });
    match effect {
        Effect::Loses { ours } => format!(
            "{service} ({selector}) does not select the new pods: it loses {} as pods are \
             replaced",
            count(ours, "endpoint")
        ),
        Effect::Gains => format!(
            "{service} ({selector}) selects the new pods but not the current ones: it gains them \
             as endpoints"
        ),
        Effect::Mixes { others } => format!(
            "{service} ({selector}) already has {}, and gains the pods of this DaemonSet",
            count(others, "endpoint")
        ),
        Effect::Thins { gone, endpoints } => format!(
            "{service} ({selector}) has {endpoints} endpoints, and up to {gone} of them are \
             removed at the same time"
        ),
    }
}

/// `app=web,tier=front`.
struct Pairs<'a>(&'a Labels);

impl fmt::Display for Pairs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, value)) in self.0.iter().enumerate() {
            write!(f, "{}{key}={value}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
