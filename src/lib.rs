//! Plans and paces changes to Kubernetes DaemonSets.
//!
//! Data flows in one direction: `source` and `manifest` read the desired objects, `cluster` reads a
//! snapshot, `merge` computes the result of a server-side apply, `controller` the actions of the
//! DaemonSet controller, `plan` decides, and `render` prints. `rollout` decides each step of
//! applying a plan, and `apply` performs the steps.
//! `simulator` is an embedded cluster for rehearsals.
//! `cli` parses the command line and returns the exit status.

pub mod apply;
pub mod cli;
pub mod cluster;
pub mod controller;
pub mod manifest;
pub mod merge;
pub mod model;
pub mod plan;
pub mod render;
pub mod rollout;
mod search_path;
pub mod simulator;
pub mod source;
mod stream;
