//! `ds-plan`: says what applying DaemonSets from git would do to every node. Never writes to the
//! cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    ds_plan::cli::ds_plan().into()
}
