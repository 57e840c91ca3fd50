//! Plans and paces changes to Kubernetes DaemonSets.
//!
//! Data goes one way: `source` and `manifest` make what is desired, `cluster` makes a snapshot,
//! `merge` knows what the server makes of an apply, `controller` what the DaemonSet controller would
//! do, `plan` decides, `render` shows. `rollout` decides step by step how a plan is carried out, and
//! `apply` carries it out.
//! `simulator` is a cluster inside the process, to rehearse on.
//! `cli` is the shell around them: command line in, exit status out.

pub mod apply;
pub mod cli;
pub mod cluster;
pub mod controller;
pub mod manifest;
pub mod merge;
pub mod model;
pub mod plan;
#[cfg(not(feature = "planted"))]
mod planted;
#[cfg(feature = "planted")]
pub mod planted;
pub mod render;
pub mod rollout;
mod search_path;
pub mod simulator;
pub mod source;
mod stream;
