//! The cluster that a command reads: a live one, or a recording.
//!
//! With a recording no network call is made. Not here: reading either (`cluster`).

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::error::{Error, Place, SavedPlanError};
use super::flags::{GlobalFlags, LiveFlags};
use super::input::Selection;
use super::shell::Shell;
use super::warnings;
use cluster::{self, ConnectOptions, Impersonation, LiveCluster, Scope};
use daemonset::model::{DaemonSet, DaemonSetKey, DesiredDaemonSet, NamespaceName, Pod, Snapshot};
use source::STANDARD_INPUT;

/// The namespace of manifests without one, if neither `-n` nor a kubeconfig sets it.
const DEFAULT_NAMESPACE: &str = "default";

/// The origin of a snapshot.
pub(super) enum Connection {
    /// The file of a recording; `-` is standard input.
    Recorded(Recording),
    /// A live cluster.
    Live(Box<LiveCluster>),
}

/// The file of a recorded cluster.
pub(super) struct Recording {
    /// The path on the command line.
    file: PathBuf,
    /// A copy whose signature was checked, if `--require-signature` is given; it is read instead.
    signed: Option<NamedTempFile>,
}

/// Opens the cluster that the flags name; no request is sent yet.
pub(super) async fn open(flags: &GlobalFlags, shell: &Shell) -> Result<Connection, Error> {
    open_by(flags, options(flags, shell), shell).await
}

/// As [`open`]; a credential plugin must not ask the user.
pub(super) async fn open_silently(flags: &GlobalFlags, shell: &Shell) -> Result<Connection, Error> {
    let options = ConnectOptions { never_ask: true, ..options(flags, shell) };
    open_by(flags, options, shell).await
}

async fn open_by(
    flags: &GlobalFlags,
    options: ConnectOptions,
    shell: &Shell,
) -> Result<Connection, Error> {
    if let Some(file) = &flags.snapshot {
        if flags.signature.is_demanded() && is_standard_input(file) {
            return Err(SavedPlanError::NothingSigned.into());
        }
        let signed = flags.signature.checked(file, shell)?;
        tracing::debug!("cluster recorded in {}", file.display());
        return Ok(Connection::Recorded(Recording { file: file.clone(), signed }));
    }
    Ok(Connection::Live(Box::new(cluster::connect(&options).await?)))
}

fn options(flags: &GlobalFlags, shell: &Shell) -> ConnectOptions {
    let GlobalFlags {
        kubeconfig,
        context,
        as_user,
        as_groups,
        request_timeout,
        concurrency,
        snapshot: _,
        signature: _,
        namespace: _,
        color: _,
        verbose: _,
        quiet: _,
        annotations: _,
    } = flags;
    let user = as_user.clone();
    ConnectOptions {
        kubeconfig: kubeconfig.clone(),
        kubeconfig_env: shell.variable("KUBECONFIG").map(Into::into),
        home: shell.variable("HOME").map(PathBuf::from),
        context: context.clone(),
        search: Some(shell.variable("PATH").unwrap_or_default().into()),
        impersonate: user.map(|user| Impersonation { user, groups: as_groups.clone() }),
        request_timeout: *request_timeout,
        concurrency: *concurrency,
        never_ask: false,
    }
}

/// The DaemonSets that a command without a source reads.
pub(super) struct Chosen {
    /// The cluster, as far as the command needs it.
    pub(super) snapshot: Snapshot,
    /// The selected DaemonSets.
    pub(super) keys: BTreeSet<DaemonSetKey>,
    /// Whether they were searched in all namespaces.
    pub(super) all_namespaces: bool,
    /// The connection to the cluster.
    pub(super) connection: Connection,
}

/// Reads the cluster, and selects DaemonSets, for a command that reads no source.
pub(super) async fn read_chosen(
    flags: &LiveFlags,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Chosen, Error> {
    choose(open(global, shell).await?, flags, global, shell).await
}

/// As [`read_chosen`], with the last warning event of each of their pods that is not Ready.
pub(super) async fn read_chosen_with_warnings(
    flags: &LiveFlags,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Chosen, Error> {
    let connection = open(global, shell).await?;
    let mut chosen = choose(connection, flags, global, shell).await?;
    chosen.connection.report_warnings(&mut chosen.snapshot, &chosen.keys).await;
    Ok(chosen)
}

/// Refuses a live cluster together with `--require-signature`: it has no signature.
pub(super) fn refuse_unsigned(global: &GlobalFlags) -> Result<(), Error> {
    let unsigned = global.snapshot.is_none() && global.signature.is_demanded();
    if unsigned { Err(SavedPlanError::NothingSigned.into()) } else { Ok(()) }
}

async fn choose(
    connection: Connection,
    flags: &LiveFlags,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Chosen, Error> {
    refuse_unsigned(global)?;
    let LiveFlags { narrow, all_namespaces } = flags;
    let of_flag = global.namespace.as_ref().filter(|_| !all_namespaces);
    let default = connection.default_namespace();
    let namespace =
        of_flag.or_else(|| (!all_namespaces).then(|| connection.of_context()).flatten());
    let mut selection = Selection::of(narrow, of_flag, &default, Place::Cluster)?;
    // Names have their own namespaces.
    selection.namespace = namespace.filter(|_| selection.names.is_empty());
    let scope = selection.scope();
    let snapshot = connection.snapshot(&scope, shell).await?;
    let all: Vec<&DaemonSet> = snapshot.daemon_sets.iter().collect();
    let keys = selection.narrow(all)?.into_iter().map(|live| live.key.clone()).collect();
    Ok(Chosen { snapshot, keys, all_namespaces: scope == Scope::All, connection })
}

impl Connection {
    /// The namespace of manifests and names without one, if `-n` is not given.
    pub(super) fn default_namespace(&self) -> NamespaceName {
        match self {
            Self::Recorded(_) => DEFAULT_NAMESPACE.into(),
            Self::Live(cluster) => cluster.default_namespace().clone(),
        }
    }

    /// The namespace of the kubeconfig's context; a recording has none.
    fn of_context(&self) -> Option<&NamespaceName> {
        match self {
            Self::Recorded(_) => None,
            Self::Live(cluster) => Some(cluster.default_namespace()),
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
            Self::Recorded(recording) => recording.read(shell),
            Self::Live(cluster) => {
                let snapshot = cluster.snapshot_for(desired, scope, shell.now).await?;
                let server = cluster.server_time();
                warnings::print_local_clock(shell.local_time(), server, shell.printer);
                Ok(snapshot)
            }
        }
    }
}

impl Connection {
    /// Adds the approvals that the policies of these DaemonSets ask for. A recording has none.
    pub(super) async fn read_approvals(
        &self,
        desired: &[DesiredDaemonSet],
        snapshot: &mut Snapshot,
    ) -> Result<(), Error> {
        match self {
            Self::Recorded(_) => Ok(()),
            Self::Live(cluster) => Ok(cluster.read_approvals(desired, snapshot).await?),
        }
    }
}

impl Connection {
    /// Adds the approvals of steps of these DaemonSets, as far as the user may read them. A recording
    /// has none.
    pub(super) async fn read_approvals_of(
        &self,
        keys: Vec<DaemonSetKey>,
        snapshot: &mut Snapshot,
    ) -> Result<(), Error> {
        match self {
            Self::Recorded(_) => Ok(()),
            Self::Live(cluster) => Ok(cluster.read_approvals_of(keys, snapshot).await?),
        }
    }
}

impl Recording {
    /// Reads the whole file, and warns if it is old.
    fn read(&self, shell: &Shell) -> Result<Snapshot, Error> {
        let Self { file, signed } = self;
        let snapshot = match signed {
            _ if is_standard_input(file) => {
                cluster::read_recorded_from(io::stdin().lock(), STANDARD_INPUT)?
            }
            None => cluster::read_recorded(file)?,
            Some(copy) => {
                let bytes = copy.reopen().map_err(|source| SavedPlanError::SignatureUnchecked {
                    file: file.clone(),
                    source,
                })?;
                cluster::read_recorded_from(bytes, &file.display().to_string())?
            }
        };
        warnings::print_age(snapshot.observed_at, shell.now, shell.printer);
        Ok(snapshot)
    }
}

/// Whether a file named on the command line is standard input.
pub(super) fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}
