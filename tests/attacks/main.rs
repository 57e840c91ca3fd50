//! Attacks by hostile manifests, repositories, recordings and servers, one module per class of
//! attack. `docs/src/security.md` has a row for each.

// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

mod broken_objects;
mod embedded_repository;
mod endless_answers;
mod equal_names;
mod hidden_kinds;
mod hostile_endpoints;
mod large_recording;
mod large_repository;
mod loosened_policy;
mod pipelines;
mod recordings;
mod records;
mod saved_plans;
mod special_files;
mod supply_chain;
mod surroundings;
mod tenants;
mod watched;
