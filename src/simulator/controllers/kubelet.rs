//! The kubelets.
mod life;
mod status;
pub(in crate::simulator) use status::whole_second;
