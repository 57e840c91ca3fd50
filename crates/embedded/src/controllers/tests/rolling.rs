//! Rolling updates at upstream's cadence.

use super::*;

/// The example fleet: 10 nodes with available pods, then a new image.
fn example(strategy: &Value, faults: &str) -> Little {
    let mut little = Little::new(10, agent(strategy, 12), faults);
    little.until(100).set_image("agent:2");
    little.reported = little.store.version();
    little
}

#[test]
fn waves_of_three_of_ten_every_minimum_of_readiness() {
    let mut little = example(&rolling(&json!("25%"), &json!(0)), "");
    let mut fewest = 10;
    for second in 101..170 {
        little.until(second);
        let serving = little.pods().into_iter().filter(|pod| pod.serves(12, little.now)).count();
        fewest = fewest.min(serving);
    }
    assert_eq!(fewest, 7);
    assert_eq!(little.waves(Change::Deleted), [3, 3, 3, 1]);
    assert_eq!(little.status().updated_number_scheduled, 10);
    assert_eq!(little.status().number_available, 10);
}

#[test]
fn with_surge_no_node_is_without_a_pod() {
    let mut little = example(&rolling(&json!(0), &json!("25%")), "");
    let (mut most, mut fewest) = (0, 10);
    for second in 101..200 {
        little.until(second);
        most = most.max(little.pods().len());
        fewest = fewest.min(little.status().number_available);
    }
    assert_eq!((most, fewest), (13, 10));
    assert_eq!(little.waves(Change::Deleted), [3, 3, 3, 1]);
    assert_eq!(little.status().updated_number_scheduled, 10);
}

#[test]
fn a_missing_image_stops_the_rollout_at_its_budget() {
    for (fault, reason, restarts) in [
        ("neverPulls, image: 'agent:2'", "ImagePullBackOff", false),
        ("crashLoops, image: 'agent:2', after: 100ms", "CrashLoopBackOff", true),
    ] {
        let faults = format!("images: [{{fault: {fault}}}]\n");
        let mut little = example(&rolling(&json!(3), &json!(0)), &faults);
        little.until(1000);
        let bad: Vec<&Pod> = little.pods().into_iter().filter(|pod| !pod.is_ready()).collect();
        assert_eq!(bad.len(), 3, "{fault}");
        assert_eq!(little.status().number_unavailable, 3, "{fault}");
        for pod in bad {
            let container_failure = pod
                .container_failure
                .as_deref()
                .map(|container_failure| &*container_failure.reason);
            let known = [Some(reason), Some("ErrImagePull"), None];
            assert!(known.contains(&container_failure), "{container_failure:?}");
            assert_eq!(pod.restarts > 0, restarts, "{fault}");
        }
        // Rolling back is always possible.
        little.set_image("agent:1");
        little.until(1100);
        assert_eq!(little.status().number_available, 10, "{fault}");
    }
}

#[test]
fn a_slow_image_slows_the_rollout() {
    let faults = "images: [{fault: readyLate, image: 'agent:2', by: 60s}]\n";
    let mut little = example(&rolling(&json!(10), &json!(0)), faults);
    little.until(150);
    assert_eq!(little.status().number_ready, 0);
    little.until(180);
    assert_eq!(little.status().number_available, 10);
}

#[test]
fn requests_are_limited_as_in_a_controller_manager() {
    let timings = Timings { requests_per_second: 20.0, burst: 30, ..brisk() };
    let agent = agent(&rolling(&json!(1), &json!(0)), 0);
    let mut little = Little::with(90, agent, "", timings, 1);
    let mut counts = Vec::new();
    for second in 0..6 {
        little.until(second);
        counts.push(little.pods().len());
    }
    // 30 at once, one of them the revision; then 20 a second.
    assert_eq!(counts[1], 49, "{counts:?}");
    assert_eq!(counts[2], 69, "{counts:?}");
    assert_eq!(counts[5], 90, "{counts:?}");
}

#[test]
fn without_the_controller_manager_nothing_is_created() {
    let faults = "controllerManagerDown: [{from: 90s, until: 200s}]\n";
    let mut little = example(&rolling(&json!(3), &json!(0)), faults);
    let name = little.pod_on("node-04").unwrap().name.to_string();
    little.delete_pod(&name);
    little.until(199);
    assert_eq!(little.pods().len(), 9, "only the kubelet has acted");
    little.until(400);
    assert_eq!(little.status().updated_number_scheduled, 10);
}
