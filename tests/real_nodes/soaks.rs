//! A canary whose container ends during its soak: the kubelet restarts it, and says so.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::agent::Agent;
use crate::fleet::{Ended, Fleet, ended};
use crate::harness::wait_until;
use crate::nodes::RealNodes;

/// The timeout for a restart, of a container that ends after [`UP`].
const SOON: Duration = Duration::from_mins(2);

/// The time after which the container ends; a restarted one is up for that long, too.
const UP: &str = "30s";

const SOAK: SignedDuration = SignedDuration::from_secs(60);

const POLICY: &str = "---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: careful}
spec:
  selects: {names: [restarts/agent]}
  maxRestarts: 1
  steps: [{name: canary, nodes: 1, soak: 60s}]
";

#[test]
fn a_canary_that_restarts_soaks_again_and_fails_if_it_does_so_too_often() {
    let Some(nodes) = RealNodes::start() else { return };
    let fleet = Fleet::new(&nodes, "restarts", &Agent::new("v1"));
    let first = run(&fleet);
    let soaks_until = until(&first);

    restarts(&fleet, 1);
    let restarted = running_since(&fleet);
    assert!(restarted < soaks_until, "during the soak: {restarted}");
    let second = run(&fleet);
    let again = until(&second);
    assert!(again >= restarted + SOAK, "up since {restarted}, {}", second.reported);

    restarts(&fleet, 2);
    let third = run(&fleet);
    assert_eq!(third.code, Some(4), "{}", third.reported);
    assert!(third.reported.contains("aborted: new pods failed on 1 node"), "{}", third.reported);
    assert_eq!(fleet.field(".spec.template.metadata.labels.version"), "v1");
    assert_eq!(fleet.witness.nodes_with("v2").len(), 1, "no other node begins");
}

fn run(fleet: &Fleet<'_>) -> Ended {
    let begin = Instant::now();
    let to = Agent::new("v2").exits_after(UP);
    let with_policy = |manifest: String, _: &str| format!("{manifest}{POLICY}");
    ended(&fleet.program_of(&to, with_policy, &[]).run(), begin)
}

/// The end of the soak that a run says.
fn until(run: &Ended) -> Timestamp {
    assert_eq!(run.code, Some(8), "{}", run.reported);
    let (_, until) = run.reported.rsplit_once("step canary soaks until ").unwrap();
    until.split_whitespace().next().unwrap().parse().unwrap()
}

/// Waits until the container of the new version has been restarted that often, and runs.
fn restarts(fleet: &Fleet<'_>, count: u32) {
    wait_until("the container is restarted", SOON, || {
        of_canary(fleet, "restartCount") == count.to_string()
            && !of_canary(fleet, "state.running.startedAt").is_empty()
    });
}

fn running_since(fleet: &Fleet<'_>) -> Timestamp {
    of_canary(fleet, "state.running.startedAt").parse().unwrap()
}

/// A field of the container's status.
fn of_canary(fleet: &Fleet<'_>, field: &str) -> String {
    let output = format!("--output=jsonpath={{.items[*].status.containerStatuses[0].{field}}}");
    fleet.kubectl(&["get", "pods", "--selector=version=v2", &output])
}
