//! One node: the program `node`, and the parts that it starts.

use std::env;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::cache;
use crate::harness::ports::Port;
use crate::harness::watchdog::log_tail;

use super::{Part, binaries, config};

/// How long containerd may take to listen; half a second is usual.
const START_LIMIT: Duration = Duration::from_mins(1);

/// A running node; removed with everything that runs on it when dropped.
pub(super) struct Machine {
    name: String,
    folder: PathBuf,
    kubeconfig: PathBuf,
    process: Child,
    /// The pipe's only write end; `None` once it is closed to end the node.
    orders: Mutex<Option<ChildStdin>>,
    _port: Port,
}

impl Machine {
    /// Starts a node; it registers itself a few seconds later.
    pub(super) fn start(name: &str, folder: &Path, registry: u16, kubeconfig: &Path) -> Self {
        cache::make(folder);
        let port = Port::free();
        config::write(folder, registry, port.number());
        let log = File::create(folder.join("node.log")).expect("the folder is ours");
        let mut process = Command::new(binaries::own().join("node"))
            .arg(config::state(folder))
            .current_dir(folder)
            // containerd looks for its shim there.
            .env("PATH", path_with(binaries::upstream()))
            .env("HOME", folder)
            // Ctrl-C in a terminal must not reach it: it ends after the test, in the right order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file handle can be cloned"))
            .stderr(log)
            .spawn()
            .expect("the program was built and can be started");
        let orders = Mutex::new(process.stdin.take());
        let machine = Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            process,
            orders,
            _port: port,
        };
        machine.start_part(Part::Containerd);
        machine.start_part(Part::Kubelet);
        machine
    }

    /// Starts a part, for the first time or again.
    pub(super) fn start_part(&self, part: Part) {
        let log = self.folder.join(format!("{}.log", part.name())).display().to_string();
        let program = binaries::upstream().join(part.name()).display().to_string();
        let mut words = vec!["start".to_owned(), part.name().to_owned(), log, program];
        let in_folder = |name: &str| self.folder.join(name).display().to_string();
        words.extend(match part {
            Part::Containerd => vec!["--config".to_owned(), in_folder("containerd.toml")],
            Part::Kubelet => vec![
                format!("--config={}", in_folder("kubelet.yaml")),
                format!("--kubeconfig={}", self.kubeconfig.display()),
                format!("--root-dir={}", in_folder("kubelet")),
                format!("--cert-dir={}", in_folder("certificates")),
                format!("--hostname-override={}", self.name),
            ],
        });
        self.order(&words);
        if part == Part::Containerd {
            self.wait_for_containerd();
        }
    }

    fn wait_for_containerd(&self) {
        let socket = config::socket(&self.folder);
        let begin = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(
                begin.elapsed() < START_LIMIT,
                "containerd does not listen; {}; {}",
                log_tail(&self.folder.join("node.log")),
                log_tail(&self.folder.join("containerd.log"))
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a part a signal, by its name without `SIG`: `KILL`, `STOP`, `CONT`.
    pub(super) fn signal(&self, part: Part, signal: &str) {
        self.order(&["signal".to_owned(), part.name().to_owned(), signal.to_owned()]);
    }

    fn order(&self, words: &[String]) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = orders.as_mut().expect("the pipe is open until drop");
        writeln!(pipe, "{}", words.join("\t")).and_then(|()| pipe.flush()).unwrap_or_else(|err| {
            let log = log_tail(&self.folder.join("node.log"));
            panic!("the node {} has ended ({err}); {log}", self.name)
        });
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.orders.lock().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.process.wait();
    }
}

fn path_with(folder: &Path) -> std::ffi::OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let all = [folder.to_owned()].into_iter().chain(env::split_paths(&path));
    env::join_paths(all).expect("no folder of ours has a colon in its name")
}
