//! The flags of `ds-apply approve`.

use crate::flags::name::{GivenName, NAME};
use crate::flags::{OwnershipFlags, SourceFlags, heading};
use crate::output::{Format, formats};
use source::ReferenceName;

/// Approve a step of a rollout that waits for it (`approve: true` in a policy)
///
/// Reads the manifests and the policy as apply does, shows which nodes run the new revision and
/// since when, and asks. The approval is of this template and of this step: after another commit,
/// an edit of the step, a failure or a rollback it is void. Until the step before it is done, it is
/// refused (exit code 6). It starts nothing: the next run of ds-apply continues the rollout.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// DaemonSet: NAME or ds/NAME (in the namespace of -n), or NAMESPACE/NAME
    #[arg(value_name = NAME)]
    pub(in crate::commands::apply) name: GivenName,

    /// The step, by its name in the policy
    #[arg(value_name = "STEP")]
    pub(super) step: String,

    /// Approve without asking
    #[arg(short, long)]
    pub(super) yes: bool,

    /// Show what would be approved, and end; nothing is asked and nothing is written
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) source: SourceFlags,

    /// Require the commit to be in the history of this reference: `refs/remotes/origin/main`
    #[arg(long, value_name = "REF", help_heading = heading::SOURCE, conflicts_with = "filename")]
    pub(super) require_ref: Option<ReferenceName>,

    #[command(flatten)]
    pub(super) ownership: OwnershipFlags,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json]))]
    #[arg(help_heading = heading::OUTPUT)]
    pub(super) output: Format,
}
