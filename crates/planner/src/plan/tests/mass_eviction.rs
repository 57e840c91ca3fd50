//! How many nodes may lose their pods at once without a guard.

use super::ownership::held;
use super::*;
use daemonset::model::{IntOrPercent, RolloutPolicy};

/// Ten nodes of which only the first `evicted` have no `disk: ssd`, under `maxUnavailable`.
fn with_disks(evicted: usize, max_unavailable: &Value) -> Cluster {
    let mut cluster = settled(10);
    for node in cluster.nodes.iter_mut().skip(evicted) {
        node.labels = labels([("disk", "ssd")]);
    }
    cluster.set_limits(max_unavailable, &json!(0));
    settle(&mut cluster);
    cluster
}

/// The manifest that selects `disk: ssd`, with this strategy.
fn selecting(cluster: &mut Cluster, strategy: &Value) -> DesiredDaemonSet {
    cluster.edit(|spec| {
        spec["updateStrategy"] = strategy.clone();
        spec["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    });
    desired(cluster)
}

fn rolling(max_unavailable: &Value, max_surge: u32) -> Value {
    let limits = json!({"maxUnavailable": max_unavailable, "maxSurge": max_surge});
    json!({"type": "RollingUpdate", "rollingUpdate": limits})
}

fn with_limit(desired: DesiredDaemonSet, limit: Option<&str>) -> DesiredDaemonSet {
    let Some(limit) = limit else { return desired };
    let mut policy = RolloutPolicy::named("p");
    policy.spec.max_unavailable = Some(limit.parse::<IntOrPercent>().unwrap());
    DesiredDaemonSet { policy: Some(policy.into()), ..desired }
}

/// The end of the guard's message: the number of nodes that may be unavailable; `None` without a guard.
fn allowed(plan: &Plan) -> Option<&str> {
    let [guard] = &plan.guards[..] else {
        assert_eq!(plan.guards, []);
        return None;
    };
    assert_eq!(guard.code, GuardCode::MassEviction);
    let (_, end) = guard.message.rsplit_once("at most ").unwrap();
    end.strip_suffix(" may be unavailable")
}

/// Cases: limit of the live object, strategy of the manifest, limit of the policy, evicted nodes, and
/// the number that the guard names.
#[test]
fn the_strictest_budget_decides() {
    let on_delete = json!({"type": "OnDelete"});
    for (live, strategy, policy, evicted, guarded) in [
        // A manifest cannot raise its own budget in the change that evicts.
        (json!(1), rolling(&json!(1000), 0), None, 9, Some("1")),
        (json!(1), rolling(&json!("100%"), 0), None, 9, Some("1")),
        (json!(3), rolling(&json!(3), 0), None, 3, None),
        (json!(3), rolling(&json!(2), 0), None, 3, Some("2")),
        // A percentage is of the desired nodes before and after.
        (json!("30%"), rolling(&json!(9), 0), None, 3, None),
        (json!(9), rolling(&json!("30%"), 0), None, 4, Some("2")),
        // That of the policy and of the command line.
        (json!(5), rolling(&json!(5), 0), Some("1"), 3, Some("1")),
        (json!(5), rolling(&json!(5), 0), Some("5"), 3, None),
        (json!(2), rolling(&json!(2), 0), Some("5"), 3, Some("2")),
        (json!(5), rolling(&json!(5), 0), Some("0"), 1, None),
        // These have no budget for pods that are deleted.
        (json!(5), rolling(&json!(0), 2), Some("5"), 2, Some("1")),
        (json!(5), on_delete, Some("5"), 2, Some("1")),
    ] {
        let case = format!("{live} {strategy} {policy:?} {evicted}");
        let mut cluster = with_disks(evicted, &live);
        let before = snapshot(&cluster);
        let desired = with_limit(selecting(&mut cluster, &strategy), policy);
        assert_eq!(allowed(&planned(&before, &[desired])), guarded, "{case}");
    }
}

/// The live `OnDelete` of a pause is not declared by anyone.
#[test]
fn the_budget_before_is_the_declared_one_during_a_pause() {
    for (declared, guarded) in [(3, None), (2, Some("2"))] {
        let mut cluster = with_disks(3, &json!(3));
        let mut before = held(&cluster, PauseState::Paused, None);
        let live = &mut before.daemon_sets[0];
        let with = format!("\"maxUnavailable\":{declared}");
        let annotations = live.annotations.iter();
        let annotations: Vec<(String, String)> = annotations
            .map(|(key, value)| (key.to_owned(), value.replace("\"maxUnavailable\":1", &with)))
            .collect();
        live.annotations = annotations.iter().map(|(key, value)| (&**key, &**value)).collect();
        let desired = selecting(&mut cluster, &rolling(&json!(9), 0));
        let plan = planned(&before, &[desired]);
        assert!(plan.daemon_sets[0].pause.is_some());
        assert_eq!(allowed(&plan), guarded, "{declared}");
    }
}

/// The pods of a DaemonSet that was deleted with `--cascade=orphan`.
#[test]
fn orphans_that_a_new_daemon_set_adopts_count() {
    let message = "8 nodes are not eligible, and the controller adopts their pods and deletes them \
                   all at once, regardless of the update strategy; at most 1 may be unavailable";
    // Nodes that are not eligible, whether their pods have another owner or go already, the policy's
    // limit, and the guard.
    for (evicted, is_owned, is_going, limit, want) in [
        (8, false, false, None, Some((8, message))),
        (8, true, false, None, None),
        (8, false, true, None, None),
        (1, false, false, None, None),
        (0, false, false, None, None),
        (8, false, false, Some("9"), Some((8, message))),
    ] {
        let mut cluster = with_disks(evicted, &json!(1));
        for pod in &mut cluster.pods {
            pod.controller = pod.controller.take().filter(|_| is_owned);
            pod.terminating = is_going;
        }
        let mut before = snapshot(&cluster);
        before.daemon_sets.clear();
        let desired = with_limit(selecting(&mut cluster, &rolling(&json!(1), 0)), limit);
        let plan = planned(&before, &[desired]);
        assert_eq!(plan.daemon_sets[0].change, Change::Create);
        let guards: Vec<_> = plan.guards.iter().map(|it| (it.nodes.len(), &*it.message)).collect();
        assert_eq!(guards, Vec::from_iter(want), "{evicted} {is_owned} {is_going} {limit:?}");
    }
}
