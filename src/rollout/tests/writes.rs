//! writes
