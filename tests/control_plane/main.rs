//! Tests on a real Kubernetes control plane.

// Clippy's leave for tests (clippy.toml) ends at functions marked as such; the harness is none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on panics, and one that fails says what it saw"
)]

mod declared;
mod harness;
mod smoke;
mod stages;
