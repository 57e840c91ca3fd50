//! Plans and paces changes to Kubernetes DaemonSets.
//!
//! Data goes one way: `source` and `manifest` make what is desired, `cluster` makes a snapshot,
//! `controller` knows what the DaemonSet controller would do, `plan` decides, `render` shows.

pub mod cluster;
pub mod controller;
pub mod manifest;
pub mod model;
pub mod plan;
pub mod render;
pub mod source;
