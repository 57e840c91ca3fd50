//! `ds-apply` on an embedded cluster of the caller: many runs of several users on one cluster,
//! without a process for each of them.
//!
//! Below this, the code is that of a real run. Not here: the cluster (`embedded`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::asking::CheckSource;
use super::cli::DsApply;
use super::dispatch::in_session;
use super::session::Session;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::shell::Shell;
use cluster::Holder;
use embedded::World;
use executor::{Ask, Interrupt};
use source::Streams;

/// What a run meets outside of the cluster.
pub struct Outside {
    /// The time on the local clock.
    pub local: Timestamp,
    /// Who answers the checks of the policy that are questions, instead of the endpoints that it names.
    pub ask: Option<Arc<dyn Ask>>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The outcome of the run.
    pub exit: Exit,
    /// The errors that it would have printed, in order, each with its exit code.
    pub errors: Vec<(Exit, String)>,
}

impl Ended {
    /// The text of all errors.
    pub fn messages(&self) -> String {
        self.errors.iter().map(|(_, message)| message.as_str()).collect()
    }
}

/// Runs `ds-apply` with these arguments on an embedded cluster, as this user, in this folder. It
/// prints nothing and does not ask. Call it on virtual time
/// ([`on_virtual_time`](embedded::on_virtual_time)). Dropping the future is like killing
/// the run, except that it releases its lock if it still reaches the cluster.
pub async fn ds_apply_at(
    world: &World,
    user: &str,
    folder: &Path,
    interrupts: mpsc::Receiver<Interrupt>,
    line: &[&str],
) -> Ended {
    let outside = Outside { local: world.clock().now(), ask: None };
    ds_apply_within(world, user, folder, interrupts, line, outside).await
}

/// As [`ds_apply_at`], with this outside.
pub async fn ds_apply_within(
    world: &World,
    user: &str,
    folder: &Path,
    interrupts: mpsc::Receiver<Interrupt>,
    line: &[&str],
    Outside { local, ask }: Outside,
) -> Ended {
    let arguments = ["ds-apply"].iter().chain(line);
    let (global, command) = match DsApply::try_parse_from(arguments) {
        Ok(parsed) => parsed.into_command(),
        Err(error) => {
            return Ended { exit: Exit::Usage, errors: vec![(Exit::Usage, error.to_string())] };
        }
    };
    let shell = Shell {
        printer: Printer::silent(),
        environment: BTreeMap::new(),
        streams: Streams::default(),
        current_dir: folder.to_owned(),
        now: local,
        started: None,
        terminal: false,
        draws: false,
        rehearsal: false,
        width: None,
        verbose: false,
        notifications: None,
    };
    let name = || user.to_owned();
    let holder = Holder { host: name(), pid: 0, user: name(), run: None, id: name() };
    let cluster = world.cluster_of(user).writable();
    let mut session = Session::on(cluster, &shell, holder, world.clock().for_leases(), interrupts);
    if let Some(ask) = ask {
        session.checks = CheckSource::Given(ask);
    }
    let exit = match in_session(command, &global, &mut session).await {
        Ok(exit) => exit,
        Err(error) => session.report(&error),
    };
    Ended { exit, errors: session.into_errors() }
}
