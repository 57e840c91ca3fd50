//! The cluster that a command looks at: a live one, or a recording.
//!
//! With a recording no network call is made. Not here: reading either (`cluster`).

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Error, Place};
use super::flags::{GlobalFlags, NarrowFlags};
use super::input::Selection;
use super::shell::Shell;
use crate::cluster::{self, ConnectOptions, LiveCluster, Scope};
use crate::model::{DaemonSet, DaemonSetKey, DesiredDaemonSet, NamespaceName, Snapshot};
use crate::source::STANDARD_INPUT;

/// The namespace of manifests that name none, where nothing else says so.
const DEFAULT_NAMESPACE: &str = "default";

/// Where a snapshot comes from.
pub(super) enum Connection<'a> {
    /// The file of a recording; `-` is standard input.
    Recorded(&'a Path),
    /// A cluster that can be asked.
    Live(Box<LiveCluster>),
}

/// Makes ready to read the cluster that the flags name; nothing is sent yet.
pub(super) async fn open<'a>(
    flags: &'a GlobalFlags,
    shell: &Shell,
) -> Result<Connection<'a>, Error> {
    let GlobalFlags { kubeconfig, context, snapshot, namespace: _, color: _, annotations: _ } =
        flags;
    if let Some(file) = snapshot {
        return Ok(Connection::Recorded(file));
    }
    let options = ConnectOptions {
        kubeconfig: kubeconfig.clone(),
        kubeconfig_env: shell.variable("KUBECONFIG").map(Into::into),
        home: shell.variable("HOME").map(PathBuf::from),
        context: context.clone(),
    };
    Ok(Connection::Live(Box::new(cluster::connect(&options).await?)))
}

/// The cluster, and which of its DaemonSets a command asks about that reads no source.
pub(super) async fn read_chosen(
    narrow: &NarrowFlags,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<(Snapshot, BTreeSet<DaemonSetKey>), Error> {
    let connection = open(global, shell).await?;
    let namespace = global.namespace.as_ref();
    let snapshot = connection.snapshot(&narrow.scope(namespace), shell).await?;
    let selection = Selection { namespace, flags: narrow, place: Place::Cluster };
    let all: Vec<&DaemonSet> = snapshot.daemon_sets.iter().collect();
    let chosen = selection.narrow(all)?.into_iter().map(|live| live.key.clone()).collect();
    Ok((snapshot, chosen))
}

impl Connection<'_> {
    /// The namespace of manifests that name none, when `-n` does not say.
    pub(super) fn default_namespace(&self) -> NamespaceName {
        match self {
            Self::Recorded(_) => DEFAULT_NAMESPACE.into(),
            Self::Live(cluster) => cluster.default_namespace().clone(),
        }
    }

    /// The cluster as it is, or was. A recording is read whole, whatever the scope.
    pub(super) async fn snapshot(&self, scope: &Scope, shell: &Shell) -> Result<Snapshot, Error> {
        self.snapshot_for(&[], scope, shell).await
    }

    /// As [`snapshot`](Self::snapshot), for a plan of these DaemonSets.
    pub(super) async fn snapshot_for(
        &self,
        desired: &[DesiredDaemonSet],
        scope: &Scope,
        shell: &Shell,
    ) -> Result<Snapshot, Error> {
        match self {
            Self::Recorded(file) if is_standard_input(file) => {
                Ok(cluster::read_recorded_from(io::stdin().lock(), STANDARD_INPUT)?)
            }
            Self::Recorded(file) => Ok(cluster::read_recorded(file)?),
            Self::Live(cluster) => Ok(cluster.snapshot_for(desired, scope, shell.now).await?),
        }
    }
}

/// Whether a file named on the command line is standard input.
pub(super) fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}
