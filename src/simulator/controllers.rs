//! The controllers.
mod agenda;
mod expectations;
mod kubelet;
pub(super) use kubelet::whole_second;
