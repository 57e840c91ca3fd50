//! Tests of the nodes: they run pods, and leave nothing behind.

use std::env;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::agent::Agent;
use crate::fleet::Fleet;
use crate::harness::wait_until;
use crate::nodes::{NAMES, RealNodes};

const SOON: Duration = Duration::from_mins(1);

#[test]
fn agents_run_on_three_nodes_and_a_panic_leaves_nothing_behind() {
    let tunables = tunables();
    let died = panic::catch_unwind(|| {
        let Some(nodes) = RealNodes::start() else { return };
        let fleet = Fleet::new(&nodes, "smoke", &Agent::new("v1"));
        assert_eq!(fleet.witness.nodes_with("v1").len(), 3);
        assert_eq!(fleet.field(".status.numberReady"), "3");
        let folder = nodes.plane.folder().to_owned();
        let containers = containers(&folder);
        assert!(containers.len() >= 6, "an agent and a pause container on each node");
        panic::resume_unwind(Box::new((folder, containers)));
    });
    let Err(died) = died else { return };
    // Any other panic is a failed test.
    let died = died.downcast::<(PathBuf, Vec<String>)>();
    let (folder, containers) = *died.unwrap_or_else(|other| panic::resume_unwind(other));
    assert_eq!(left_of(&folder, &containers), [""; 0]);
    assert!(!folder.exists(), "the folder is still there");
    assert_eq!(
        self::tunables(),
        tunables,
        "a kubelet has changed the kernel parameters of the whole machine"
    );
}

/// The kernel parameters that a kubelet changes.
fn tunables() -> Vec<String> {
    let names = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"];
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default();
    names.map(read).to_vec()
}

/// Set for the process that `a_killed_test_leaves_nothing_behind` starts and kills: the file to
/// which that process writes the path of its folder.
const VICTIM: &str = "DS_PLAN_TEST_VICTIM_TELLS";

#[test]
fn a_killed_test_leaves_nothing_behind() {
    let notes = tempfile::tempdir().unwrap();
    let note = notes.path().join("folder");
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "smoke::a_victim_starts_and_keeps_running", "--ignored"])
        .env(VICTIM, &note)
        .env("TMPDIR", notes.path()) // this folder is removed, and the process's own with it
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut skipped = false;
    wait_until("the victim has started its agents", SOON * 20, || {
        skipped = victim.try_wait().unwrap().is_some();
        note.exists() || skipped
    });
    if skipped {
        assert!(RealNodes::start().is_none(), "the victim has ended");
        return;
    }
    let folder = PathBuf::from(fs::read_to_string(note).unwrap());
    let containers = containers(&folder);
    let left = left_of(&folder, &containers);
    victim.kill().unwrap();
    victim.wait().unwrap();
    for part in ["node", "kubelet", "containerd", "containerd-shim", "agent", "registry"] {
        assert!(left.contains(&format!("process {part}")), "no {part} in {left:?}");
    }
    assert!(left.iter().any(|line| line.starts_with("cgroup")), "{left:?}");
    wait_until("all processes and cgroups to end", Duration::from_secs(20), || {
        left_of(&folder, &containers).is_empty()
    });
}

#[test]
#[ignore = "not a test: the process that another test kills"]
fn a_victim_starts_and_keeps_running() {
    let Some(note) = env::var_os(VICTIM) else { return };
    let Some(nodes) = RealNodes::start() else { return };
    let _fleet = Fleet::new(&nodes, "victim", &Agent::new("v1"));
    let draft = Path::new(&note).with_extension("draft");
    fs::write(&draft, nodes.plane.folder().to_str().unwrap()).unwrap();
    fs::rename(draft, note).unwrap();
    thread::sleep(Duration::from_mins(10));
}

/// The containers of the nodes in `folder`, by the folders that containerd creates for them.
fn containers(folder: &Path) -> Vec<String> {
    let of_node = |node: &&str| {
        let state = folder.join("nodes").join(node).join("state");
        fs::read_dir(state.join("io.containerd.runtime.v2.task/k8s.io")).unwrap()
    };
    let all = NAMES.iter().flat_map(of_node).flatten();
    all.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// The remains of the nodes in `folder`: processes that work there or see a mount there, as those
/// of containers do; and the cgroups of the containers.
fn left_of(folder: &Path, containers: &[String]) -> Vec<String> {
    let path = folder.to_str().unwrap();
    let mut left = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let read = |file| fs::read_to_string(process.path().join(file)).unwrap_or_default();
        let works_in = fs::read_link(process.path().join("cwd")).unwrap_or_default();
        if works_in.starts_with(folder) || read("mountinfo").contains(path) {
            left.push(format!("process {}", read("comm").trim()));
        }
    }
    let root = PathBuf::from("/sys/fs/cgroup");
    let below = fs::read_dir(&root).unwrap().flatten().map(|entry| entry.path());
    for hierarchy in below.chain([root.clone()]) {
        let cgroups = containers.iter().map(|id| hierarchy.join("k8s.io").join(id));
        let cgroups = cgroups.filter(|cgroup| cgroup.exists());
        left.extend(cgroups.map(|cgroup| format!("cgroup {}", cgroup.display())));
    }
    left
}
