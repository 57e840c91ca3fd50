//! The time, memory and server time that a plan on a live cluster takes, compared with a bare
//! transfer of the same pages: `cargo bench --bench live --features control-plane`.
//!
//! A real API server gets the generated cluster through its API. Each round then reads all lists
//! of a plan page by page over one connection, without looking at the objects, as JSON and as
//! protobuf, plain and compressed; and runs `ds-plan`.
//! kubectl gets nodes and pods once. Ratios matter, not times. The number of nodes, and then that
//! of the rounds, can be given, and the paths of other builds of `ds-plan` to compare with:
//! `-- 500 3 /path/to/ds-plan`. Loading 2,000 nodes takes a few minutes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed bench panics")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock and settings of its own")]
#![allow(clippy::print_stdout, reason = "what it measures goes to standard output")]

#[path = "../tests/control_plane"]
#[expect(dead_code, unused_imports, reason = "the tests use all of it")]
mod control_plane {
    pub(crate) mod harness;
}
#[expect(dead_code, reason = "the benches of recordings use all of it")]
mod fleet;
#[path = "live/load.rs"]
mod load;
mod process;
#[path = "live/server.rs"]
mod server;
#[path = "live/transfer.rs"]
mod transfer;

use std::process::{Command, Stdio};
use std::time::Duration;

use control_plane::harness::{Component, ControlPlane};
use process::Sampled;
use server::Server;
use transfer::{Encoding, Format};

/// The default number of nodes; each has six pods.
const NODES: usize = 2_000;

/// The default number of rounds.
const ROUNDS: usize = 5;

/// The transfer that all ratios refer to.
const REFERENCE: &str = "transfer, protobuf";

fn main() {
    let mut given = std::env::args().filter_map(|arg| arg.parse().ok());
    let (nodes, rounds) = (given.next().unwrap_or(NODES), given.next().unwrap_or(ROUNDS));
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    let folder = load::load(&plane, nodes);
    let readers = readers(&plane, folder.path());
    let rows =
        readers.iter().map(|(name, _)| Row { name: name.clone(), taken: Vec::new() }).collect();
    let mut bench = Bench { server: Server::of(&plane), is_counted: false, rows };
    for round in 0..=rounds {
        // The first round fills caches and is not counted.
        bench.is_counted = round > 0;
        // Each begins at another one: work that the server does from time to time meets them all.
        let (later, first) = readers.split_at(round % readers.len());
        for (name, reader) in first.iter().chain(later) {
            bench.measure(name, || reader.run(&plane));
        }
    }
    bench.is_counted = true;
    let kubectl = Reader::Program(plane.kubectl_command(&KUBECTL));
    let name = format!("kubectl {}", KUBECTL.join(" "));
    bench.rows.push(Row { name: name.clone(), taken: Vec::new() });
    bench.measure(&name, || kubectl.run(&plane));
    println!(
        "{nodes} nodes, {} pods, {rounds} rounds: medians (least), relative to `{REFERENCE}`.\n",
        nodes * 6
    );
    bench.print();
}

/// The name of the programs of this build.
const OWN: &str = "ds-plan";

/// The arguments of kubectl for the pages that make the mass.
const KUBECTL: [&str; 5] = ["get", "nodes,pods", "-A", "-o", "json"];

/// What one of the readers took, in all counted rounds.
struct Row {
    name: String,
    taken: Vec<Taken>,
}

/// One repetition.
struct Taken {
    sampled: Sampled,
    /// The CPU time of the API server.
    server: Duration,
    /// The transferred bytes after decompression; 0 where it is not known.
    bytes: u64,
}

/// What reads the cluster.
enum Reader {
    Transfer(Format, Encoding),
    Program(Command),
}

impl Reader {
    /// Reads it once; returns the bytes too, if they are known.
    fn run(&self, plane: &ControlPlane) -> (Sampled, u64) {
        match self {
            Self::Transfer(format, encoding) => {
                let (wall, bytes) = transfer::transfer(plane, *format, *encoding);
                (Sampled { wall, ..Sampled::default() }, bytes)
            }
            Self::Program(command) => {
                let mut again = Command::new(command.get_program());
                again.args(command.get_args()).stdout(Stdio::null()).stderr(Stdio::null());
                for (name, value) in command.get_envs() {
                    again.env(name, value.unwrap_or_default());
                }
                (process::run(&mut again, 0), 0)
            }
        }
    }
}

/// The readers that are measured by turns, by name.
fn readers(plane: &ControlPlane, manifests: &std::path::Path) -> Vec<(String, Reader)> {
    let transfers = [
        (REFERENCE, Format::Protobuf, Encoding::Identity),
        ("transfer, protobuf, gzip", Format::Protobuf, Encoding::Gzip),
        ("transfer, JSON", Format::Json, Encoding::Identity),
        ("transfer, JSON, gzip", Format::Json, Encoding::Gzip),
    ];
    let transfers = transfers
        .map(|(name, format, encoding)| (name.to_owned(), Reader::Transfer(format, encoding)));
    let others = std::env::args().skip(1).filter(|it| it.contains('/'));
    let own = (env!("CARGO_BIN_EXE_ds-plan").to_owned(), OWN.to_owned());
    let programs = others.map(|path| (path.clone(), path)).chain([own]).map(|(program, name)| {
        let mut plan = Command::new(program);
        plan.arg("-f").arg(manifests).arg("--kubeconfig").arg(plane.kubeconfig_path());
        (name, Reader::Program(plan))
    });
    transfers.into_iter().chain(programs).collect()
}

struct Bench {
    server: Server,
    is_counted: bool,
    rows: Vec<Row>,
}

impl Bench {
    fn measure(&mut self, name: &str, what: impl FnOnce() -> (Sampled, u64)) {
        let before = self.server.cpu();
        let (sampled, bytes) = what();
        // The server's collector may still run.
        std::thread::sleep(Duration::from_millis(300));
        let server = self.server.cpu().saturating_sub(before);
        if !self.is_counted {
            return;
        }
        let row = self.rows.iter_mut().find(|row| row.name == name).unwrap();
        row.taken.push(Taken { sampled, server, bytes });
    }

    fn print(&self) {
        let reference = self.rows.iter().find(|row| row.name == REFERENCE).unwrap();
        let wall = |row: &Row, which| value(row, which, |it| it.sampled.wall.as_secs_f64());
        let server = |row: &Row, which| value(row, which, |it| it.server.as_secs_f64());
        println!("| | time | server CPU | own CPU | MiB | resident | time ratio | server ratio |");
        println!("|---|---|---|---|---|---|---|---|");
        for row in &self.rows {
            let both = |of: &dyn Fn(&Row, Which) -> f64| {
                let [median, least] = [Which::Median, Which::Least].map(|which| of(row, which));
                format!("{median:.2} ({least:.2})")
            };
            let ratio = |of: &dyn Fn(&Row, Which) -> f64| {
                both(&|row, which| of(row, which) / of(reference, which))
            };
            #[expect(clippy::cast_precision_loss, reason = "shown without digits")]
            let mib = |of: fn(&Taken) -> u64| {
                value(row, Which::Median, |it| of(it) as f64) / f64::from(1 << 20)
            };
            println!(
                "| {} | {} s | {} s | {} s | {:.0} | {:.0} | {} | {} |",
                row.name,
                both(&wall),
                both(&server),
                both(&|row, which| value(row, which, |it| it.sampled.cpu.as_secs_f64())),
                mib(|it| it.bytes),
                mib(|it| it.sampled.resident),
                ratio(&wall),
                ratio(&server),
            );
        }
    }
}

/// Which of the repetitions is shown. The least is the one that other programs disturbed least.
#[derive(Clone, Copy)]
enum Which {
    Median,
    Least,
}

fn value(row: &Row, which: Which, of: impl Fn(&Taken) -> f64) -> f64 {
    let mut all: Vec<f64> = row.taken.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    match which {
        Which::Median => all[all.len() / 2],
        Which::Least => all[0],
    }
}
