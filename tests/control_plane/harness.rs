//! A real Kubernetes control plane for tests: built with Go on first use, started by the test,
//! removed with it.
//!
//! Start reading at `control_plane`. Everything listens on loopback; there is no container runtime,
//! and the nodes are kwok's. The head of each file in `stages/` describes how they and their pods
//! behave, and how a test selects this. Real nodes are in `tests/real_nodes`.
//!
//! Environment variables:
//! - `KUBEBUILDER_ASSETS`: a folder (of envtest, for example) whose programs are used; the others
//!   are built.
//! - `DS_PLAN_TEST_KUBERNETES`: the version of Kubernetes, such as `1.31`; default the newest one.
//!   It also says which version the programs in `KUBEBUILDER_ASSETS` are.
//! - `DS_PLAN_CONTROL_PLANE_CACHE`: the folder of built programs; default
//!   `~/.cache/ds-plan/control-plane`.
//! - `DS_PLAN_CONTROL_PLANE_KEEP`: keeps each control plane's folder, including its logs.

mod binaries;
pub(crate) mod cache;
mod client;
mod component;
mod control_plane;
mod fleet;
pub(crate) mod go_build;
mod kubectl;
pub(crate) mod kubernetes;
mod options;
pub(crate) mod ports;
mod program;
mod proxy;
mod running;
mod scratch;
mod served;
mod shown_yaml;
mod terminal;
mod waiting;
pub(crate) mod watchdog;

pub(crate) use client::block_on;
pub(crate) use component::Component;
pub(crate) use control_plane::ControlPlane;
pub(crate) use fleet::FakeNode;
pub(crate) use kubectl::kubectl_path;
pub(crate) use program::{AT_ONCE, Program, ds_plan_offline, stdout};
pub(crate) use proxy::{Fault, Proxy};
pub(crate) use running::Running;
pub(crate) use served::Served;
pub(crate) use shown_yaml::shown_yaml;
pub(crate) use waiting::{wait_for, wait_until, wait_until_async};
