//! A real Kubernetes for tests: built with Go on first use, started by the test, gone with it.
//!
//! Start reading at `control_plane`. Everything is on loopback; there is no container runtime,
//! and the nodes are kwok's.

mod binaries;
mod cache;
mod client;
mod component;
mod control_plane;
mod fleet;
mod go_build;
mod kubectl;
mod options;
mod ports;
mod scratch;
mod waiting;
mod watchdog;

pub(crate) use component::Component;
pub(crate) use control_plane::ControlPlane;
pub(crate) use fleet::FakeNode;
pub(crate) use waiting::{wait_until, wait_until_async};
