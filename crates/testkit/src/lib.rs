//! What the tests of several crates share: random numbers and manifests, tables of invalid
//! manifests, hostile text; and what several test programs share: a small cluster, a folder to run the
//! programs in, the pages of the documentation.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "for tests")]
#![allow(clippy::new_without_default, reason = "an empty sandbox is no default of anything")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

pub mod fixture;
pub mod hostile_text;
pub mod invalid;
pub mod manifests;
pub mod pages;
pub mod random;
pub mod sandbox;
