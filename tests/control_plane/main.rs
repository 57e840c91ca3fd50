//! Tests on a real Kubernetes control plane.

// Clippy's leave for tests (clippy.toml) ends at functions marked as such; the harness is none.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]
#![allow(clippy::disallowed_methods, reason = "tests are a shell: they have a clock and settings")]

mod apply;
mod controller;
mod defaulting;
mod diff;
mod drift;
mod fidelity;
mod fleet;
mod harness;
mod history;
mod immediate;
mod kustomize;
mod node_selector;
mod placement;
mod planning;
mod program;
mod random;
mod read_only;
mod reading;
mod simulator;
mod smoke;
mod snapshot;
mod stages;
mod status_table;
mod target;
mod upstream;
mod validation;
mod writes;
mod yaml_writing;
