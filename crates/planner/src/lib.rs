//! Decides, as pure functions: [`plan`] what a change does to each node, in which order and why;
//! [`rollout`] each next step of a rollout that is under way.
//!
//! Which node is replaced next: [`rollout`], in `rollout/waves.rs`.

pub(crate) mod classification;
pub mod plan;
pub mod rollout;
