//! Plain data types that all modules share: nodes, pods, DaemonSets, revisions, and a cluster at
//! one moment. No Kubernetes client types, no input or output, no clock.
//!
//! The types are slim: they contain what planning needs; the rest of an object is dropped while it
//! is read. Two values are kept whole as JSON, because they are compared byte by byte: the pod
//! template and the data of a revision.

mod checks;
mod cluster_size;
mod commit;
mod daemon_set;
mod desired;
mod faults;
mod interner;
mod label_selector;
mod labels;
mod lease;
mod lease_name;
pub mod mask;
mod min_ready;
mod names;
mod neighbour;
mod node;
mod null_timestamps;
mod pod;
mod policy;
mod puller;
mod record;
mod revision;
mod scheduling;
mod service;
mod snapshot;
mod steps_note;
mod text_map;
mod time;
mod uid;
mod window;

pub use checks::{CheckEndpoint, CheckQuestion, CheckResponse, CheckSeries, Series, Unanswered};
pub use cluster_size::{IntOrPercent, ParseIntOrPercentError};
pub use commit::{is_commit_id, short_commit};
pub use daemon_set::{
    Cascade, DaemonSet, DaemonSetKey, DaemonSetSpec, DaemonSetStatus, ParseKeyError, PodTemplate,
    UpdateStrategy,
};
pub use desired::{DesiredDaemonSet, LoosenedPolicy, ManifestFile, Place};
pub use faults::{
    ApiFault, Faults, FaultsKind, FaultsVersion, FaultyAnswer, ImageFault, NodeEvent,
    NodeSelection, Period, RehearsedAnswer, RehearsedApproval, RehearsedCheck, Span,
};
pub use interner::Interner;
pub use label_selector::{
    ExpectedToken, LabelSelector, LabelSelectorRequirement, ParseLabelSelectorError, is_label_key,
    is_label_value,
};
pub use labels::Labels;
pub use lease::{FAILED_TEMPLATES_ANNOTATION, Lease, LockHolder, failed_templates};
pub use lease_name::lease_name;
pub use min_ready::MinReady;
pub use names::{DaemonSetName, NamespaceName, NodeName, PodName, RevisionHash, RevisionName};
pub use neighbour::{Neighbour, NeighbourQuery, Neighbours};
pub use node::{ConditionStatus, Node, NodeCondition, NodeReadiness};
pub use null_timestamps::drop_null_timestamps;
pub(crate) use null_timestamps::is_null_timestamp;
pub use pod::{ContainerFailure, ControllerRef, Pod, PodPhase, PodReadiness, PodTarget, Unready};
pub use policy::{
    Bound, Check, CheckKind, Deadline, Domains, EmptyAnswer, ExpectedPods, HttpCheck, OnFailure,
    PodsCheck, PodsOn, PolicyKind, PolicyMetadata, PolicySpec, PolicyStep, PolicyVersion, PrePull,
    PrometheusCheck, Ramp, RolloutPolicy, Selects, SkipUnreadyNodes, Soak, StepNodes, StepSelector,
    WhileWaiting,
};
pub use puller::{
    PRE_PULL_IMAGES_LABEL, PRE_PULL_LABEL, PullProblem, PullState, Puller, puller_label,
    puller_name, short_digest,
};
pub use record::{ManagedBy, RECORD_LABEL, record_name};
pub use revision::{Revision, RevisionNumber, RevisionRef};
pub use scheduling::null_as_default;
pub use scheduling::{
    NodeSelectorRequirement, NodeSelectorTerm, PodPlacement, Taint, TaintEffect, Toleration,
};
pub use service::Service;
pub use snapshot::{ClusterInfo, Coverage, Namespace, Snapshot, Unreadable};
pub use steps_note::{Approval, STEPS_ANNOTATION, StepNote, StepsNote, approvals_name};
pub use text_map::{TextMap, TextSet};
pub use time::Time;
pub use uid::Uid;
pub use window::{
    Calendar, Exclusion, FieldError, FieldName, FieldProblem, Opening, Openings,
    ParseScheduleError, ParseTimeZoneError, Schedule, TimeZoneName, Window, WindowDuration,
    WindowState,
};

/// The field manager of everything that `ds-apply` writes.
pub const FIELD_MANAGER: &str = "ds-apply";

/// Label on each daemon pod and revision: the hash of the template it came from
/// (upstream: `DefaultDaemonSetUniqueLabelKey`).
pub const REVISION_HASH_LABEL: &str = "controller-revision-hash";

/// Label on each daemon pod: the DaemonSet's template generation when the pod was created.
pub const TEMPLATE_GENERATION_LABEL: &str = "pod-template-generation";

/// Annotation of a DaemonSet that serves `templateGeneration` (upstream:
/// `DeprecatedTemplateGeneration`).
pub const TEMPLATE_GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

/// Annotation with the reason for a revision; `kubectl rollout history` prints it.
pub const CHANGE_CAUSE_ANNOTATION: &str = "kubernetes.io/change-cause";
