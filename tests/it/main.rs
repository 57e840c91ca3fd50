//! Integration tests: the two programs as their users run them, and the laws of the code base.

// Clippy's leave for tests (clippy.toml) ends at functions marked as such; the sandbox is none.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod bad_input;
mod declared;
mod docs;
mod drift;
mod exit_codes;
#[cfg(feature = "web")]
mod fertile;
mod fixture;
mod fleet;
mod fuzz;
#[cfg(feature = "web")]
mod github;
#[cfg(feature = "web")]
mod markdown;
mod past;
#[cfg(feature = "web")]
mod pipelines;
mod plan;
#[cfg(feature = "planted")]
mod planted;
mod prune;
mod purity;
mod rehearsal;
#[cfg(feature = "web")]
mod report;
mod sandbox;
mod schemas;
mod secrets;
mod snapshot;
mod status;
mod streams;
mod usage;
#[cfg(feature = "web")]
mod web;
