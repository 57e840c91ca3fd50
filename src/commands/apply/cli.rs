//! The command line of `ds-apply`.

use std::slice;

use clap::{Parser, Subcommand};

use super::flags::CommonFlags;
use super::{can_i, command, release, roll, step_approval, undo, unlock};
use crate::commands::{completions, man};
use crate::flags::GlobalFlags;
use crate::flags::name::GivenName;
use crate::output::Format;

/// Apply DaemonSet changes from git, node by node, within the budget
///
/// Without a command, `ds-apply` means `ds-apply apply`. Run it again to resume.
#[derive(Parser, Debug)]
#[command(name = "ds-apply", version = crate::VERSION, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct DsApply {
    #[command(flatten)]
    apply: command::Args,

    #[command(flatten)]
    global: GlobalFlags,

    #[command(subcommand)]
    command: Option<Command>,
}

impl DsApply {
    /// The command, which is `apply` unless another one is named.
    pub(crate) fn into_command(self) -> (GlobalFlags, Command) {
        let Self { apply, global, command } = self;
        (global, command.unwrap_or_else(|| Command::Apply(Box::new(apply))))
    }
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 4 paused or aborted (run again, or roll \
                          back), 5 stale (plan again), 6 blocked by a guard, 7 locked by another \
                          run, 8 waiting (run again later), 9 waiting for an approval (approve, \
                          then run again), 64 usage, 130 interrupted, 143 terminated";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Apply(Box<command::Args>),
    Approve(Box<step_approval::Args>),
    Roll(Box<roll::Args>),
    Step(Box<roll::StepArgs>),
    Undo(Box<undo::Args>),
    Release(Box<release::Args>),
    Unlock(unlock::Args),
    CanI(can_i::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// The common flags of the commands that change the cluster.
    pub(super) fn common(&self) -> Option<&CommonFlags> {
        match self {
            Self::Apply(args) => Some(&args.common),
            Self::Roll(args) => Some(&args.named.common),
            Self::Step(args) => Some(&args.common),
            Self::Undo(args) => Some(&args.named.common),
            Self::Release(args) => Some(&args.named.common),
            Self::Approve(_)
            | Self::Unlock(_)
            | Self::CanI(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }

    /// Whether the policies of the command are those of the current folder.
    pub(super) fn has_policies_of_folder(&self) -> bool {
        match self {
            Self::Apply(args) => args.plans_again() && args.source.has_policies_of_folder(),
            Self::Roll(_)
            | Self::Step(_)
            | Self::Undo(_)
            | Self::Approve(_)
            | Self::Release(_)
            | Self::Unlock(_)
            | Self::CanI(_)
            | Self::Completions(_)
            | Self::Man(_) => true,
        }
    }

    /// The name of a command that needs a live cluster: it can neither be rehearsed nor planned.
    pub(super) fn live_only(&self) -> Option<&'static str> {
        match self {
            Self::Unlock(_) => Some("unlock"),
            Self::CanI(_) => Some("can-i"),
            Self::Approve(_) => Some("approve"),
            Self::Release(_) => Some("release"),
            Self::Apply(_)
            | Self::Roll(_)
            | Self::Step(_)
            | Self::Undo(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }

    /// The output format of the command.
    pub(super) fn output(&self) -> Format {
        self.common().map_or(Format::Text, |common| common.output)
    }

    /// The same command with `--yes`.
    pub(super) fn approved(mut self) -> Self {
        match &mut self {
            Self::Apply(args) => args.common.yes = true,
            Self::Roll(args) => args.named.common.yes = true,
            Self::Step(args) => args.common.yes = true,
            Self::Undo(args) => args.named.common.yes = true,
            Self::Release(args) => args.named.common.yes = true,
            Self::Approve(_)
            | Self::Unlock(_)
            | Self::CanI(_)
            | Self::Completions(_)
            | Self::Man(_) => {}
        }
        self
    }

    /// The live DaemonSets that are named; `None` when DaemonSets come from a source.
    pub(super) fn names(&self) -> Option<&[GivenName]> {
        match self {
            Self::Roll(args) => Some(&args.named.names),
            Self::Approve(args) => Some(slice::from_ref(&args.name)),
            Self::Step(args) => Some(slice::from_ref(&args.name)),
            Self::Undo(args) => Some(&args.named.names),
            Self::Release(args) => Some(&args.named.names),
            Self::Unlock(args) => Some(&args.names),
            Self::CanI(args) => Some(&args.names),
            Self::Apply(_) | Self::Completions(_) | Self::Man(_) => None,
        }
    }
}
