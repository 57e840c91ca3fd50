//! `ds-plan explain`: every rule in the controller's order, with its result for one node.

use std::collections::BTreeSet;

use crate::comparison::{self, Compared};
use crate::connection::{self, Connection};
use crate::container_log;
use crate::error::{Error, Place};
use crate::exit::Exit;
use crate::flags::name::{GivenName, NAME};
use crate::flags::{GlobalFlags, NarrowFlags, OwnershipFlags, SourceFlags, heading};
use crate::input::policies::{self, asks, of_live};
use crate::output::{self, Format, formats};
use crate::prune::PruneFlags;
use crate::shell::Shell;
use cluster::Scope;
use daemonset::model::{DaemonSetKey, NodeName, Snapshot};
use planner::plan::{self, Explanation, Intent, NotFound};

/// Explain one DaemonSet on one node, rule by rule in the controller's order
///
/// Without a flag that names a source, it explains the DaemonSet as it is in the cluster; with
/// `--policy`, also in which wave the node is, and what that waits for. With a flag for a source
/// (`--rev HEAD`, `--path`, `-f`, …), it explains what the plan of that source does on the node, and
/// why.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The DaemonSet: NAME or ds/NAME (in the namespace of -n), or NAMESPACE/NAME
    #[arg(value_name = NAME)]
    daemon_set: GivenName,

    /// The node
    #[arg(value_name = "NODE")]
    node: NodeName,

    #[command(flatten)]
    source: SourceFlags,

    #[command(flatten)]
    ownership: OwnershipFlags,

    /// Show the last log lines of the containers of its pods
    #[arg(long, conflicts_with = "snapshot", help_heading = heading::OUTPUT)]
    logs: bool,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json, Format::Yaml]))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let explanation = read_and_decide(args, global, shell).await?;
    output::print_plain(explanation, args.output, &shell.text_options(false), shell)?;
    Ok(Exit::Done)
}

async fn read_and_decide(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Explanation, Error> {
    if args.source.is_given() {
        planned(args, global, shell).await
    } else {
        live(args, global, shell).await
    }
}

/// Explains the DaemonSet as it is in the cluster.
async fn live(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Explanation, Error> {
    let Args { daemon_set, node, .. } = args;
    let connection = connection::open(global, shell).await?;
    let flag = global.namespace.as_ref();
    let daemon_set = &daemon_set.key(flag, &connection.default_namespace())?;
    let scope = Scope::Namespaces([daemon_set.namespace.clone()].into());
    let mut snapshot = connection.snapshot(&scope, shell).await?;
    connection.report_warnings(&mut snapshot, &[daemon_set.clone()].into()).await;
    let policies = policies::of_source(&args.source, shell)?;
    let of_live = of_live(&policies, &snapshot, &[daemon_set.clone()].into())?;
    let explained = match of_live.get(daemon_set) {
        None => plan::explain(&snapshot, daemon_set, node),
        Some(policy) => {
            let asking = Vec::from_iter(asks(policy).then(|| daemon_set.clone()));
            connection.read_approvals_of(asking, &mut snapshot).await?;
            plan::explain_under(&snapshot, daemon_set, node, policy)
        }
    };
    let mut explained = explained.map_err(|missing| not_found(missing, &snapshot))?;
    add_logs(&mut explained, args, &connection, &snapshot).await;
    Ok(explained)
}

/// Explains the plan of the source for the DaemonSet.
async fn planned(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Explanation, Error> {
    let Args { daemon_set, node, source, ownership, .. } = args;
    let narrow = NarrowFlags { names: vec![daemon_set.clone()], selector: None };
    let prune = PruneFlags::marking(None);
    let Compared { mut snapshot, desired, connection } =
        comparison::read(source, None, &narrow, &prune, global, shell).await?;
    let flag = global.namespace.as_ref();
    let daemon_set = &daemon_set.key(flag, &connection.default_namespace())?;
    connection.report_warnings(&mut snapshot, &[daemon_set.clone()].into()).await;
    let input = plan::Input {
        force_conflicts: &ownership.names(),
        source: desired.source,
        intent: Intent::Preview,
        ..plan::Input::of(&snapshot, &desired.daemon_sets)
    };
    let explained = plan::explain_planned(input, daemon_set, node);
    let mut explained = explained.map_err(|missing| not_found(missing, &snapshot))?;
    add_logs(&mut explained, args, &connection, &snapshot).await;
    Ok(explained)
}

/// Adds the logs of the pods on the node, if they are requested.
async fn add_logs(
    explained: &mut Explanation,
    args: &Args,
    connection: &Connection,
    snapshot: &Snapshot,
) {
    let Connection::Live(cluster) = connection else { return };
    let names: BTreeSet<_> = explained.pods.iter().map(|pod| pod.name.clone()).collect();
    let pods = snapshot.pods_in(&explained.daemon_set.namespace).iter();
    for pod in pods.filter(|pod| args.logs && names.contains(&pod.name)) {
        explained.logs.push(container_log::read(cluster, pod).await);
    }
}

fn not_found(missing: NotFound, snapshot: &Snapshot) -> Error {
    let first = |key: &DaemonSetKey| NodeName::from(key.name.as_str());
    match missing {
        NotFound::DaemonSet(key) if snapshot.node(&first(&key)).is_some() => {
            Error::NodeFirst(first(&key))
        }
        NotFound::DaemonSet(key) => Error::NotFound {
            missing: vec![key],
            place: Place::Cluster,
            known: snapshot.daemon_sets.iter().map(|live| live.key.clone()).collect(),
        },
        NotFound::Node(node) => Error::NoSuchNode { similar: similar(&node, snapshot), node },
    }
}

/// The node with the most similar name, if one is similar enough.
fn similar(name: &NodeName, snapshot: &Snapshot) -> Option<NodeName> {
    let likeness = |node: &NodeName| strsim::jaro_winkler(name.as_str(), node.as_str());
    let nodes = snapshot.nodes.iter().map(|node| (likeness(&node.name), &node.name));
    let best = nodes.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness > 0.8).map(|(_, name)| name.clone())
}
