//! Tests on a real Kubernetes control plane.

// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]
#![allow(clippy::disallowed_methods, reason = "tests may use the clock and the environment")]

mod apply;
mod checks;
mod controller;
mod defaulting;
mod diff;
mod drift;
mod embedded;
mod fidelity;
mod fleet;
mod habits;
mod harness;
mod history;
mod immediate;
mod kustomize;
mod node_selector;
mod placement;
mod planning;
mod program;
mod read_only;
mod reading;
mod smoke;
mod snapshot;
mod stages;
mod status_table;
mod target;
mod upstream;
mod validation;
mod versions;
mod writes;
mod yaml_writing;
