//! Checks whether this machine can run real nodes.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bit of `CAP_SYS_ADMIN`, which mounts and namespaces need.
const SYS_ADMIN: u32 = 21;

/// The missing requirements, each with a hint; empty if real nodes can run.
pub(super) fn missing() -> Vec<String> {
    if !cfg!(target_os = "linux") {
        return vec!["Linux".to_owned()];
    }
    let mut missing = Vec::new();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !is_root(&status) {
        missing.push("root (containers need it)".to_owned());
    } else if !may_mount(&status) {
        missing.push("the capability CAP_SYS_ADMIN (mounts need it)".to_owned());
    } else if let Err(error) = make_cgroup() {
        missing.push(format!("cgroups that can be written ({error})"));
    }
    match runc() {
        None => missing.push("runc (apt-get install runc)".to_owned()),
        Some(runc) if !has_seccomp(&runc) => {
            missing.push(format!("a runc with libseccomp ({} has none)", runc.display()));
        }
        Some(_) => {}
    }
    missing
}

/// Prints why a test did not run; written past the test harness, which would capture it.
pub(super) fn report_skipped(missing: &[String]) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let missing = missing.join("; ");
    let _ = writeln!(io::stderr(), "real nodes: {test} SKIPPED, missing here: {missing}");
}

/// The path of runc.
pub(super) fn runc() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Distributions install it here, but some users' PATH does not contain it.
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("runc")).find(|file| file.is_file())
}

/// The kubelet's containers have seccomp profiles, which not every runc supports.
fn has_seccomp(runc: &Path) -> bool {
    let output = Command::new(runc).arg("--version").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("libseccomp"))
}

fn is_root(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

fn may_mount(status: &str) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> SYS_ADMIN & 1 == 1)
}

/// Creates a cgroup and removes it, in the first hierarchy if there are several.
fn make_cgroup() -> io::Result<()> {
    let root = Path::new("/sys/fs/cgroup");
    let unified = root.join("cgroup.controllers").is_file();
    let root = if unified { root.to_owned() } else { root.join("memory") };
    let own = root.join(format!("ds-plan-{}", std::process::id()));
    // Tests that run at the same time share the name.
    match fs::create_dir(&own) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(|()| drop(fs::remove_dir(&own))),
    }
}

#[test]
fn root_and_its_capabilities_are_read_from_the_kernels_table() {
    let root = "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001fffeffffff\n";
    let container = "Uid:\t1000\t0\t0\t0\nCapEff:\t00000000a80425fb\n";
    let user = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n";
    let reported = [root, container, user].map(|status| (is_root(status), may_mount(status)));
    assert_eq!(reported, [(true, true), (true, false), (false, false)]);
}
