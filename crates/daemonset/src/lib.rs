#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! [`model`] is the data: nodes, pods, DaemonSets, revisions, a snapshot of a cluster.
//! [`controller`] is what the controller does with it, one file per rule, in the order of one sync.

pub mod controller;
pub mod model;
