//! What the DaemonSet controller would do.

pub mod placement;
