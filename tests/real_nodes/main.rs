//! `ds-apply` on real nodes: a kubelet and a container runtime each, next to a real control plane.
//!
//! kwok only simulates pods; a kubelet really runs them. Needs Linux, root and runc; if something
//! is missing, each test prints that on standard error and passes. Read `nodes` first, then
//! `agent`.

// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]
#![allow(clippy::disallowed_methods, reason = "tests may use the clock and the environment")]
#![allow(clippy::print_stdout, reason = "what was measured goes to standard output")]

#[path = "../control_plane"]
#[expect(dead_code, unused_imports, reason = "the tests on fake nodes use all of it")]
mod control_plane {
    pub(crate) mod harness;
}

mod agent;
mod asking;
mod bad;
mod fleet;
mod good;
mod nodes;
mod outages;
mod pre_pull;
mod smoke;
mod soaks;
mod witness;

use control_plane::harness;
