//! `ds-plan show`: a saved plan, in any of the formats of `plan`.

use std::path::PathBuf;

use clap::ValueHint;

use crate::error::Error;
use crate::exit::Exit;
use crate::flags::{CommentFlags, GlobalFlags, heading};
use crate::output::{self, Format, Options, formats};
use crate::saved_plan::PlanFile;
use crate::shell::Shell;

/// Show a plan that `ds-plan --out` saved
///
/// Neither the cluster nor the source is read. Values that may be secret are shown only if they
/// were when the plan was saved.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The saved plan
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Output format; `name` prints NAMESPACE/NAME of each DaemonSet that changes
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats(Format::ALL))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,

    #[command(flatten)]
    comment: CommentFlags,
}

pub(super) fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let Args { file, output, comment } = args;
    let verbose = global.is_verbose();
    let markdown = comment.options(*output == Format::Markdown, verbose, &[])?;
    let plan = PlanFile::read(file, &global.signature, shell)?.plan()?;
    let options = Options { format: *output, verbose, markdown: &markdown, nodes: &[] };
    output::print(plan, &options, shell)?;
    Ok(Exit::Done)
}
