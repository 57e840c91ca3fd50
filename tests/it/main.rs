//! Integration tests: the two programs as their users run them, and the rules of the code base.

// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

mod after;
mod asking;
mod bad_input;
mod checks;
mod circles;
mod command_line;
mod declared;
mod dependencies;
mod docs;
mod drift;
mod exit_codes;
mod faults;
mod fleet;
mod fuzz;
#[cfg(feature = "web")]
mod github;
#[cfg(feature = "web")]
mod go_tools;
mod hints;
#[cfg(feature = "web")]
mod markdown;
#[cfg(feature = "web")]
mod notification_examples;
mod notifications;
mod past;
#[cfg(feature = "web")]
mod pictures;
#[cfg(feature = "web")]
mod pipelines;
mod plan;
mod pre_pull;
mod programs;
mod prune;
mod purity;
mod rehearsal;
#[cfg(all(feature = "web", target_os = "linux"))]
mod release;
mod release_again;
#[cfg(feature = "web")]
mod report;
mod rust_files;
mod schemas;
mod secrets;
mod shared_budget;
mod snapshot;
mod speed;
mod status;
mod step_wave;
mod steps;
mod streams;
mod tried;
mod usage;
mod version;
mod waiting;
#[cfg(feature = "web")]
mod web;
mod words;

/// Whether a variable asks to make files again instead of comparing them, such as `UPDATE_SCHEMAS`.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}
