//! What applying the source would do to the cluster: a pure function from a snapshot and the
//! desired DaemonSets to a [`Plan`].

mod changes;
mod document;
mod explanation;
mod reason;
mod status;

pub use document::{
    Action, ActionTotals, ApiVersion, Change, ClusterSummary, Coded, Counters, DaemonSetPlan, Fate,
    FieldChange, Guard, GuardCode, Kind, ManagedBy, NodePlan, Plan, PodPlan, RevisionKind,
    RevisionPlan, RevisionRef, RevisionTotals, SourceInfo, Strategy, TargetRevision, Totals,
    Warning, Wave,
};
pub use explanation::{Explanation, ExplanationKind, Outcome, RuleReport};
pub use reason::{Age, Reason};
pub use status::{DaemonSetStanding, NodeObstacles, Status, StatusKind};
