//! Example plans of a fleet, for tests.

pub(super) mod checks;
pub(super) mod past;
pub(super) mod run;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use daemonset::controller::placement::Obstacle;
use daemonset::model::{DaemonSetKey, ManagedBy, MinReady, Ramp, RevisionNumber, RevisionRef};
use planner::plan::{
    Action, ActionTotals, ApiVersion, Approved, Change, ClusterSummary, Counters,
    DaemonSetForecast, DaemonSetPlan, DaemonSetStatusReport, Explanation, ExplanationKind, Fate,
    FieldChange, Forecast, Guard, GuardCode, NodeObstacles, NodePlan, NotReadyNode, Plan, PlanKind,
    PodPlan, Reason, RevisionKind, RevisionPlan, RuleReport, RuleResult, SourceInfo, StatusKind,
    StatusReport, StepForecast, StepPlan, StepState, Strategy, TargetRevision, Totals, Warning,
    Wave, Zones,
};
use planner::steps::{WaitKind, WaitsFor};

/// A plan of `daemon_sets`, with matching totals.
pub(super) fn plan(daemon_sets: Vec<DaemonSetPlan>) -> Plan {
    let mut totals = Totals::default();
    for daemon_set in &daemon_sets {
        totals.actions += daemon_set.totals;
        match daemon_set.revision.kind {
            RevisionKind::New => totals.revisions.new += 1,
            RevisionKind::Reused => totals.revisions.reused += 1,
            RevisionKind::Unchanged => totals.revisions.unchanged += 1,
        }
    }
    Plan {
        api_version: ApiVersion::V1Alpha1,
        kind: PlanKind::Plan,
        created_at: "2026-08-01T12:00:00Z".parse().unwrap(),
        rehearsal: false,
        tool_version: "0.1.0".into(),
        digest: "sha256:6fd1".into(),
        source: SourceInfo {
            repository: Some("https://git.example/fleet".into()),
            commit: Some("4f2c9e1d0a5b6c7d8e9f00112233445566778899".into()),
            subject: Some("Ship fluent-bit 3.2".into()),
            base: None,
            paths: vec!["deploy/prod".into()],
            id: None,
            prune: None,
            prune_namespaces: BTreeSet::new(),
        },
        cluster: ClusterSummary {
            name: Some("prod-eu".into()),
            uid: Some("2b1d".into()),
            version: Some("v1.36.3".into()),
            observed_at: "2026-08-01T11:59:00Z".parse().unwrap(),
            nodes: 412,
            snapshot: None,
            zones: Zones::new(),
        },
        daemon_sets,
        totals,
        forecast: Some(Forecast {
            seconds: 2_460,
            starts_seen: 1_236,
            default_start_seconds: None,
            earliest_end: None,
            daemon_sets: vec![],
        }),
        guards: vec![],
        warnings: vec![],
    }
}

/// `namespace/name` with nothing to do: revision 7 on 412 nodes.
pub(super) fn quiet(namespace: &str, name: &str) -> DaemonSetPlan {
    DaemonSetPlan {
        namespace: namespace.into(),
        name: name.into(),
        uid: Some("8c1e".into()),
        generation: Some(9),
        change: Change::None,
        cascade: None,
        managed_by: ManagedBy::DaemonSetController,
        policy: None,
        after: Vec::new(),
        shared_budget: None,
        checks: vec![],
        pre_pull: None,
        strategy: Strategy::RollingUpdate { max_unavailable: 42, max_surge: 0, desired: 412 },
        pause: None,
        live_template: Some("sha256:1a2b".into()),
        target_template: "sha256:1a2b".into(),
        revision: RevisionPlan {
            current: Some(RevisionRef {
                name: format!("{name}-5f6d").as_str().into(),
                number: RevisionNumber(7),
            }),
            target: TargetRevision {
                name: Some(format!("{name}-5f6d").as_str().into()),
                number: RevisionNumber(7),
            },
            kind: RevisionKind::Unchanged,
        },
        changes: vec![],
        base: None,
        leftovers: vec![],
        conflicts: vec![],
        forced_conflicts: vec![],
        new_pods: None,
        steps: vec![],
        domain_key: None,
        next_waves: vec![],
        waits_for: vec![],
        waves: vec![],
        nodes: vec![],
        totals: ActionTotals { keep: 412, ..ActionTotals::default() },
        status: Some(Counters {
            desired: 412,
            current: 411,
            ready: 410,
            updated: 411,
            available: 410,
            unavailable: 2,
            misscheduled: 1,
        }),
    }
}

/// Revision 7 becomes 8 with `changes`; callers add the nodes.
pub(super) fn updated(name: &str, changes: Vec<FieldChange>) -> DaemonSetPlan {
    let mut plan = quiet("logging", name);
    plan.change = Change::Update;
    plan.changes = changes;
    plan.revision.target = TargetRevision { name: None, number: RevisionNumber(8) };
    plan.revision.kind = RevisionKind::New;
    plan
}

/// Builds plans for examples.
pub(super) trait WithNodes {
    /// Replaces as many unchanged nodes with `nodes`.
    fn with(self, nodes: impl IntoIterator<Item = NodePlan>) -> Self;

    /// Adds `nodes` as the wave `index`.
    fn with_wave(self, index: u32, name: &str, nodes: Vec<NodePlan>) -> Self;
}

impl WithNodes for DaemonSetPlan {
    fn with(mut self, nodes: impl IntoIterator<Item = NodePlan>) -> Self {
        for node in nodes {
            self.totals.keep = self.totals.keep.saturating_sub(1);
            self.totals.add(node.action);
            self.nodes.push(node);
        }
        self
    }

    fn with_wave(self, index: u32, name: &str, nodes: Vec<NodePlan>) -> Self {
        let (max_unavailable, max_surge) = match self.strategy {
            Strategy::OnDelete => (1, 0),
            Strategy::RollingUpdate { max_unavailable, max_surge, desired: _ } => {
                (max_unavailable, max_surge)
            }
        };
        let names = nodes.iter().map(|node| node.name.clone()).collect();
        let in_wave = nodes.into_iter().map(|node| NodePlan { wave: Some(index), ..node });
        let mut plan = self.with(in_wave);
        plan.waves.push(Wave {
            name: name.into(),
            max_surge,
            ramp: if max_surge > 0 { Ramp::None } else { Ramp::Double },
            min_ready_seconds: MinReady { first: 10, others: 0 },
            ..Wave::plain(index, max_unavailable, names)
        });
        plan
    }
}

/// One node with one pod (none for a create).
pub(super) fn node(name: &str, action: Action, reasons: Vec<Reason>) -> NodePlan {
    let fate = match action {
        Action::Delete | Action::Replace | Action::Surge => Fate::Delete,
        Action::Create | Action::Wait | Action::Keep => Fate::Keep,
    };
    let short = name.replace("edge-", "");
    let pods = match action {
        Action::Create => vec![],
        _ => vec![PodPlan {
            name: format!("agent-{short}x").as_str().into(),
            uid: format!("uid-{short}").as_str().into(),
            revision_hash: Some("5f6d".into()),
            fate,
            reason: reasons[0].clone().into(),
        }],
    };
    let reasons: Vec<_> = reasons.into_iter().map(Into::into).collect();
    NodePlan { name: name.into(), action, wave: None, pods: pods.into(), reasons: reasons.into() }
}

/// Nodes `edge-ZONE-01` to `edge-ZONE-COUNT` except `without`, with the same action and reason.
pub(super) fn zone(
    zone: &str,
    count: u32,
    without: &[u32],
    action: Action,
    reason: &Reason,
) -> Vec<NodePlan> {
    let numbers = (1..=count).filter(|number| !without.contains(number));
    numbers
        .map(|number| node(&format!("edge-{zone}-{number:02}"), action, vec![reason.clone()]))
        .collect()
}

/// `path` from `before` to `after`.
pub(super) fn change(path: &str, before: impl Into<Value>, after: impl Into<Value>) -> FieldChange {
    let some = |value: Value| Some(value).filter(|value| !value.is_null());
    FieldChange {
        path: path.into(),
        before: some(before.into()),
        after: some(after.into()),
        masked: false,
    }
}

/// A new image.
pub(super) fn new_image() -> FieldChange {
    change(
        "spec.template.spec.containers[fluent-bit].image",
        "cr.example/fluent-bit:3.1",
        "cr.example/fluent-bit:3.2",
    )
}

/// The pod has revision `number`.
pub(super) fn outdated(number: i64) -> Reason {
    Reason::Outdated { revision: Some(RevisionNumber(number)) }
}

/// `nodeSelector disk=ssd` against a node that has another value.
pub(super) fn wrong_disk(have: &str) -> Arc<Obstacle> {
    let (key, want, have) = ("disk".into(), "ssd".into(), Some(have.into()));
    Arc::new(Obstacle::NodeSelector { key, want, have })
}

/// A rollout by steps and domains: the canary soaks, and the rest needs an approval.
pub(super) fn stepped() -> Plan {
    let mut one = updated("fluent-bit", vec![new_image()])
        .with_wave(1, "rest, zone-a", zone("a", 20, &[], Action::Replace, &outdated(7)))
        .with_wave(2, "rest, zone-b", zone("b", 30, &[], Action::Replace, &outdated(7)));
    let step = |name: &str, nodes, updated, state, soak_seconds| StepPlan {
        name: name.into(),
        nodes,
        updated,
        state,
        approve: true,
        approved: None,
        soak_seconds,
    };
    one.steps = vec![
        step("canary", 3, 3, StepState::Soaking, 1_800),
        step("rest", 53, 3, StepState::Pending, 0),
    ];
    one.steps[0].approved = Some(Approved { by: "ada".into(), at: timestamp("11:00:00") });
    for (wave, domain) in one.waves.iter_mut().zip(["zone-a", "zone-b"]) {
        wave.step = Some("rest".into());
        wave.domain = Some(domain.into());
        wave.domain_max_unavailable = Some(2);
        wave.domains_at_once = Some(1);
        wave.soak_seconds = 900;
    }
    one.policy = Some("agents".into());
    let wait = |kind, step: &str, until| WaitsFor {
        check: None,
        kind,
        daemon_set: None,
        step: step.into(),
        domain: None,
        until,
    };
    one.waits_for = vec![
        wait(WaitKind::Soak, "canary", Some(timestamp("12:20:00.25"))),
        wait(WaitKind::Approval, "rest", None),
    ];
    let mut plan = plan(vec![one]);
    if let Some(forecast) = &mut plan.forecast {
        forecast.seconds = 1_200;
        forecast.earliest_end = Some(timestamp("13:10:00"));
        forecast.daemon_sets = vec![stepped_forecast()];
    }
    plan
}

/// The forecast of the same: a window opens before the rest begins.
fn stepped_forecast() -> DaemonSetForecast {
    let part = |name: &str, seconds, soak_seconds| StepForecast {
        name: name.into(),
        seconds,
        soak_seconds,
        begins: timestamp("11:59:00"),
        ends: timestamp("13:10:00"),
    };
    DaemonSetForecast {
        daemon_set: "logging/fluent-bit".into(),
        seconds: 1_200,
        waves: vec![480, 720],
        soak_seconds: 3_060,
        steps: vec![part("canary", 0, 1_260), part("rest", 1_200, 1_800)],
        window_opens: Some(timestamp("12:00:00")),
        time_zone: serde_json::from_value("Europe/Berlin".into()).ok(),
        earliest_end: Some(timestamp("13:10:00")),
        ..DaemonSetForecast::default()
    }
}

/// On the day of the examples.
fn timestamp(time: &str) -> Timestamp {
    format!("2026-08-01T{time}Z").parse().unwrap()
}

/// The example of a rollout on 412 nodes.
pub(super) fn rollout() -> Plan {
    let skipped = NotReadyNode { since: None, seconds: Some(11_000) };
    let fluent_bit = updated("fluent-bit", vec![new_image()])
        .with_wave(
            1,
            "all nodes",
            [
                zone("a", 137, &[], Action::Replace, &outdated(7)),
                zone("b", 274, &[13, 19], Action::Replace, &outdated(7)),
            ]
            .concat(),
        )
        .with([
            node("edge-c-77", Action::Create, vec![Reason::NoPod]),
            node(
                "edge-b-13",
                Action::Delete,
                vec![Reason::NotEligible { obstacle: wrong_disk("hdd") }],
            ),
            node("edge-b-19", Action::Wait, vec![Reason::SkippedUnreadyNode(skipped.into())]),
        ]);
    plan(vec![quiet("kube-system", "kube-proxy"), fluent_bit, quiet("monitoring", "node-exporter")])
}

/// An example with guards and warnings.
pub(super) fn guarded() -> Plan {
    let mut recreated =
        updated("agent", vec![change("spec.selector.matchLabels.app", "agent", "agent-v2")]);
    recreated.change = Change::Recreate;
    let mut plan = plan(vec![recreated]);
    plan.guards.push(Guard {
        code: GuardCode::SelectorChange,
        message: "spec.selector is immutable.".into(),
        allow_flag: None,
        daemon_set: Some("logging/agent".into()),
        nodes: vec![],
    });
    plan.guards.push(Guard {
        code: GuardCode::SelectorChange,
        message: "3 pods would be evicted at once".into(),
        allow_flag: Some("--allow-mass-eviction".into()),
        daemon_set: Some("logging/agent".into()),
        nodes: ["edge-a-01", "edge-a-02", "edge-a-03"].map(Into::into).into(),
    });
    plan.warnings.push(Warning {
        code: "noManagedFields".into(),
        message: "the snapshot has no managed fields: leftovers and conflicts are undecided".into(),
        daemon_set: None,
        nodes: vec![],
    });
    plan
}

/// Two DaemonSets, one healthy and one with unavailable pods.
pub(super) fn status() -> StatusReport {
    let well = Counters {
        desired: 40,
        current: 40,
        ready: 40,
        updated: 40,
        available: 40,
        unavailable: 0,
        misscheduled: 0,
    };
    let status = |name: &str| DaemonSetStatusReport {
        namespace: "logging".into(),
        name: name.into(),
        generation: 9,
        observed_generation: 9,
        reported: well,
        counted: well,
        node_selector: "<none>".into(),
        age_seconds: Some(3_600 * 24 * 41),
        pause: None,
        waits_since: None,
        pulling: Vec::new(),
        progress: None,
        lock: None,
        obstacles: vec![],
    };
    let obstacle = |node: &str, reason: &Reason| NodeObstacles {
        node: node.into(),
        reasons: vec![reason.clone().into()],
    };
    let mut troubled = status("node-exporter-with-a-long-name");
    troubled.node_selector = "disk=ssd,kubernetes.io/os=linux".into();
    troubled.generation = 10;
    troubled.counted = Counters { updated: 0, available: 37, unavailable: 3, ..well };
    troubled.obstacles = zone("a", 12, &[], Action::Wait, &Reason::OnDelete)
        .iter()
        .map(|node| obstacle(node.name.as_ref(), &Reason::OnDelete))
        .chain([obstacle("edge-b-07", &Reason::Terminating)])
        .collect();
    StatusReport {
        api_version: ApiVersion::V1Alpha1,
        kind: StatusKind::Status,
        cluster: plan(vec![]).cluster,
        daemon_sets: vec![status("fluent-bit"), troubled],
        warnings: vec![],
    }
}

/// A node that lost the label that the DaemonSet selects.
pub(super) fn explanation() -> Explanation {
    let reason = Reason::NotEligible { obstacle: wrong_disk("hdd") };
    let NodePlan { name, action, wave, pods, reasons } =
        node("edge-b-13", Action::Delete, vec![reason]);
    let rule = |rule: &str, outcome, message: &str| RuleReport {
        rule: rule.into(),
        outcome,
        message: message.into(),
    };
    Explanation {
        api_version: ApiVersion::V1Alpha1,
        kind: ExplanationKind::Explanation,
        cluster: plan(vec![]).cluster,
        source: None,
        daemon_set: DaemonSetKey::new("logging", "fluent-bit"),
        node: name,
        rules: vec![
            rule("nodeName", RuleResult::NotApplicable, "not set: any node"),
            rule("nodeSelector disk=ssd", RuleResult::Fail, "node has disk=hdd"),
            rule("taint gpu=yes:NoSchedule", RuleResult::StayOnly, "not tolerated"),
            rule(
                "taint node.kubernetes.io/unschedulable:NoSchedule",
                RuleResult::Pass,
                "tolerated, as by every daemon pod",
            ),
        ],
        may_start: false,
        may_stay: false,
        pods: pods.into(),
        action,
        wave,
        wave_name: None,
        is_later: false,
        waits_for: Vec::new(),
        pause: None,
        waits_since: None,
        reasons: reasons.to_vec(),
        logs: Vec::new(),
    }
}
