//! `ds-plan snapshot`: records a live cluster, so that planning needs no credentials.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueHint;

use crate::connection::{self, Connection};
use crate::error::{Error, RehearsalError};
use crate::exit::Exit;
use crate::flags::{GlobalFlags, heading};
use crate::shell::Shell;
use cluster::{Kind, Recorded, Scope};

/// Record the cluster, so that others can plan on it without credentials
///
/// Records all namespaces, or the one that -n names, in the form of `kubectl get -o json`, without
/// the fields that plans do not need. Templates are kept whole, because revisions depend on them:
/// the recording may contain secrets.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write to a file, atomically, compressed when it ends in .gz; default: standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::OUTPUT)]
    out: Option<PathBuf>,

    /// Replace values that may be secret by salted digests
    ///
    /// Equal values have equal digests, so that plans are the same. The salt is in the file: long
    /// secrets are safe, short ones can be guessed.
    #[arg(long, help_heading = heading::OUTPUT)]
    mask_values: bool,
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let recorded = record(args, global, shell).await?;
    let summary = summary(&recorded);
    if let Some(file) = &args.out {
        recorded.save(file)?;
    } else {
        let mut out = shell.printer.stdout();
        recorded.write_to(&mut out)?;
        out.flush().map_err(Error::Output)?;
    }
    shell.printer.remark(summary);
    Ok(Exit::Done)
}

async fn record(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Recorded, Error> {
    let cluster = match connection::open(global, shell).await? {
        Connection::Live(cluster) => cluster,
        Connection::Recorded(_) => return Err(RehearsalError::RecordingOfRecording.into()),
    };
    let scope = match &global.namespace {
        Some(namespace) => Scope::Namespaces([namespace.clone()].into()),
        None => Scope::All,
    };
    let salt = if args.mask_values { Some(Shell::salt()?) } else { None };
    Ok(cluster.record(&scope, salt, shell.now).await?)
}

/// `recorded 412 nodes, 1 daemonset, …`, for standard error.
fn summary(recorded: &Recorded) -> String {
    let counts = recorded.counts().into_iter();
    let counts: Vec<_> = counts
        // Most clusters have none of these; a count of zero is not shown.
        .filter(|(kind, count)| !matches!(kind, Kind::DaemonSetRecord | Kind::Event) || *count > 0)
        .map(|(kind, count): (Kind, usize)| match (count, kind.resource().strip_suffix('s')) {
            (1, Some(one)) => format!("1 {one}"),
            _ => format!("{count} {}", kind.resource()),
        })
        .collect();
    format!("recorded {}\n", counts.join(", "))
}
