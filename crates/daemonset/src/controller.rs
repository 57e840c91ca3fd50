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
//!
//! The rules follow `pkg/controller/daemon` of Kubernetes 1.36.3. Each function names the upstream
//! function that it follows.
//!
//! Two words are stricter in this program than upstream. A pod is *available* when it has been
//! Ready for `minReadySeconds` and is not terminating; a pod of the target also only when no
//! container has started or ended meanwhile, and for as long as `MinReady` demands. A pod is
//! *updated* when its hash label is that of the target revision; upstream also accepts the
//! generation label. The seven status counters are upstream's.

pub mod backoff;
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
