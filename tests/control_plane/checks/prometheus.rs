//! A real Prometheus, built from its Go module, that scrapes once a second.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use super::Exporter;
use crate::harness::go_build::{self, Tool};
use crate::harness::ports::Port;
use crate::harness::wait_until;
use crate::harness::watchdog::{Watched, log_tail};

/// Without its web pages, which are not in the module, and without the discovery of targets.
const TOOL: [Tool; 1] = [Tool {
    folder: "prometheus",
    programs: &[("prometheus", "github.com/prometheus/prometheus/cmd/prometheus")],
    tags: "remove_all_sd",
    cold: "2 minutes",
}];
const START: Duration = Duration::from_mins(1);

/// A running server; it ends with the test.
pub(crate) struct Prometheus {
    port: Port,
    folder: TempDir,
    process: Option<Watched>,
}

impl Prometheus {
    /// Starts a server for these exporters.
    pub(crate) fn start(exporters: &[&Exporter]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let targets: Vec<String> = exporters.iter().map(|it| it.target()).collect();
        let config = format!(
            "global: {{scrape_interval: 1s}}\n\
             scrape_configs:\n\
             - job_name: agents\n  \
               static_configs: [{{targets: {targets:?}}}]\n"
        );
        fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let mut server = Self { port: Port::free(), folder, process: None };
        server.restart();
        server
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number())
    }

    /// Ends the process as the kernel would: nothing is written any more.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Starts the process again, with the data that it has.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let (folder, log) = (self.folder.path(), self.folder.path().join("log"));
        let mut command = Command::new(program());
        command
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{}", self.port.number()))
            .current_dir(folder);
        let process = self.process.insert(Watched::spawn(&command, &log));
        let ready = format!("127.0.0.1:{}", self.port.number());
        wait_until("Prometheus is ready", START, || {
            assert!(process.ended().is_none(), "Prometheus ended; {}", log_tail(&log));
            is_ready(&ready)
        });
    }

    /// Starts the process again without any data.
    pub(crate) fn empty(&mut self) {
        self.kill();
        fs::remove_dir_all(self.folder.path().join("data")).unwrap();
        self.restart();
    }

    /// Accepts connections, and answers nothing until [`resume`](Self::resume).
    pub(crate) fn freeze(&mut self) {
        self.process.as_mut().expect("it runs").signal("STOP");
    }

    pub(crate) fn resume(&mut self) {
        self.process.as_mut().expect("it runs").signal("CONT");
    }
}

fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| go_build::folder_with(&TOOL, &["prometheus"]).join("prometheus")).clone()
}

fn is_ready(address: &str) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut answer = String::new();
    write!(stream, "GET /-/ready HTTP/1.0\r\n\r\n").is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.split(' ').nth(1) == Some("200")
}
