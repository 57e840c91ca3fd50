//! `ds-apply --rehearse`: the same run on an embedded copy of the cluster, on virtual time.
//!
//! Whatever follows from here is the code that carries out a real rollout; only the client and the
//! clock are others. Not here: the embedded cluster (`simulator`).

mod usage;

use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use self::usage::Usage;
use super::carry_out;
use super::identity;
use super::session::Session;
use crate::apply::Interrupt;
use crate::cli::connection;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::flags::GlobalFlags;
use crate::cli::shell::Shell;
use crate::cluster::{Holder, Scope};
use crate::model::{Faults, Snapshot};
use crate::simulator::{Rehearsal, Timings, World, on_virtual_time};

/// Heading of the flags of a rehearsal.
const REHEARSAL: &str = "Rehearsal";

/// How a rollout is rehearsed.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct RehearsalFlags {
    /// Do all of it on an embedded copy of the cluster, live or recorded; the real one is only read
    #[arg(long, help_heading = REHEARSAL)]
    pub(super) rehearse: bool,

    /// What goes wrong meanwhile: a document of kind Faults
    #[arg(long, value_name = "FILE", help_heading = REHEARSAL, requires = "rehearse")]
    fault: Option<PathBuf>,

    /// Write the cluster as it is afterwards to a file, as `ds-plan snapshot` does
    #[arg(long, value_name = "FILE", help_heading = REHEARSAL, requires = "rehearse")]
    save: Option<PathBuf>,

    /// Where all chance comes from: the same number, the same history
    #[arg(long, value_name = "N", help_heading = REHEARSAL, requires = "rehearse")]
    #[arg(default_value_t = 0)]
    seed: u64,
}

pub(super) async fn run(
    args: Box<carry_out::Args>,
    global: GlobalFlags,
    shell: Shell,
    interrupts: mpsc::Receiver<Interrupt>,
) -> Result<Exit, Error> {
    let scope = global.namespace.clone();
    let scope = scope.map_or(Scope::All, |one| Scope::Namespaces([one].into()));
    let snapshot = connection::open(&global, &shell).await?.snapshot(&scope, &shell).await?;
    let faults = args.rehearsal.fault.as_deref().map(read_faults).transpose()?;
    let rehearsal = Rehearsal {
        timings: Timings::seen_in(&snapshot),
        faults: faults.unwrap_or_default(),
        seed: args.rehearsal.seed,
    };
    // A thread of its own, for virtual time has one of its own.
    let work =
        move || on_virtual_time(on_it(snapshot, rehearsal, *args, global, shell, interrupts));
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Error::Process)?,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// The run itself, on virtual time.
async fn on_it(
    snapshot: Snapshot,
    rehearsal: Rehearsal,
    args: carry_out::Args,
    global: GlobalFlags,
    mut shell: Shell,
    interrupts: mpsc::Receiver<Interrupt>,
) -> Result<Exit, Error> {
    let seed = rehearsal.seed;
    let world = World::begin(&snapshot, rehearsal).map_err(Error::Rehearsal)?;
    let nodes = snapshot.nodes.len();
    shell.now = snapshot.observed_at;
    drop(snapshot);
    // Nothing is by chance, not even who we are.
    let holder = Holder { id: format!("{seed:016x}"), ..identity::holder(&shell)? };
    let clock = world.clock();
    let cluster = world.cluster().writable();
    let output = args.common.output;
    let mut session =
        Session::on(cluster, &shell, holder, clock.for_leases(), interrupts).telling(output);
    let save = args.rehearsal.save.clone();
    let usage = Usage::of(world.server().clone());
    let done = carry_out::run(&args.agreed_to(), &global, &mut session).await;
    session.report(output, true, shell.printer)?;
    if let Some(file) = save {
        world.cluster().record(&Scope::All, None, clock.now()).await?.save(&file)?;
    }
    shell.printer.err(usage.chart());
    shell.printer.err(summary(nodes, clock.start(), clock.now()));
    done
}

fn read_faults(file: &Path) -> Result<Faults, Error> {
    let text = fs::read_to_string(file)
        .map_err(|source| Error::OpenFaults { file: file.to_owned(), source })?;
    serde_saphyr::from_str(&text)
        .map_err(|error| Error::Faults { file: file.to_owned(), reason: error.to_string() })
}

/// How long it took, by the clock of the cluster.
fn summary(nodes: usize, began: Timestamp, ended: Timestamp) -> String {
    let took = SignedDuration::from_secs(ended.duration_since(began).as_secs());
    format!(
        "rehearsed on {nodes} nodes: {took:#} of the cluster's time; the cluster itself is as it was\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_how_long_it_took() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let text = summary(412, at(0), at(3_725));
        assert_eq!(
            text,
            "rehearsed on 412 nodes: 1h 2m 5s of the cluster's time; the cluster itself is as it \
             was\n"
        );
    }
}
