//! The rules of the Kubernetes DaemonSet controller (1.36) as pure functions of plain data.
//!
//! [`model`] is the data: nodes, pods, DaemonSets, revisions, a snapshot of a cluster.
//! [`controller`] is what the controller does with it, one file per rule, in the order of one sync.
//! No function reads a file, a clock or the network; time is an argument.

pub mod controller;
pub mod model;
