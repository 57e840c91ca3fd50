//! Access to a cluster: reads a [`Snapshot`](daemonset::model::Snapshot) from the live cluster or from
//! a recording, and sends all writes.
//!
//! Kept simple: one method per verb, conversion at the edge, retries as a table by verb. Live and
//! recorded objects go through the same decoder, so that equal clusters give equal snapshots.
//! Not here: any decision about a DaemonSet.
//!
//! A [`LiveCluster`] only reads. A [`WritableCluster`] also checks permissions, does dry runs and
//! takes locks. Only a [`Writer`] writes, and only a [`Lock`] provides one, so a write without the
//! lock does not compile. The one exception are approvals of steps, which a run waits for that may
//! hold the lock.

mod answer;
mod approvals;
mod connect;
mod decode;
mod error;
mod failure;
mod header;
mod kind;
mod link;
mod list;
mod live;
mod lock;
mod log;
mod names;
mod observer;
mod one;
mod priority_classes;
mod recorded;
mod recorder;
mod request;
mod retry;
mod server_clock;
#[cfg(test)]
mod tests;
mod uri;
mod verb;
mod watch;
mod write;
mod write_error;

pub use approvals::Approvals;
pub use connect::{ConnectOptions, Impersonation, connect};
pub use decode::ObjectError;
pub use decode::{Object as SlimObject, SlimDecoder};
pub use error::{Error, NoKubeconfig, Permission};
pub use kind::Kind;
pub use live::{LiveCluster, Scope};
pub use lock::{Clock, Holder, LiveLease, Lock, LockError, LockOptions, LockWait};
pub use log::LogOf;
pub use observer::{FailedCreate, Observer, View, WatchHealth, WatchedDaemonSet};
pub use recorded::{read_recorded, read_recorded_from};
pub use recorder::Recorded;
pub use verb::{RequestCounts, Resource, Verb};
pub use write::record::config_map;
pub use write::{Access, Apply, Owned, RecordWrite, Verdict, WritableCluster, Writer};
pub use write_error::{Attempted, InvalidField, OwnedField, WriteError};
