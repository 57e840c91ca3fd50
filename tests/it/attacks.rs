//! Attacks by hostile manifests, repositories, recordings and servers, one module per class of
//! attack. `docs/src/security.md` has a row for each.

mod broken_objects;
mod embedded_repository;
mod endless_answers;
mod equal_names;
mod hidden_kinds;
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
