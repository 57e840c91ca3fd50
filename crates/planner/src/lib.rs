//! Decides, as pure functions: [`plan`] what a change does to each node, in which order and why;
//! [`rollout`] the next requests of a rollout that is under way.
//!
//! For people between two runs: [`approval`] of a step. For what reads no source: [`rollback`] to an earlier revision, [`roll`] within a budget.
//!
//! Which node is replaced next: [`rollout`], in `rollout/next_deletes.rs`.

pub mod annotations;
pub mod approval;
pub mod check_answers;
pub mod check_report;
pub mod checks;
pub(crate) mod classification;
pub mod digest;
mod extent;
mod intermediate;
pub mod live_object;
pub mod plan;
pub mod pre_pull;
pub mod roll;
pub mod rollback;
pub mod rollout;
pub mod shared;
pub mod steps;
mod time;
pub mod words;
