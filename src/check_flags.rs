//! Asking the checks of policies: the flags about it, and the client.

use std::path::PathBuf;

use clap::Args;

use super::error::Error;
use super::shell::Shell;
use checks::{Client, Commands, HostToken, Settings};

/// Heading of these flags.
const CHECKS: &str = "Checks";

/// What a person allows the checks of policies.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct CheckFlags {
    /// Send the token in FILE to the checks at this host, and to no other; repeatable
    ///
    /// The host is as in the address of the check: with the port, if one is there. The file is read
    /// each time that a check is asked.
    #[arg(long, value_name = "HOST=FILE", help_heading = CHECKS)]
    check_token: Vec<HostToken>,

    /// Allow checks to run programs
    ///
    /// A policy names them, so its authors decide what runs here. A name is looked up in the absolute
    /// folders of `PATH`; a relative path is below the current folder, and needs policies from there:
    /// no --repo, --rev, --policy-from or --plan.
    #[arg(long, help_heading = CHECKS)]
    allow_commands: bool,
}

impl CheckFlags {
    /// The client. `of_folder`: the policies are those of the current folder, and so are the files that
    /// they name.
    ///
    /// # Errors
    /// The file of a token cannot be read.
    pub(super) fn client(&self, of_folder: bool, shell: &Shell) -> Result<Client, Error> {
        let Self { check_token, allow_commands } = self;
        for token in check_token {
            let file = || PathBuf::from(token.file());
            token.check().map_err(|source| Error::CheckToken { file: file(), source })?;
        }
        let commands = allow_commands.then(|| Commands {
            path: shell.variable("PATH").unwrap_or_default().to_owned(),
            folder: shell.current_dir.clone(),
            runs_files: of_folder,
        });
        Ok(Client::new(Settings { tokens: check_token.clone(), commands, ..Settings::default() }))
    }
}
