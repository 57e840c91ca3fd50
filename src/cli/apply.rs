//! `ds-apply`, which is not built yet and says so.

use clap::Parser;

use super::exit::Exit;
use super::printer::Printer;

/// Carry out DaemonSet changes from git, node by node (not built yet)
#[derive(Parser, Debug)]
#[command(name = "ds-apply", version, max_term_width = 100)]
pub(super) struct DsApply {}

/// Says what to do instead.
pub(super) fn run(printer: Printer) -> Exit {
    printer.err(
        "error: ds-apply is not built yet: nothing was read and nothing was changed\n\
         hint: see what would happen with `ds-plan`, and apply with `kubectl apply --server-side`\n",
    );
    Exit::Failed
}
