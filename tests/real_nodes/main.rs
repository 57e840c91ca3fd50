//! `ds-apply` on real nodes: a kubelet and a container runtime each, beside a real control plane.
//!
//! kwok decides what a pod does; a kubelet finds out. Needs Linux, root and runc; where something is
//! missing, each test says so on standard error and passes. Read `nodes` first, then `agent`.

// Clippy's leave for tests (clippy.toml) ends at functions marked as such; the harness is none.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]
#![allow(clippy::disallowed_methods, reason = "tests are a shell: they have a clock and settings")]
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
mod smoke;
mod witness;

use control_plane::harness;
