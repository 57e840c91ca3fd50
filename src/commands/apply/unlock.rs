//! `ds-apply unlock`: removes the lock of a run that is gone; with `--force`, also that of a run
//! in progress.

use super::approve::ask;
use super::session::Session;
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::name::{GivenName, NAME};
use cluster::LiveLease;
use daemonset::model::DaemonSetKey;
use planner::plan::LockStatus;
use render::neutral;

/// Remove the lock of a run that is gone
///
/// Prints the lock's holder, its age, and how long ago it was renewed, and asks. The lock of a run
/// that is gone expires by itself after 25 s. A run in progress keeps its lock, unless
/// `--force` is given: then that run stops within some seconds, with exit code 7.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// DaemonSets: NAME or ds/NAME (in the namespace of -n), or NAMESPACE/NAME
    #[arg(value_name = NAME, required = true)]
    pub(super) names: Vec<GivenName>,

    /// Remove the lock without asking
    #[arg(short, long)]
    yes: bool,

    /// Also remove the lock of a run in progress
    #[arg(long)]
    force: bool,
}

/// The lock of a DaemonSet, with its holder.
struct Held<'a> {
    key: &'a DaemonSetKey,
    lease: LiveLease,
    status: LockStatus,
}

pub(super) async fn run(
    args: &Args,
    keys: &[DaemonSetKey],
    session: &mut Session,
) -> Result<Exit, Error> {
    let Args { names: _, yes, force } = args;
    let mut held = Vec::new();
    for key in keys {
        let found = look(key, session).await?;
        let words = match &found {
            Some(Held { status, .. }) => format!("{key} is {status}"),
            None => format!("{key} is not locked"),
        };
        print(&words, session)?;
        held.extend(found);
    }
    if let Some(Held { key, status, .. }) = held.iter().find(|it| it.status.live && !force) {
        return Err(Error::HolderIsLive { daemon_set: (*key).clone(), lock: status.clone() });
    }
    if held.is_empty() {
        return Ok(Exit::Done);
    }
    if !yes {
        ask(&session.shell)?;
    }
    for Held { key, lease, status } in &held {
        session
            .unless_interrupted(async |_, cluster| {
                if *force {
                    cluster.unlock(key).await?;
                } else {
                    cluster.unlock_as(key, lease).await?;
                }
                Ok(())
            })
            .await?;
        print(&format!("{key} is no longer locked by {}", status.holder), session)?;
    }
    Ok(Exit::Done)
}

/// Reads the lock of a DaemonSet; `None` if it is not locked.
async fn look<'a>(key: &'a DaemonSetKey, session: &mut Session) -> Result<Option<Held<'a>>, Error> {
    session
        .unless_interrupted(async |shell, cluster| {
            let lease = cluster.live().lease(key).await?;
            let now = cluster.live().server_time().unwrap_or(shell.now);
            Ok(lease.and_then(|lease| {
                let status = LockStatus::of(&lease.lock_holder()?, now);
                Some(Held { key, lease, status })
            }))
        })
        .await
}

fn print(words: &str, session: &Session) -> Result<(), Error> {
    session.shell.printer.out(format!("{}\n", neutral::line(words))).map_err(Error::Output)
}
