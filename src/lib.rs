//! Plans and paces changes to Kubernetes DaemonSets.
//!
//! Data goes one way: `source` and `manifest` make what is desired, `cluster` makes a snapshot,
//! `controller` knows what the DaemonSet controller would do, `plan` decides, `render` shows.
//! `cli` is the shell around them: command line in, exit status out.

pub mod cli;
pub mod cluster;
pub mod controller;
pub mod manifest;
pub mod merge;
pub mod model;
pub mod plan;
pub mod render;
pub mod source;
