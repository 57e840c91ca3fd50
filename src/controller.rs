//! What the DaemonSet controller would do, as pure functions of plain data (Kubernetes 1.36).
//!
//! The pieces stand in the order of one sync (upstream: `syncDaemonSet`): whose pods and revisions
//! these are ([`claims`]), which revision is current ([`history`]), where pods may run
//! ([`placement`]), what each node needs at once ([`manage`]), what rolling replaces next
//! ([`rolling_update`]), which revisions go, and what the status says ([`status`]). [`sync`] puts
//! them together.
//!
//! Where upstream iterates over a hash map, these functions go by node name, so equal inputs give
//! equal answers. Not here: writing anything, queues, expectations, and the pace of a rollout.

pub mod backoff;
pub mod batches;
pub mod claims;
pub mod ground;
pub mod hash;
pub mod history;
pub mod limits;
pub mod manage;
pub mod node_affinity;
pub mod node_pods;
pub mod placement;
pub mod pod;
pub(crate) mod program;
pub mod reasons;
pub mod revision_data;
pub mod rolling_update;
pub mod start_times;
pub mod status;
pub mod sync;
pub mod tolerations;
pub mod updated;

mod owner;
#[cfg(test)]
pub(crate) mod test_cluster;

pub use owner::Owner;
