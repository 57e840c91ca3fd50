//! Windows that are too short for the update of one node.

use super::guards::paced;
use super::*;
use daemonset::model::DaemonSetKey;

/// The messages of the guards under a policy with these fields.
fn guards(mut cluster: Cluster, policy: &Value) -> Vec<String> {
    let plan = paced(&mut cluster, policy);
    let of_windows = plan.guards.iter().filter(|guard| guard.code == GuardCode::WindowTooShort);
    of_windows.map(|guard| guard.message.clone()).collect()
}

#[test]
fn a_window_in_which_no_node_could_begin_is_a_guard() {
    let window = |duration: &str| json!([{"schedule": "0 2 * * *", "duration": duration}]);
    let no_window = |takes: &str, which: &str| {
        format!(
            "no node would ever begin: the update of one takes {takes} (its `progressDeadline`, as \
             no pod with these images has started yet), but no window of policy p {which} \
             within 400 days. Lengthen the `duration` of a window, shorten `progressDeadline`, or \
             remove exclusions"
        )
    };
    let too_short = |takes: &str, longest: &str| {
        no_window(takes, &format!("is open for longer than {longest}"))
    };
    for (policy, want) in [
        (json!({"windows": window("9m")}), Some(too_short("10m", "9m"))),
        (json!({"windows": window("10m")}), None),
        (json!({"windows": window("9m"), "progressDeadline": "9m"}), None),
        (
            json!({"windows": window("9m"), "progressDeadline": "1h30m"}),
            Some(too_short("1h 30m", "9m")),
        ),
        // One of several is long enough.
        (
            json!({"windows": [
                {"schedule": "0 2 * * *", "duration": "9m"},
                {"schedule": "0 4 * * *", "duration": "1h"},
            ]}),
            None,
        ),
        // What two of them have in common is one opening.
        (
            json!({"windows": [
                {"schedule": "0 2 * * *", "duration": "9m"},
                {"schedule": "9 2 * * *", "duration": "9m"},
            ]}),
            None,
        ),
        // An exclusion may leave no room.
        (
            json!({
                "windows": window("20m"),
                "exclusions": [
                    {"from": "1960-01-01T00:00:00Z", "to": "2300-01-01T00:00:00Z", "reason": "x"},
                ],
            }),
            Some(no_window("10m", "opens")),
        ),
    ] {
        assert_eq!(guards(settled(3), &policy), Vec::from_iter(want), "{policy}");
    }
}

/// An empty plan has no node that could begin.
#[test]
fn a_plan_without_waves_needs_no_window() {
    let mut cluster = settled(3);
    let policy = json!({"windows": [{"schedule": "0 2 * * *", "duration": "1m"}]});
    paced(&mut cluster, &policy);
    settle(&mut cluster);
    assert_eq!(guards(cluster, &policy), [""; 0]);
}

/// What shares a budget is updated node by node, one DaemonSet after the other.
#[test]
fn a_window_has_room_for_all_that_share_a_budget() {
    let too_short = "no node would ever begin: the update of one takes 20m for 2 DaemonSets one \
                     after the other (its `progressDeadline`, as no pod with these images has \
                     started yet), but no window of policy p is open for longer than 19m within \
                     400 days. Lengthen the `duration` of a window, shorten `progressDeadline`, or \
                     remove exclusions";
    for (duration, shares, sibling, want) in [
        ("19m", true, Some("foo/bar:2"), Some(too_short)),
        ("20m", true, Some("foo/bar:2"), None),
        ("19m", false, Some("foo/bar:2"), None),
        // It is not rolled out.
        ("19m", true, Some("foo/bar"), None),
        // It is not in the source.
        ("19m", true, None, None),
    ] {
        let message = with_sibling(duration, shares, sibling);
        assert_eq!(message.as_deref(), want, "{duration}, {shares}, {sibling:?}");
    }
}

/// The message about `default/foo` while another DaemonSet of its policy gets this image.
fn with_sibling(duration: &str, shares: bool, sibling: Option<&str>) -> Option<String> {
    let other = DaemonSetKey::new("default", "other");
    let mut cluster = settled(3);
    let mut before = snapshot(&cluster);
    let mut live = before.daemon_sets[0].clone();
    (live.key, live.uid) = (other.clone(), "uid-other".into());
    before.daemon_sets.push(live);
    let mut policy = json!({
        "apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy", "metadata": {"name": "p"},
        "spec": {
            "selects": {"names": ["default/foo", "default/other"]},
            "windows": [{"schedule": "0 2 * * *", "duration": duration}],
        },
    });
    if shares {
        policy["spec"]["sharedBudget"] = 1.into();
    }
    let policy = Some(Arc::new(serde_json::from_value(policy).unwrap()));
    let mut wanted = Vec::new();
    if let Some(image) = sibling {
        cluster.set_image(image);
        wanted.push(DesiredDaemonSet { key: other, policy: policy.clone(), ..desired(&cluster) });
    }
    cluster.set_image("foo/bar:2");
    wanted.push(DesiredDaemonSet { policy, ..desired(&cluster) });
    let guards = planned(&before, &wanted).guards.into_iter();
    let is_of_foo = |guard: &Guard| guard.daemon_set.as_deref() == Some("default/foo");
    let mut guards = guards.filter(|it| it.code == GuardCode::WindowTooShort && is_of_foo(it));
    guards.next().map(|guard| guard.message)
}
