//! Events of a run, one of each kind.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::past::soak;
use super::rollout;
use planner::plan::{ApiVersion, ContainerLog, LockStatus};
use planner::rollout::{
    Arrival, PodEvidence, Progress, ReplacedNode, RunEvent, RunEventData, RunEventKind,
};

/// One event of each kind, the plan first.
pub(crate) fn events() -> Vec<RunEvent> {
    let lock = LockStatus {
        holder: "alice on laptop (process 1)".to_owned(),
        since: None,
        renewed_seconds_ago: Some(2),
        lease_seconds: 15,
        live: true,
    };
    let data = [
        RunEventData::Plan { plan: Box::new(rollout()) },
        RunEventData::WaitingForLock { lock, wait_seconds: 30, free_in_seconds: 25 },
        RunEventData::ClocksDiffer { seconds: 40 },
        RunEventData::Started {
            by: Some("https://ci.example/run/5".to_owned()),
            commit: Some("4f2c9e1".to_owned()),
            nodes: 39,
        },
        RunEventData::Writing,
        RunEventData::Revision { revision: "agent-5cf89d644".into() },
        RunEventData::Deleting {
            node: "a-1".into(),
            pod: "agent-y".into(),
            uid: "u-1".into(),
            reason: "outdated".to_owned(),
        },
        RunEventData::Recovered { node: "a-1".into(), seconds: 41 },
        RunEventData::Arrived { node: "a-2".into(), how: Arrival::Created, seconds: 12 },
        RunEventData::Stopping { in_flight: 3 },
        RunEventData::LostReady { nodes: 7 },
        RunEventData::WaitingFor { waits_for: vec![soak()] },
        RunEventData::Failed { node: "a-3".into() },
        RunEventData::Progress { progress: Progress::default() },
        RunEventData::DeletingDaemonSet,
        RunEventData::Gone,
        ended(),
        RunEventData::RunEnded { exit_code: 4 },
    ];
    let event = |event| RunEvent {
        api_version: ApiVersion::V1Alpha1,
        kind: RunEventKind::RunEvent,
        time: Timestamp::UNIX_EPOCH,
        rehearsal: false,
        cluster: None,
        daemon_set: Some("logging/agent".to_owned()),
        message: "a sentence".to_owned(),
        event,
    };
    data.into_iter().map(event).collect()
}

/// The end after the new pod of a-3 has failed.
fn ended() -> RunEventData {
    let slowest =
        ReplacedNode { node: "a-1".into(), seconds: 41, old_pod_gone_after: Some(30), restarts: 1 };
    let log = ContainerLog {
        pod: "agent-x".into(),
        container: Some("agent".to_owned()),
        previous: true,
        lines: vec!["no configuration".to_owned()],
        error: None,
    };
    let evidence = PodEvidence { warning: Some("BackOff".to_owned()), log: Some(log) };
    RunEventData::Ended {
        exit_code: 4,
        replaced: 1,
        slowest: vec![slowest],
        evidence: BTreeMap::from([("a-3".into(), evidence)]),
        waits_for: vec![],
        failed_gate: None,
        unknown_check: None,
        left: BTreeMap::from([("a-3".into(), vec!["notAvailable".to_owned()])]),
    }
}
