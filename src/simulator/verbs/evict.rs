//! Binding a pod to a node, and evicting it from there (upstream: `BindingREST`, `EvictionREST`).

use std::sync::Arc;

use serde_json::Value;

use super::{DeleteOptions, Deleted, Target, Verbs, metadata};
use crate::model::LabelSelector;
use crate::simulator::{Cause, Kind, Object, Reason, Status};

impl Verbs<'_> {
    /// Binds a pod to a node, as the scheduler does.
    ///
    /// # Errors
    /// 404; 409 when it is bound or on its way out already.
    pub fn bind(&mut self, namespace: &str, name: &str, node: &str) -> Result<Arc<Object>, Status> {
        let target = Target::new(Kind::Pod, namespace, name);
        let live = self.get(target)?;
        if live.meta().deleted.is_some() {
            let why = format!("pod {name} is being deleted, cannot be assigned to a host");
            return Err(Status::conflict(Kind::Pod, &format!("{namespace}/{name}"), &why));
        }
        let mut pod = live.value();
        if let Some(bound) = pod["spec"]["nodeName"].as_str().filter(|bound| !bound.is_empty()) {
            let why = format!("pod {name} is already assigned to node {bound:?}");
            return Err(Status::conflict(Kind::Pod, &format!("{namespace}/{name}"), &why));
        }
        pod["spec"]["nodeName"] = node.into();
        let scheduled = serde_json::json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": metadata::time(self.now),
            "observedGeneration": live.meta().generation,
        });
        set_condition(&mut pod, scheduled);
        self.keep(Kind::Pod, pod)
    }

    /// Deletes a pod, unless a budget forbids it.
    ///
    /// # Errors
    /// 404; 429 when a budget has nothing left; 500 when several budgets cover the pod.
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
        self.delete(target, options)
    }

    fn spend_budget(&mut self, pod: &Object) -> Result<(), Status> {
        let namespace = pod.key().namespace();
        let budgets = self.store.objects(Kind::PodDisruptionBudget, Some(namespace));
        let covers = |budget: &&Arc<Object>| covers(&budget.value(), pod);
        let covering: Vec<Arc<Object>> = budgets.filter(covers).cloned().collect();
        let budget = match covering.as_slice() {
            [] => return Ok(()),
            [one] => Arc::clone(one),
            [_, _, ..] => {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction \
                           subresource does not support.";
                return Err(Status::new(Reason::InternalError, why));
            }
        };
        let mut value = budget.value();
        let unready = pod.pod().is_some_and(|pod| !pod.is_ready());
        let policy = value["spec"]["unhealthyPodEvictionPolicy"].as_str().unwrap_or_default();
        let status = &value["status"];
        let count = |field: &str| status[field].as_i64().unwrap_or_default();
        let healthy =
            count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0;
        if unready && (policy == "AlwaysAllow" || policy != "AlwaysAllow" && healthy) {
            return Ok(());
        }
        let (allowed, desired, current) =
            (count("disruptionsAllowed"), count("desiredHealthy"), count("currentHealthy"));
        let observed = count("observedGeneration");
        let budget_name = budget.key().name();
        if observed < budget.meta().generation {
            let message = format!(
                "The disruption budget {budget_name} is still being processed by the server."
            );
            return Err(too_many(message).retry_after(10));
        }
        if allowed <= 0 {
            let message = format!(
                "The disruption budget {budget_name} needs {desired} healthy pods and has \
                 {current} currently"
            );
            return Err(too_many(message));
        }
        value["status"]["disruptionsAllowed"] = (allowed - 1).into();
        let name = pod.key().name();
        if !value["status"]["disruptedPods"].is_object() {
            value["status"]["disruptedPods"] = serde_json::json!({});
        }
        value["status"]["disruptedPods"][name] = metadata::time(self.now);
        self.keep(Kind::PodDisruptionBudget, value).map(drop)
    }
}

/// (upstream: `canIgnorePDB`)
fn ignores_budgets(pod: &Object) -> bool {
    let pending = pod
        .pod()
        .is_some_and(|pod| pod.is_terminal() || pod.phase == crate::model::PodPhase::Pending);
    pending || pod.meta().deleted.is_some()
}

/// A budget without a selector covers nothing; an empty one covers all.
fn covers(budget: &Value, pod: &Object) -> bool {
    let selector = &budget["spec"]["selector"];
    let selector = serde_json::from_value::<Option<LabelSelector>>(selector.clone());
    selector.ok().flatten().is_some_and(|selector| selector.matches(&pod.meta().labels))
}

fn too_many(why: String) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
    Status::new(Reason::TooManyRequests, message).because(&[cause])
}

/// Puts a condition in the place of the one of its type.
fn set_condition(object: &mut Value, condition: Value) {
    let conditions = &mut object["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(all) => {
            all.retain(|it| it["type"] != condition["type"]);
            all.push(condition);
        }
        None => *conditions = serde_json::json!([condition]),
    }
}
