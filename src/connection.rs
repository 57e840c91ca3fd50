//! The cluster that a command reads: a live one, or a recording.
//!
//! With a recording no network call is made. Not here: reading either (`cluster`).

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::error::{Error, Place, SavedPlanError};
use super::flags::{GlobalFlags, NarrowFlags};
use super::input::Selection;
use super::shell::Shell;
use cluster::{self, ConnectOptions, LiveCluster, Scope};
use daemonset::model::{DaemonSet, DaemonSetKey, DesiredDaemonSet, NamespaceName, Pod, Snapshot};
use source::STANDARD_INPUT;

/// The namespace of manifests without one, if neither `-n` nor a kubeconfig sets it.
const DEFAULT_NAMESPACE: &str = "default";

/// The origin of a snapshot.
pub(super) enum Connection<'a> {
    /// The file of a recording; `-` is standard input.
    Recorded(Recording<'a>),
    /// A live cluster.
    Live(Box<LiveCluster>),
}

/// The file of a recorded cluster.
pub(super) struct Recording<'a> {
    /// The path on the command line.
    file: &'a Path,
    /// A copy whose signature was checked, if `--require-signature` is given; it is read instead.
    signed: Option<NamedTempFile>,
}

/// Opens the cluster that the flags name; no request is sent yet.
pub(super) async fn open<'a>(
    flags: &'a GlobalFlags,
    shell: &Shell,
) -> Result<Connection<'a>, Error> {
    let GlobalFlags {
        kubeconfig,
        context,
        snapshot,
        signature,
        namespace: _,
        color: _,
        annotations: _,
    } = flags;
    if let Some(file) = snapshot {
        if signature.is_demanded() && is_standard_input(file) {
            return Err(SavedPlanError::NothingSigned.into());
        }
        let signed = signature.checked(file, shell)?;
        return Ok(Connection::Recorded(Recording { file, signed }));
    }
    let options = ConnectOptions {
        kubeconfig: kubeconfig.clone(),
        kubeconfig_env: shell.variable("KUBECONFIG").map(Into::into),
        home: shell.variable("HOME").map(PathBuf::from),
        context: context.clone(),
        search: Some(shell.variable("PATH").unwrap_or_default().into()),
    };
    Ok(Connection::Live(Box::new(cluster::connect(&options).await?)))
}

/// Reads the cluster, and selects DaemonSets, for a command that reads no source.
pub(super) async fn read_chosen(
    narrow: &NarrowFlags,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<(Snapshot, BTreeSet<DaemonSetKey>), Error> {
    choose(&open(global, shell).await?, narrow, global, shell).await
}

/// As [`read_chosen`], with the last warning event of each of their pods that is not Ready.
pub(super) async fn read_chosen_with_warnings(
    narrow: &NarrowFlags,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<(Snapshot, BTreeSet<DaemonSetKey>), Error> {
    let connection = open(global, shell).await?;
    let (mut snapshot, chosen) = choose(&connection, narrow, global, shell).await?;
    connection.report_warnings(&mut snapshot, &chosen).await;
    Ok((snapshot, chosen))
}

/// Refuses a live cluster together with `--require-signature`: it has no signature.
pub(super) fn refuse_unsigned(global: &GlobalFlags) -> Result<(), Error> {
    let unsigned = global.snapshot.is_none() && global.signature.is_demanded();
    if unsigned { Err(SavedPlanError::NothingSigned.into()) } else { Ok(()) }
}

async fn choose(
    connection: &Connection<'_>,
    narrow: &NarrowFlags,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<(Snapshot, BTreeSet<DaemonSetKey>), Error> {
    refuse_unsigned(global)?;
    let namespace = global.namespace.as_ref();
    let snapshot = connection.snapshot(&narrow.scope(namespace), shell).await?;
    let selection = Selection { namespace, flags: narrow, place: Place::Cluster };
    let all: Vec<&DaemonSet> = snapshot.daemon_sets.iter().collect();
    let chosen = selection.narrow(all)?.into_iter().map(|live| live.key.clone()).collect();
    Ok((snapshot, chosen))
}

impl Connection<'_> {
    /// The namespace of manifests without one, if `-n` is not given.
    pub(super) fn default_namespace(&self) -> NamespaceName {
        match self {
            Self::Recorded(_) => DEFAULT_NAMESPACE.into(),
            Self::Live(cluster) => cluster.default_namespace().clone(),
        }
    }

    /// Adds the last warning event of each pod of these DaemonSets that is not Ready. A recording
    /// contains them already.
    pub(super) async fn report_warnings(
        &self,
        snapshot: &mut Snapshot,
        of: &BTreeSet<DaemonSetKey>,
    ) {
        let Self::Live(cluster) = self else { return };
        let chosen = snapshot.daemon_sets.iter().filter(|live| of.contains(&live.key));
        let owners: BTreeSet<_> = chosen.map(|live| live.uid.clone()).collect();
        let is_theirs =
            |pod: &Pod| pod.controller.as_ref().is_some_and(|owner| owners.contains(&owner.uid));
        cluster.report_warnings(&mut snapshot.pods, is_theirs).await;
    }

    /// Reads a snapshot of the cluster. A recording is read completely, regardless of the scope.
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
            Self::Recorded(Recording { file, .. }) if is_standard_input(file) => {
                Ok(cluster::read_recorded_from(io::stdin().lock(), STANDARD_INPUT)?)
            }
            Self::Recorded(Recording { file, signed: None }) => Ok(cluster::read_recorded(file)?),
            Self::Recorded(Recording { file, signed: Some(copy) }) => {
                let name = file.display().to_string();
                let bytes = copy.reopen().map_err(|source| SavedPlanError::SignatureUnchecked {
                    file: file.to_path_buf(),
                    source,
                })?;
                Ok(cluster::read_recorded_from(bytes, &name)?)
            }
            Self::Live(cluster) => Ok(cluster.snapshot_for(desired, scope, shell.now).await?),
        }
    }
}

/// Whether a file named on the command line is standard input.
pub(super) fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}
