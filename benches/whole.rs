//! The time and the memory of whole runs of `ds-plan` on a recording, seen from outside:
//! `cargo bench --bench whole`.
//!
//! Each run is timed from its start to its exit. They are compared with a process that reads the same
//! file and parses it with `serde_json`, on one thread, and keeps nothing. The plan is one in which
//! every DaemonSet gets a new image. Ratios matter, not times. The number of nodes, and then that of
//! the rounds, can be given, and the paths of other builds of `ds-plan` to compare with:
//! `-- 5000 7 /path/to/ds-plan`.
//!
//! With `--at-most 1.15`, it fails if a command takes more than 1.15 times the time of the same
//! command of another build, and 20 ms; or more than 1.15 times its memory, and 2 MiB. The time is
//! the least of all rounds. The memory is that without the files that a process maps: the most that
//! was seen in a run, and the least of that of all rounds. Not here: `ds-apply`, and live clusters.

#![allow(clippy::unwrap_used, reason = "a failed bench panics")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock and settings of its own")]
#![allow(clippy::print_stdout, reason = "what it measures goes to standard output")]

mod compared;
#[expect(dead_code, reason = "the benches that plan by themselves use all of it")]
mod fleet;
mod process;

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use compared::Least;
use process::Sampled;
use serde::de::IgnoredAny;

/// The default number of nodes; each has six pods.
const NODES: usize = 5_000;

/// The default number of rounds.
const ROUNDS: usize = 7;

/// One of the DaemonSets.
const DAEMON_SET: &str = "kube-system/agent-00";

/// The name of the program of this build.
const OWN: &str = "ds-plan";

/// The exit code of `ds-plan drift` if there is any.
const DRIFT: i32 = 3;

/// One of the nodes.
const NODE: &str = "ip-10-0-0-0.eu-central-1.compute.internal";

/// The flag with the limit of what a run may take, as a multiple of another build's.
const AT_MOST: &str = "--at-most";

/// The argument of the process that only parses.
const PARSE: &str = "--parse";

/// What that process does.
const BARE_PARSE: &str = "bare parse";

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [parse, file] = &arguments[..]
        && parse == PARSE
    {
        serde_json::from_slice::<IgnoredAny>(&fs::read(file).unwrap()).unwrap();
        return;
    }
    let mut given = arguments.iter().filter_map(|argument| argument.parse().ok());
    let (nodes, rounds) = (given.next().unwrap_or(NODES), given.next().unwrap_or(ROUNDS));
    let recording = fleet::recording(nodes);
    let manifests = tempfile::tempdir().unwrap();
    for manifest in fleet::manifests() {
        fs::write(manifests.path().join(&*manifest.path), manifest.bytes).unwrap();
    }
    let mut rows = rows(&recording, manifests.path(), &arguments);
    let output = manifests.path().join("output");
    for round in 0..=rounds {
        for row in &mut rows {
            let taken = row.run(&output);
            // The first round fills caches and is not counted.
            if round > 0 {
                row.taken.push(taken);
            }
        }
    }
    println!("{nodes} nodes, {} pods, {rounds} rounds: medians (least).\n", nodes * 6);
    print(&rows);
    let most = arguments.iter().skip_while(|argument| *argument != AT_MOST).nth(1);
    let Some(most) = most.map(|most| most.parse::<f64>().unwrap()) else { return };
    let is_another = |row: &Row| row.what != BARE_PARSE && row.program != OWN;
    assert!(rows.iter().any(is_another), "{AT_MOST} needs the path of another build");
    let worse = worse(&rows, most);
    assert!(worse.is_empty(), "more than {most} times as much as before: {worse:#?}");
}

/// One command, and what its runs took.
struct Row {
    /// The program: another build has its path.
    program: String,
    /// Its arguments, without the files.
    what: &'static str,
    command: Command,
    taken: Vec<Sampled>,
    /// The bytes that it prints.
    printed: u64,
}

impl Row {
    fn new(program: String, what: &'static str, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stderr(Stdio::null()).current_dir(env::temp_dir());
        Self { program, what, command, taken: Vec::new(), printed: 0 }
    }

    fn run(&mut self, output: &Path) -> Sampled {
        let code = if self.what.starts_with("drift") { DRIFT } else { 0 };
        let sampled = process::run(self.command.stdout(File::create(output).unwrap()), code);
        self.printed = fs::metadata(output).unwrap().len();
        sampled
    }

    /// In seconds.
    fn median_and_least(&self, of: fn(&Sampled) -> Duration) -> [f64; 2] {
        let mut all: Vec<f64> = self.taken.iter().map(|it| of(it).as_secs_f64()).collect();
        all.sort_by(f64::total_cmp);
        [all[all.len() / 2], all[0]]
    }

    #[expect(clippy::cast_precision_loss, reason = "only compared")]
    fn least(&self) -> Least {
        let [_, seconds] = self.median_and_least(|it| it.wall);
        let anonymous = self.taken.iter().map(|it| it.anonymous).min().unwrap_or_default();
        Least { seconds, mebibytes: anonymous as f64 / f64::from(1 << 20) }
    }
}

/// The commands, of which the first is the one that all ratios refer to.
fn rows(recording: &Path, manifests: &Path, arguments: &[String]) -> Vec<Row> {
    let mut parse = Command::new(env::current_exe().unwrap());
    parse.arg(PARSE).arg(recording);
    let mut rows = vec![Row::new("serde_json".to_owned(), BARE_PARSE, parse)];
    let own = env!("CARGO_BIN_EXE_ds-plan").to_owned();
    let others = arguments.iter().filter(|argument| argument.contains('/')).cloned();
    for program in others.chain([own.clone()]) {
        let name = if program == own { OWN.to_owned() } else { program.clone() };
        let run = |what: &'static str, arguments: &[&Path]| {
            let mut command = Command::new(PathBuf::from(&program));
            command.args(what.split_whitespace()).args(arguments).arg("--snapshot").arg(recording);
            Row::new(name.clone(), what, command)
        };
        // It reads everything and prints little.
        rows.push(run("history", &[Path::new(DAEMON_SET)]));
        for plans in ["plan -f", "plan -o json -f", "plan -o markdown -f", "plan -o html -f"] {
            rows.push(run(plans, &[manifests]));
        }
        rows.push(run("status", &[Path::new(DAEMON_SET)]));
        rows.push(run("explain", &[Path::new(DAEMON_SET), Path::new(NODE)]));
        rows.push(run("drift -f", &[manifests]));
    }
    rows
}

fn both([median, least]: [f64; 2]) -> String {
    format!("{median:.2} ({least:.2})")
}

fn print(rows: &[Row]) {
    println!("| | time | CPU | ratio | resident | anonymous | printed |");
    println!("|---|---|---|---|---|---|---|");
    for row in rows {
        let [wall, first] = [row, &rows[0]].map(|row| row.median_and_least(|it| it.wall));
        let cpu = row.median_and_least(|it| it.cpu);
        let most = |of: fn(&Sampled) -> u64| {
            let most = row.taken.iter().map(of).max().unwrap_or_default();
            format!("{} MiB", most >> 20)
        };
        println!(
            "| {} {} | {} s | {} s | {} | {} | {} | {} KiB |",
            row.program,
            row.what,
            both(wall),
            both(cpu),
            both([wall[0] / first[0], wall[1] / first[1]]),
            most(|it| it.resident),
            most(|it| it.anonymous),
            row.printed >> 10,
        );
    }
}

/// What this build does worse than another one, by more than the limit.
fn worse(rows: &[Row], most: f64) -> Vec<String> {
    let mut worse = Vec::new();
    for row in rows.iter().filter(|row| row.program == OWN) {
        let others = rows.iter().filter(|other| other.program != OWN && other.what == row.what);
        for other in others {
            let found = compared::worse(row.least(), other.least(), most);
            worse.extend(found.iter().map(|found| format!("{}: {found}", row.what)));
        }
    }
    worse
}
