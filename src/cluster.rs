//! Where a [`Snapshot`](crate::model::Snapshot) comes from: the live cluster, or a recording.
//!
//! Dull on purpose: one method a verb, conversion at the border, retry as a table by verb. Live
//! and recorded objects go through the same decoder, so that equal clusters are equal snapshots.
//! Not here: any decision about a DaemonSet. Nothing in this room writes to a cluster.

mod connect;
mod decode;
mod error;
mod failure;
mod header;
mod kind;
mod list;
mod live;
mod record;
mod recorded;
mod request;
#[cfg(test)]
mod tests;

pub use connect::{ConnectOptions, connect};
pub use decode::ObjectError;
pub use error::{Error, Permission};
pub use kind::Kind;
pub use live::{LiveCluster, Scope};
pub use record::Recorded;
pub use recorded::{read_recorded, read_recorded_from};
