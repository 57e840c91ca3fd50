//! The programs of the control plane, and where each is found. `go_build` builds them.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{go_build, kubernetes};

/// A program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    Etcd,
    KubeApiserver,
    /// The controllers, including the DaemonSet controller.
    KubeControllerManager,
    /// The scheduler; it also binds daemon pods, each to the node that its affinity names.
    KubeScheduler,
    /// The command line client, of the same version as the server.
    Kubectl,
    /// The kubelets of fake nodes.
    Kwok,
}

impl Program {
    pub(crate) const ALL: [Self; 6] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubectl,
        Self::Kwok,
    ];

    /// The file's name, the same as in an envtest folder.
    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
        }
    }
}

/// The path of each program.
#[derive(Debug)]
pub(crate) struct Binaries {
    paths: BTreeMap<Program, PathBuf>,
}

impl Binaries {
    /// The programs, built now if this machine has not built them before.
    pub(crate) fn get() -> &'static Self {
        static FOUND: OnceLock<Binaries> = OnceLock::new();
        FOUND.get_or_init(|| {
            let assets = env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty());
            Self::find(assets.map(PathBuf::from).as_deref())
        })
    }

    /// The path of `program`.
    pub(crate) fn path(&self, program: Program) -> &Path {
        &self.paths[&program]
    }

    /// Uses the programs in `assets` (the envtest convention) and builds the others.
    fn find(assets: Option<&Path>) -> Self {
        let mut paths = in_assets(assets);
        let missing: Vec<Program> =
            Program::ALL.into_iter().filter(|program| !paths.contains_key(program)).collect();
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|it| it.file_name()).collect();
            let tools = go_build::control_plane(kubernetes::version().module);
            let built = go_build::folder_with(&tools, &names);
            paths.extend(
                missing.into_iter().map(|program| (program, built.join(program.file_name()))),
            );
        }
        Self { paths }
    }
}

/// The programs in `KUBEBUILDER_ASSETS`.
fn in_assets(assets: Option<&Path>) -> BTreeMap<Program, PathBuf> {
    let Some(folder) = assets else {
        return BTreeMap::new();
    };
    assert!(
        folder.is_dir(),
        "KUBEBUILDER_ASSETS is {}, which is not a folder; correct it, or unset it to have the \
         control plane built",
        folder.display()
    );
    Program::ALL
        .into_iter()
        .map(|program| (program, folder.join(program.file_name())))
        .filter(|(_, path)| path.is_file())
        .collect()
}

#[test]
fn existing_assets_are_used() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("etcd"), "").unwrap();
    let found = in_assets(Some(folder.path()));
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        [(Program::Etcd, folder.path().join("etcd"))]
    );
}
