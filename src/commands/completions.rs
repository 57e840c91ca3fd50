//! `completions`: scripts that complete the command line in a shell.

use clap_complete::Shell as Target;

use crate::error::Error;
use crate::exit::Exit;
use crate::shell::Shell;

/// Print a completion script for a shell
///
/// For example: `source <(ds-plan completions bash)`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Shell
    #[arg(value_name = "SHELL")]
    target: Target,
}

pub(super) fn run(args: &Args, mut program: clap::Command, shell: &Shell) -> Result<Exit, Error> {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(args.target, &mut program, name, &mut script);
    shell.printer.out(String::from_utf8_lossy(&script)).map_err(Error::Output)?;
    Ok(Exit::Done)
}
