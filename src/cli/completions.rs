//! `ds-plan completions`: scripts that complete the command line in a shell.

use clap::CommandFactory;
use clap_complete::Shell as Target;

use super::error::Error;
use super::exit::Exit;
use super::shell::Shell;

/// Print a completion script for a shell
///
/// For example: `source <(ds-plan completions bash)`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Which shell
    #[arg(value_name = "SHELL")]
    target: Target,
}

pub(super) fn run(args: &Args, shell: &Shell) -> Result<Exit, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.target, &mut super::DsPlan::command(), "ds-plan", &mut script);
    shell.printer.out(String::from_utf8_lossy(&script)).map_err(Error::Output)?;
    Ok(Exit::Done)
}
