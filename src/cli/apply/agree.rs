//! What must be agreed to before anything is written: guards, and a person's yes.

use std::io::{self, BufRead as _};

use super::flags::AllowFlags;
use crate::cli::error::Error;
use crate::cli::shell::Shell;
use crate::plan::{Guard, Plan};

/// The guards of the plan that nobody has allowed.
pub(super) fn refusals(plan: &Plan, allow: AllowFlags) -> Vec<Guard> {
    plan.guards.iter().filter(|guard| !allow.passes(guard.code)).cloned().collect()
}

/// Asks whether to go on; `yes` is the only answer that does.
///
/// # Errors
/// Nobody can be asked, or the answer is another one.
pub(super) fn ask(shell: &Shell) -> Result<(), Error> {
    if !shell.terminal {
        return Err(Error::NobodyToAsk);
    }
    shell.printer.err("Carry this out? Only `yes` goes on: ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Error::Answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Error::Declined) }
}
