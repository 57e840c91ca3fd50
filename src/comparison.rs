//! Reads the manifests and the cluster for every command that compares them.

use std::path::Path;

use super::connection::{self, Connection, is_standard_input};
use super::error::{Error, Place};
use super::flags::{GlobalFlags, NarrowFlags, SourceFlags};
use super::input::{self, Desired, Reading, Selection};
use super::prune::PruneFlags;
use super::shell::Shell;
use cluster::Scope;
use daemonset::model::Snapshot;

/// Both sides of a comparison.
pub(super) struct Compared {
    /// The cluster, as far as the command needs it.
    pub(super) snapshot: Snapshot,
    /// The DaemonSets that the source declares.
    pub(super) desired: Desired,
    /// The connection to the cluster.
    pub(super) connection: Connection,
}

/// Reads the manifests, also those of the merge base with `base`, then the objects of the cluster
/// in their namespaces.
pub(super) async fn read(
    source: &SourceFlags,
    base: Option<&str>,
    narrow: &NarrowFlags,
    prune: &PruneFlags,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Compared, Error> {
    refuse_one_input_for_two(source, global)?;
    connection::refuse_unsigned(global)?;
    prune.refuse_narrowed(narrow, global.namespace.as_ref())?;
    let connection = connection::open(global, shell).await?;
    let default_namespace =
        global.namespace.clone().unwrap_or_else(|| connection.default_namespace());
    let namespace = global.namespace.as_ref();
    let selection = Selection::of(narrow, namespace, &default_namespace, Place::Manifests)?;
    let reading =
        Reading { flags: source, base, every_file: prune.every_file(), default_namespace };
    let mut desired = input::desired(reading, &selection, shell)?;
    prune.mark(&mut desired)?;
    let mut scope = prune.scope(&desired.daemon_sets);
    if let Scope::Namespaces(namespaces) = &mut scope {
        // What a pull request removes may be all that the source had in a namespace.
        namespaces.extend(desired.removed.iter().map(|key| key.namespace.clone()));
    }
    let mut snapshot = connection.snapshot_for(&desired.daemon_sets, &scope, shell).await?;
    desired.assign_policies(&snapshot)?;
    connection.read_approvals(&desired.daemon_sets, &mut snapshot).await?;
    Ok(Compared { snapshot, desired, connection })
}

/// Refuses standard input as both the manifests and the cluster.
fn refuse_one_input_for_two(source: &SourceFlags, global: &GlobalFlags) -> Result<(), Error> {
    let manifests = source.filename.iter().any(|name| is_standard_input(Path::new(name)));
    let cluster = global.snapshot.as_deref().is_some_and(is_standard_input);
    if manifests && cluster { Err(Error::StandardInputTwice) } else { Ok(()) }
}
