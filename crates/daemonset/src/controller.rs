//! The rules of the DaemonSet controller as pure functions of plain data (Kubernetes 1.36).
//!
//! The modules in the order of one sync (upstream: `syncDaemonSet`): claiming pods and revisions
//! ([`claims`]), the current revision ([`history`]), nodes on which pods may run ([`placement`]),
//! creating missing and deleting surplus pods ([`manage`]), replacing outdated pods
//! ([`rolling_update`]), pruning revisions ([`history`]), and the status ([`status`]). [`sync`]
//! combines them.
//!
//! Where upstream iterates over a hash map, these functions iterate by node name, so equal inputs
//! give equal results. Writes, queues, expectations and the pace of a rollout are elsewhere.

pub mod backoff;
pub mod batches;
pub mod claims;
pub mod hash;
pub mod history;
pub mod limits;
pub mod manage;
pub mod node_affinity;
pub mod node_placements;
pub mod node_pods;
pub mod placement;
pub mod pod;
pub mod reasons;
pub mod revision_data;
pub mod rolling_update;
pub mod start_times;
pub mod status;
pub mod sync;
pub mod sync_requests;
pub mod tolerations;
pub mod updated;

mod owner;
#[cfg(any(test, feature = "test-support"))]
#[allow(missing_docs, clippy::unwrap_used, clippy::missing_panics_doc, reason = "for tests")]
pub mod test_cluster;

pub use owner::Owner;
