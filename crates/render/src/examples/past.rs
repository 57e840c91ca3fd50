//! Example histories, diffs and drift reports of a fleet, for tests.

use serde_json::{Value, json};

use crate::examples::{change, node, outdated, plan, wrong_disk};
use daemonset::model::{RevisionNumber, RevisionRef};
use planner::plan::{
    Action, ApiVersion, Change, Classified, DaemonSetDiff, DaemonSetDrift, DaemonSetHistory,
    Deviation, Diff, DiffKind, Drift, DriftKind, DriftTotals, History, HistoryKind, LeftoverPause,
    NodeDrift, PauseState, PausedRollout, Reason, RevisionDifference, RevisionEntry,
    WriteOperation, Writer,
};
use planner::steps::{WaitKind, WaitsFor};

fn entry(number: i64, change_cause: Option<&str>, pods: u32) -> RevisionEntry {
    let hash = format!("{number}f6d");
    RevisionEntry {
        number: RevisionNumber(number),
        name: format!("fluent-bit-{hash}").as_str().into(),
        hash: hash.as_str().into(),
        live: number == 8,
        created: Some("2026-08-01T11:00:00Z".parse().unwrap()),
        change_cause: change_cause.map(str::to_owned),
        commit: change_cause.map(|_| "4f2c9e1d0a5b6c7d8e9f00112233445566778899".to_owned()),
        pods,
        template: None,
    }
}

fn reference(number: i64) -> RevisionRef {
    let RevisionEntry { number, name, .. } = entry(number, None, 0);
    RevisionRef { name, number }
}

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "fluent-bit"}},
        "spec": {"containers": [{
            "name": "fluent-bit", "image": image, "env": [{"name": "A", "value": "(sensitive value)"}]
        }]},
    })
}

fn of(revisions: Vec<RevisionEntry>) -> DaemonSetHistory {
    DaemonSetHistory {
        namespace: "logging".into(),
        name: "fluent-bit".into(),
        revisions,
        pods_without_revision: 0,
        rollout: None,
        difference: None,
    }
}

/// An overview, one revision, and a difference.
pub(crate) fn history() -> History {
    let overview = DaemonSetHistory {
        pods_without_revision: 2,
        ..of(vec![entry(7, None, 3), entry(8, Some("new image"), 409)])
    };
    let one = RevisionEntry { template: Some(template("fluent-bit:3.2")), ..entry(8, None, 409) };
    let difference = RevisionDifference {
        from: reference(7),
        to: reference(8),
        changes: vec![change("spec.containers[fluent-bit].image", "3.1", "3.2")],
        before: template("fluent-bit:3.1"),
        after: template("fluent-bit:3.2"),
    };
    let two = of(vec![entry(7, None, 3), entry(8, None, 409)]);
    History {
        api_version: ApiVersion::V1Alpha1,
        kind: HistoryKind::History,
        cluster: plan(vec![]).cluster,
        daemon_sets: vec![
            overview,
            of(vec![one]),
            DaemonSetHistory { difference: Some(difference), ..two },
        ],
        warnings: vec![],
    }
}

/// A changed, a new and an unchanged DaemonSet.
pub(crate) fn diff() -> Diff {
    let object = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "fluent-bit", "namespace": "logging"},
            "spec": {"template": template(image)},
        })
    };
    let one = |name: &str, change, live, target| DaemonSetDiff {
        namespace: "logging".into(),
        name: name.into(),
        change,
        changes: vec![],
        live,
        target,
    };
    let image = change("spec.template.spec.containers[fluent-bit].image", "3.1", "3.2");
    Diff {
        api_version: ApiVersion::V1Alpha1,
        kind: DiffKind::Diff,
        source: plan(vec![]).source,
        cluster: plan(vec![]).cluster,
        daemon_sets: vec![
            DaemonSetDiff {
                changes: vec![image],
                ..one(
                    "fluent-bit",
                    Change::Update,
                    Some(object("fluent-bit:3.1")),
                    Some(object("fluent-bit:3.2")),
                )
            },
            one("gone", Change::None, None, None),
            one("new", Change::Create, None, Some(json!({"kind": "DaemonSet"}))),
        ],
        warnings: vec![],
    }
}

/// The annotation of a paused rollout.
pub(crate) fn pause(state: PauseState) -> PausedRollout {
    PausedRollout {
        state,
        declared: json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}),
        plan_digest: "sha256:6fd1".into(),
        from: Some(reference(7)),
        since: "2026-08-01T11:00:00Z".parse().unwrap(),
        commit: Some("4f2c9e1".into()),
        by: Some("ci@runner-7".into()),
        failed: None,
        target: None,
        waits_for: match state {
            PauseState::Paused | PauseState::Aborted => vec![],
            PauseState::Waiting => vec![soak()],
        },
        failed_gate: None,
    }
}

/// A canary that soaks.
pub(crate) fn soak() -> WaitsFor {
    WaitsFor {
        kind: WaitKind::Soak,
        daemon_set: None,
        step: "canary".into(),
        domain: None,
        check: None,
        until: Some("2026-08-01T12:30:00Z".parse().unwrap()),
    }
}

/// Every kind of deviation, on several DaemonSets; and one DaemonSet without any.
pub(crate) fn drift() -> Drift {
    let mut totals = DriftTotals::default();
    let mut one = |name: &str, deviations: Vec<Deviation>| {
        let deviations: Vec<Classified> = deviations.into_iter().map(Classified::from).collect();
        for classified in &deviations {
            totals.add(classified);
        }
        DaemonSetDrift { namespace: "logging".into(), name: name.into(), deviations }
    };
    let daemon_sets = vec![
        one("absent", vec![Deviation::ObjectMissing, orphaned()]),
        one("fluent-bit", edited()),
        one("going", vec![Deviation::ObjectTerminating]),
        one("paused", paced(Deviation::Paused { pause: pause(PauseState::Paused) })),
        one(
            "waiting",
            paced(Deviation::Waiting {
                pause: pause(PauseState::Waiting),
                overdue_seconds: Some(7_200),
                superseded: false,
            }),
        ),
        one("aborted", paced(Deviation::Aborted { pause: pause(PauseState::Aborted) })),
        one("quiet", vec![]),
        one("revisions", of_revisions()),
    ];
    Drift {
        api_version: ApiVersion::V1Alpha1,
        kind: DriftKind::Drift,
        source: plan(vec![]).source,
        cluster: plan(vec![]).cluster,
        daemon_sets,
        totals,
        warnings: vec![],
    }
}

fn edited() -> Vec<Deviation> {
    let writer = |manager: &str, operation, subresource: Option<&str>| Writer {
        manager: manager.into(),
        operation,
        time: Some("2026-08-01T10:00:00Z".parse().unwrap()),
        subresource: subresource.map(str::to_owned),
    };
    let deviates = |reason: Reason| {
        let nodes = ["edge-a-01", "edge-a-02", "edge-a-03"];
        let nodes = nodes.map(|name| node(name, Action::Wait, vec![reason.clone()]));
        nodes
            .map(|it| NodeDrift {
                node: it.name,
                pods: it.pods.into_iter().map(|pod| pod.name).collect(),
                reasons: it.reasons.to_vec(),
            })
            .to_vec()
    };
    vec![
        Deviation::FieldDiffers {
            change: change("spec.template.spec.containers[fluent-bit].image", "3.2", "3.1"),
            writers: vec![
                writer("kubectl-edit", WriteOperation::Update, None),
                writer("scaler", WriteOperation::Apply, Some("scale")),
            ],
        },
        Deviation::FieldDiffers {
            change: change("spec.minReadySeconds", Value::Null, 10),
            writers: vec![],
        },
        Deviation::PodMissing { nodes: deviates(Reason::NoPod) },
        Deviation::PodSurplus { nodes: deviates(Reason::Released) },
        Deviation::PodOutdated { nodes: deviates(outdated(7)) },
        Deviation::PodFailed { nodes: deviates(Reason::Failed) },
        Deviation::PodMisscheduled { nodes: deviates(Reason::LeftToGarbageCollector) },
        Deviation::NotObserved { generation: 9, observed_generation: 8 },
        Deviation::StatusDisagrees { nodes: deviates(outdated(7)) },
        Deviation::RunsWhereNoneMayStart {
            nodes: deviates(Reason::Misscheduled { obstacle: wrong_disk("hdd") }),
        },
        Deviation::NamespaceNodeSelector {
            annotation: "openshift.io/node-selector".into(),
            selector: "disk=ssd".into(),
            nodes: ["edge-a-10", "edge-a-9"].map(Into::into).into(),
        },
    ]
}

fn paced(pause: Deviation) -> Vec<Deviation> {
    let revision = Some(RevisionNumber(8));
    vec![pause, Deviation::Unfinished { revision, updated: 12, desired: 40 }]
}

fn orphaned() -> Deviation {
    Deviation::RevisionOrphaned { revision: reference(7) }
}

fn of_revisions() -> Vec<Deviation> {
    vec![
        Deviation::PauseUnreadable { problem: "annotation cannot be read".into() },
        Deviation::PauseLeftOver { left: LeftoverPause { pause: None, removed: true } },
        Deviation::RevisionMissing,
        Deviation::RevisionDuplicate { revision: reference(7), of: reference(8) },
        Deviation::RevisionNumberTwice {
            number: RevisionNumber(7),
            names: ["fluent-bit-a", "fluent-bit-b"].map(Into::into).into(),
        },
        Deviation::RevisionMixed {
            revision: reference(7),
            older: reference(6),
            newer: reference(8),
        },
    ]
}
