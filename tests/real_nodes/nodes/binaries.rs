//! The programs of real nodes, built with Go on first use.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::harness::go_build::{self, Tool};

/// Our own programs; apart from the others, which take minutes if Go's cache is empty.
const OWN: [Tool; 1] = [Tool {
    folder: "nodes",
    programs: &[("agent", "./agent"), ("node", "./node"), ("registry", "./registry")],
    tags: "",
    cold: "half a minute",
}];

const UPSTREAM: [Tool; 3] = [
    Tool {
        folder: "cni",
        programs: &[("loopback", "github.com/containernetworking/plugins/plugins/main/loopback")],
        tags: "",
        cold: "some seconds",
    },
    Tool {
        folder: "containerd",
        programs: &[
            ("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
            (
                "containerd-shim-runc-v2",
                "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            ),
        ],
        tags: "",
        cold: "2 minutes",
    },
    Tool {
        folder: "kubelet",
        programs: &[("kubelet", "k8s.io/kubernetes/cmd/kubelet")],
        tags: "",
        cold: "a minute after the control plane, else 5,",
    },
];

/// The folder with our own programs.
pub(super) fn own() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| built(&OWN))
}

/// The folder with containerd, its shim, the network plugin and the kubelet.
pub(super) fn upstream() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| built(&UPSTREAM))
}

fn built(tools: &[Tool]) -> PathBuf {
    let programs = tools.iter().flat_map(|tool| tool.programs);
    let names: Vec<&str> = programs.map(|(program, _)| *program).collect();
    go_build::folder_with(tools, &names)
}
