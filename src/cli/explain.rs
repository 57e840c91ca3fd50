//! `ds-plan explain`: every rule in the controller's order, and how it came out for one node.

use clap::ValueEnum;

use super::connection;
use super::error::{Error, Place};
use super::exit::Exit;
use super::flags::{GlobalFlags, heading};
use super::shell::Shell;
use crate::cluster::Scope;
use crate::model::{DaemonSetKey, NodeName, Snapshot};
use crate::plan::{self, Explanation, NotFound};
use crate::render;

/// Explain one DaemonSet on one node, rule by rule in the controller's order
///
/// Looks at the DaemonSet as it is in the cluster.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The DaemonSet
    #[arg(value_name = "NAMESPACE/NAME")]
    daemon_set: DaemonSetKey,

    /// The node
    #[arg(value_name = "NODE")]
    node: NodeName,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Yaml,
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let explanation = read_and_decide(args, global, shell).await?;
    show(&explanation, args, shell)?;
    Ok(Exit::Done)
}

async fn read_and_decide(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Explanation, Error> {
    let Args { daemon_set, node, output: _ } = args;
    if global.namespace.as_ref().is_some_and(|namespace| *namespace != daemon_set.namespace) {
        let known = vec![daemon_set.clone()];
        return Err(Error::NothingSelected { known, place: Place::Cluster });
    }
    let scope = Scope::Namespaces([daemon_set.namespace.clone()].into());
    let snapshot = connection::open(global, shell).await?.snapshot(&scope, shell).await?;
    plan::explain(&snapshot, daemon_set, node).map_err(|missing| not_found(missing, &snapshot))
}

fn not_found(missing: NotFound, snapshot: &Snapshot) -> Error {
    match missing {
        NotFound::DaemonSet(key) => Error::NotFound {
            missing: vec![key],
            place: Place::Cluster,
            known: snapshot.daemon_sets.iter().map(|live| live.key.clone()).collect(),
        },
        NotFound::Node(node) => Error::NoSuchNode { similar: similar(&node, snapshot), node },
    }
}

/// The node whose name is most like `name`, when one is.
fn similar(name: &NodeName, snapshot: &Snapshot) -> Option<NodeName> {
    let likeness = |node: &NodeName| strsim::jaro_winkler(name.as_str(), node.as_str());
    let nodes = snapshot.nodes.iter().map(|node| (likeness(&node.name), &node.name));
    let best = nodes.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness > 0.8).map(|(_, name)| name.clone())
}

fn show(explanation: &Explanation, args: &Args, shell: &Shell) -> Result<(), Error> {
    let text = match args.output {
        Format::Text => render::explain_text(explanation, &shell.text_options(false)),
        Format::Json => render::json(explanation)?,
        Format::Yaml => render::yaml(explanation)?,
    };
    shell.printer.out(text).map_err(Error::Output)
}
