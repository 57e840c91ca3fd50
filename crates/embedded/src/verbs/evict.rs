//! Binding a pod to a node, and evicting it from there (upstream: `BindingREST`, `EvictionREST`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::{DeleteOptions, Deleted, Target, Verbs, metadata};
use crate::{Cause, Kind, Object, Reason, Status};
use daemonset::model::{LabelSelector, Pod, PodPhase};

/// The message of a refused eviction (upstream: `DisruptionBudgetCause`).
const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

impl Verbs<'_> {
    /// Binds a pod to a node, as the scheduler does.
    ///
    /// # Errors
    /// 404 if it does not exist; 409 if it is bound or terminates already.
    pub fn bind(&mut self, namespace: &str, name: &str, node: &str) -> Result<Arc<Object>, Status> {
        let live = self.get(Target::new(Kind::Pod, namespace, name))?;
        let mut pod = live.value();
        let why = match pod["spec"]["nodeName"].as_str().filter(|bound| !bound.is_empty()) {
            _ if live.meta().deleted.is_some() => {
                format!("pod {name} is being deleted, cannot be assigned to a host")
            }
            Some(bound) => format!("pod {name} is already assigned to node {bound:?}"),
            None => {
                pod["spec"]["nodeName"] = node.into();
                let scheduled = json!({
                    "type": "PodScheduled", "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": metadata::time(self.now),
                });
                set_condition(&mut pod, scheduled);
                return self.keep(Kind::Pod, pod);
            }
        };
        Err(Status::conflict_of(name, "pods/binding", &why))
    }

    /// Deletes a pod, unless a disruption budget forbids it.
    ///
    /// # Errors
    /// 404 if it does not exist; 429 if a budget allows no disruption; 500 if several budgets match
    /// the pod.
    pub fn evict(
        &mut self,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let target = Target::new(Kind::Pod, namespace, name);
        let live = self.get(target)?;
        if !ignores_budgets(&live) {
            self.spend_budget(&live)?;
        }
        // Checked before the first write to the pod, and again after it.
        super::delete::check_preconditions(target, &live, options)?;
        if self.options.dry_run {
            return self.delete(target, options);
        }
        let mut pod = live.value();
        let evicted = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null,
            "lastTransitionTime": metadata::time(self.now),
        });
        if !has_condition(&pod, &evicted) {
            set_condition(&mut pod, evicted);
            self.keep(Kind::Pod, pod)?;
        }
        self.delete(target, &DeleteOptions { resource_version: None, ..options.clone() })
    }

    fn spend_budget(&mut self, pod: &Object) -> Result<(), Status> {
        let namespace = pod.key().namespace();
        let budgets = self.store.objects(Kind::PodDisruptionBudget, Some(namespace));
        let covers = |budget: &&Arc<Object>| covers(&budget.value(), pod);
        let covering: Vec<Arc<Object>> = budgets.filter(covers).cloned().collect();
        let budget = match covering.as_slice() {
            [] => return Ok(()),
            [one] => one,
            [_, _, ..] => {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction \
                           subresource does not support.";
                return Err(Status::new(Reason::Unknown, why));
            }
        };
        let mut value = budget.value();
        let Budget { allowed, desired, current, observed, unready_pods_go } = Budget::of(&value);
        let name = budget.key().name();
        let unready = pod.pod().is_some_and(|pod| !pod.is_ready());
        if unready && (unready_pods_go || current >= desired && desired > 0) {
            return Ok(());
        }
        if observed < budget.meta().generation {
            let why =
                format!("The disruption budget {name} is still being processed by the server.");
            return Err(refused(why).retry_after(10));
        }
        if allowed <= 0 {
            let why = if current <= desired {
                format!("needs {desired} healthy pods and has {current} currently")
            } else {
                "does not allow evicting pods currently".to_owned()
            };
            return Err(refused(format!("The disruption budget {name} {why}")));
        }
        let status = &mut value["status"];
        status["disruptionsAllowed"] = (allowed - 1).into();
        status["disruptedPods"][pod.key().name()] = metadata::time(self.now);
        if allowed == 1 {
            let nothing_left = json!({
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
                "message": "", "observedGeneration": observed,
                "lastTransitionTime": metadata::time(self.now),
            });
            set_condition(&mut value, nothing_left);
        }
        self.keep(Kind::PodDisruptionBudget, value).map(drop)
    }
}

/// The current state of a disruption budget.
struct Budget {
    allowed: i64,
    desired: i64,
    current: i64,
    observed: i64,
    /// `true` if pods that are not ready may always be evicted.
    unready_pods_go: bool,
}

impl Budget {
    fn of(budget: &Value) -> Self {
        let count = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
        Self {
            allowed: count("disruptionsAllowed"),
            desired: count("desiredHealthy"),
            current: count("currentHealthy"),
            observed: count("observedGeneration"),
            unready_pods_go: budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow",
        }
    }
}

/// `true` for pods that budgets do not protect (upstream: `canIgnorePDB`).
fn ignores_budgets(pod: &Object) -> bool {
    let harmless = |pod: &Pod| pod.is_terminal() || pod.phase == PodPhase::Pending;
    pod.pod().is_some_and(harmless) || pod.meta().deleted.is_some()
}

/// `true` if the budget matches the pod. One without a selector matches none; an empty selector
/// matches all.
fn covers(budget: &Value, pod: &Object) -> bool {
    let selector = &budget["spec"]["selector"];
    let selector = serde_json::from_value::<Option<LabelSelector>>(selector.clone());
    selector.ok().flatten().is_some_and(|selector| selector.matches(&pod.meta().labels))
}

fn refused(why: String) -> Status {
    let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
    Status::new(Reason::TooManyRequests, REFUSAL).because(&[cause])
}

fn has_condition(object: &Value, condition: &Value) -> bool {
    let same =
        |it: &Value| ["type", "status", "reason"].iter().all(|field| it[field] == condition[field]);
    object["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(same))
}

/// Sets a condition, replacing the one of its type.
fn set_condition(object: &mut Value, condition: Value) {
    let conditions = &mut object["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(all) => {
            all.retain(|it| it["type"] != condition["type"]);
            all.push(condition);
        }
        None => *conditions = json!([condition]),
    }
}
