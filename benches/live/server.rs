//! The process of the API server.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::control_plane::harness::ControlPlane;
use super::process::cpu;

/// The process of the API server.
pub(crate) struct Server(PathBuf);

impl Server {
    /// Finds the server of a control plane by the folder in its arguments.
    pub(crate) fn of(plane: &ControlPlane) -> Self {
        let folder = plane.folder().to_str().unwrap();
        let is_it = |process: &PathBuf| {
            let read = |file| fs::read_to_string(process.join(file)).unwrap_or_default();
            read("comm").trim() == "kube-apiserver" && read("cmdline").contains(folder)
        };
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        Self(processes.into_iter().find(is_it).expect("the API server runs"))
    }

    /// The CPU time that it has used so far.
    pub(crate) fn cpu(&self) -> Duration {
        cpu(&self.0).unwrap()
    }
}
