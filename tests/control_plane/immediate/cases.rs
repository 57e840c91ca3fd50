//! The DaemonSets, and the changes of each of their pods: one change on one node, or many.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::FakeNode;
use testkit::random::Random;

const TEST: &str = "the_controller_does_at_once_what_the_plan_says";

/// The number of ordinary nodes.
const NODES: usize = 8;
/// Three nodes that change: two are tainted, one is deleted.
pub(super) const NO_SCHEDULE: &str = "tainted-no-schedule";
pub(super) const NO_EXECUTE: &str = "tainted-no-execute";
pub(super) const GONE: &str = "gone";
/// The node of a single change.
const SINGLE: &str = "node-003";
/// The node that the second version of a template excludes.
const AVOIDED: &str = "node-005";

/// The change of the existing pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Original {
    Ready,
    Unready,
    Missing,
    Failed,
    Succeeded,
    /// It lost its owner reference.
    Orphaned,
    /// It lost the label that the selector requires.
    Released,
    Terminating,
    TerminatingFailed,
    /// Its hash label is that of another template; its generation label is right.
    OtherHash,
    /// Its hash and generation labels are those of another template.
    Outdated,
}

/// A copy of the existing pod, with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    Ready,
    Unready,
    /// Never bound to the node that it targets.
    Unbound,
    Failed,
    Succeeded,
    Terminating,
    Orphan,
    FailedOrphan,
    TerminatingOrphan,
    /// Owned by a `ReplicaSet`.
    Foreign,
    /// Its hash and generation labels are those of another template.
    Outdated,
    OutdatedUnready,
}

const ORIGINALS: [Original; 11] = [
    Original::Ready,
    Original::Unready,
    Original::Missing,
    Original::Failed,
    Original::Succeeded,
    Original::Orphaned,
    Original::Released,
    Original::Terminating,
    Original::TerminatingFailed,
    Original::OtherHash,
    Original::Outdated,
];
const COPIES: [Copy; 12] = [
    Copy::Ready,
    Copy::Unready,
    Copy::Unbound,
    Copy::Failed,
    Copy::Succeeded,
    Copy::Terminating,
    Copy::Orphan,
    Copy::FailedOrphan,
    Copy::TerminatingOrphan,
    Copy::Foreign,
    Copy::Outdated,
    Copy::OutdatedUnready,
];

/// The changes of a DaemonSet's pods on one node.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) original: Original,
    pub(super) copies: Vec<Copy>,
    /// The node got a label that excludes this DaemonSet.
    pub(super) misplaced: bool,
}

/// The change of the DaemonSet itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    Unchanged,
    /// Its template was changed, and the controller has observed it.
    Changed,
    /// Its template was changed, and the controller has not observed it.
    ChangedUnseen,
    /// Its template is changed by the planned manifest.
    Planned,
    /// It was deleted without its pods, and created again.
    LeftBehind,
    /// It was deleted without its pods, and the planned manifest creates it again with another
    /// template.
    LeftBehindPlanned,
}

const PASTS: [Past; 6] = [
    Past::Unchanged,
    Past::Changed,
    Past::ChangedUnseen,
    Past::Planned,
    Past::LeftBehind,
    Past::LeftBehindPlanned,
];

/// The update strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    OnDelete,
    Rolling,
    Surge,
}

/// A DaemonSet and its changes.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) strategy: Strategy,
    pub(super) past: Past,
    pub(super) sites: BTreeMap<String, Site>,
    tolerates: Option<&'static str>,
    min_ready_seconds: u32,
}

/// All nodes of the test.
pub(super) fn nodes() -> Vec<FakeNode> {
    let special = [NO_SCHEDULE, NO_EXECUTE, GONE].map(FakeNode::new);
    FakeNode::many("node", NODES).into_iter().chain(special).collect()
}

/// All cases: first those with a single change, then those with many.
pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for original in ORIGINALS {
        cases.push(single(&format!("original-{original:?}"), original, vec![], false));
    }
    for copy in COPIES {
        cases.push(single(&format!("copy-{copy:?}"), Original::Ready, vec![copy], false));
    }
    cases.push(single("misplaced", Original::Ready, vec![], true));
    for past in PASTS {
        let quiet = single(&format!("past-{past:?}"), Original::Ready, vec![], false);
        cases.push(Case { past, ..quiet });
    }
    for original in [Original::Ready, Original::Missing, Original::Released, Original::Orphaned] {
        let site = Site { original, copies: vec![Copy::Unbound], misplaced: false };
        let quiet = single(&format!("gone-{original:?}"), original, vec![], false);
        cases.push(Case { sites: [(GONE.to_owned(), site)].into(), ..quiet });
    }
    cases.extend(surges());
    cases.extend((0..18).map(|index| combined(index, Strategy::OnDelete)));
    cases.extend((18..21).map(|index| combined(index, Strategy::Rolling)));
    cases.extend((21..25).map(|index| combined(index, Strategy::Surge)));
    cases
}

/// An outdated pod and a new one on the same node, as in a surge.
fn surges() -> impl Iterator<Item = Case> {
    let pairs = [
        ("surge-replaced", Original::Ready, Copy::Outdated),
        ("surge-replaced-by-copy", Original::OtherHash, Copy::Ready),
        ("surge-old-one-unready", Original::Unready, Copy::OutdatedUnready),
        ("surge-new-one-unready", Original::Unready, Copy::Outdated),
    ];
    pairs.into_iter().map(|(name, original, copy)| Case {
        strategy: Strategy::Surge,
        ..single(name, original, vec![copy], false)
    })
}

fn single(name: &str, original: Original, copies: Vec<Copy>, misplaced: bool) -> Case {
    Case {
        name: name.to_lowercase(),
        strategy: Strategy::OnDelete,
        past: Past::Unchanged,
        sites: [(SINGLE.to_owned(), Site { original, copies, misplaced })].into(),
        tolerates: Some("Exists"),
        min_ready_seconds: 0,
    }
}

fn combined(index: usize, strategy: Strategy) -> Case {
    let name = format!("combined-{index:02}");
    let mut random = Random::of(TEST, &name);
    let names = (0..NODES).map(|index| format!("node-{index:03}"));
    let names = names.chain([NO_SCHEDULE, NO_EXECUTE, GONE].map(str::to_owned));
    Case {
        strategy,
        past: if strategy == Strategy::OnDelete { PASTS[index % 6] } else { Past::Unchanged },
        tolerates: random.pick(&[None, None, Some("NoSchedule"), Some("NoExecute")]),
        min_ready_seconds: random.pick(&[0, 0, 3600]),
        sites: names.map(|node| (node, site(&mut random, strategy))).collect(),
        name,
    }
}

fn site(random: &mut Random, strategy: Strategy) -> Site {
    // Outdated pods are rolled; this test does not check when.
    let (originals, copies) = match strategy {
        Strategy::OnDelete => (&ORIGINALS[..], &COPIES[..]),
        Strategy::Rolling | Strategy::Surge => {
            (&ORIGINALS[..ORIGINALS.len() - 1], &COPIES[..COPIES.len() - 2])
        }
    };
    let original = if random.one_in(3) { Original::Ready } else { random.pick(originals) };
    let count = random.pick(&[0, 0, 1, 1, 2, 3]);
    Site {
        original,
        copies: (0..count).map(|_| random.pick(copies)).collect(),
        misplaced: random.one_in(8),
    }
}

impl Case {
    /// Whether the planned manifest is the second version.
    fn ends_changed(&self) -> bool {
        match self.past {
            Past::Unchanged | Past::LeftBehind => false,
            Past::Changed | Past::ChangedUnseen | Past::Planned | Past::LeftBehindPlanned => true,
        }
    }

    /// The first manifest.
    pub(super) fn first(&self) -> Value {
        self.manifest(1)
    }

    /// The planned manifest.
    pub(super) fn planned(&self) -> Value {
        self.manifest(if self.ends_changed() { 2 } else { 1 })
    }

    /// The label that excludes it from a node.
    pub(super) fn label(&self) -> String {
        format!("example.com/off-{}", self.name)
    }

    fn manifest(&self, version: u32) -> Value {
        let name = &self.name;
        let mut expressions = vec![json!({"key": self.label(), "operator": "DoesNotExist"})];
        if version == 2 {
            let avoid =
                json!({"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [AVOIDED]});
            expressions.push(avoid);
        }
        let tolerations = match self.tolerates {
            None => json!([]),
            Some("Exists") => json!([{"key": "maintenance", "operator": "Exists"}]),
            Some(effect) => json!([{"key": "maintenance", "operator": "Exists", "effect": effect}]),
        };
        let strategy = match self.strategy {
            Strategy::OnDelete => json!({"type": "OnDelete"}),
            Strategy::Rolling => json!({"rollingUpdate": {"maxUnavailable": 1}}),
            Strategy::Surge => json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}),
        };
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "updateStrategy": strategy,
                "minReadySeconds": self.min_ready_seconds,
                "template": {"metadata": {"labels": {"app": name}}, "spec": {
                    "containers": [{"name": "main", "image": format!("agent:v{version}")}],
                    "tolerations": tolerations,
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                        {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}},
                }},
            },
        })
    }
}
