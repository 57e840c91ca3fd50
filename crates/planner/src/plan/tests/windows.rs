//! Windows that are too short for the update of one node.

use super::guards::paced;
use super::*;

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
