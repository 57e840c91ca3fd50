//! The configuration files of one node.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ability, binaries};

/// The socket of a node's containerd. Such a path may have about a hundred characters at most.
pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join("containerd.sock")
}

/// The folder of containerd's volatile state.
pub(super) fn state(folder: &Path) -> PathBuf {
    folder.join("state")
}

/// Writes all of them.
pub(super) fn write(folder: &Path, registry: u16, kubelet: u16) {
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).expect("the folder is ours");
    };
    fs::create_dir_all(folder.join("cni")).expect("the folder is ours");
    let network = r#"{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "loopback"}]}"#;
    write("cni/none.conflist", network.to_owned());
    write("containerd.toml", containerd(folder, registry));
    write("kubelet.yaml", kubelet_yaml(folder, kubelet));
}

/// `restrict_oom_score_adj`: without `CAP_SYS_RESOURCE`, runc could not start the pause container.
/// `disable_apparmor`: a profile would stay loaded in the machine's kernel.
fn containerd(folder: &Path, registry: u16) -> String {
    let runc = ability::runc().expect("`missing` has found it");
    format!(
        "version = 3
root = '{folder}/root'
state = '{state}'
disabled_plugins = ['io.containerd.nri.v1.nri']
[grpc]
address = '{socket}'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '127.0.0.1:{registry}/pause:1'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{programs}']
conf_dir = '{folder}/cni'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = '{runc}'
Root = '{folder}/runc'
SystemdCgroup = false
",
        folder = folder.display(),
        state = state(folder).display(),
        socket = socket(folder).display(),
        programs = binaries::upstream().display(),
        runc = runc.display(),
    )
}

/// No reservations and no evictions, because the machine is shared. Leases are renewed every two
/// seconds, a quarter of their duration.
fn kubelet_yaml(folder: &Path, port: u16) -> String {
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: {port}
healthzPort: 0
readOnlyPort: 0
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
containerRuntimeEndpoint: 'unix://{socket}'
podLogsDir: '{folder}/pods'
resolvConf: ''
failSwapOn: false
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
evictionHard: {{memory.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}}
imageGCHighThresholdPercent: 100
nodeLeaseDurationSeconds: 8
nodeStatusUpdateFrequency: 4s
",
        socket = socket(folder).display(),
        folder = folder.display(),
    )
}
