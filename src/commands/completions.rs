//! `completions`: scripts that complete the command line in a shell.

use clap_complete::Shell as Target;

use crate::command_line::completion;
use crate::error::Error;
use crate::exit::Exit;
use crate::shell::Shell;

/// Print a completion script for a shell
///
/// The script calls the program for each word, and so completes names of namespaces and DaemonSets
/// from the cluster, or from the recording of --snapshot.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Shell
    #[arg(value_name = "SHELL")]
    target: Target,
}

pub(super) fn run(args: &Args, program: &str, shell: &Shell) -> Result<Exit, Error> {
    let script = completion::script(program, &args.target.to_string()).map_err(Error::Output)?;
    shell.printer.out(String::from_utf8_lossy(&script)).map_err(Error::Output)?;
    Ok(Exit::Done)
}
