//! `--require-signature`: a recording or a saved plan counts only if a workflow has signed it, keyless.
//!
//! What is checked is what is read: a copy that nobody else can write. The check is the installed
//! cosign's, which knows Sigstore's roots of trust. Not here: signing, which the workflow does.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use tempfile::{NamedTempFile, tempfile};

use super::error::Error;
use super::flags::heading;
use super::shell::Shell;
use crate::search_path;
use crate::source::wait_for_child;

/// The verifier.
const COSIGN: &str = "cosign";

/// What follows the name of a signed file in that of its bundle.
const BUNDLE: &str = ".sigstore.json";

/// How long the check may take; it may fetch Sigstore's roots of trust.
const TIMEOUT: Duration = Duration::from_mins(2);

/// So much of what cosign says is quoted, in characters.
const QUOTED: usize = 500;

/// Who must have signed what is read.
#[derive(Args, Clone, Debug)]
pub(super) struct SignatureFlags {
    /// Take a recording (--snapshot), or a saved plan (--plan), only if this identity has signed it;
    /// the signature is in FILE.sigstore.json beside it
    ///
    /// The identity is what the certificate says: for a workflow of GitHub,
    /// `https://github.com/OWNER/REPO/.github/workflows/FILE@refs/heads/BRANCH`. The check is done by
    /// the installed cosign (`cosign verify-blob`), which may ask the network for Sigstore's roots.
    #[arg(long, global = true, value_name = "IDENTITY", help_heading = heading::CLUSTER)]
    require_signature: Option<String>,

    /// Who must have issued that identity
    #[arg(long, global = true, value_name = "URL", help_heading = heading::CLUSTER)]
    #[arg(default_value = "https://token.actions.githubusercontent.com")]
    signature_issuer: String,
}

impl SignatureFlags {
    /// Whether a signature is demanded.
    pub(super) fn is_demanded(&self) -> bool {
        self.require_signature.is_some()
    }

    /// Checks the signature of `file`, if one is demanded: a copy of what was checked, to be read
    /// instead of it. `None` when none is demanded.
    ///
    /// # Errors
    /// It is not signed so, or that cannot be found out.
    pub(super) fn checked(
        &self,
        file: &Path,
        shell: &Shell,
    ) -> Result<Option<NamedTempFile>, Error> {
        let Some(identity) = &self.require_signature else { return Ok(None) };
        let failed = |source| Error::SignatureUnchecked { file: file.to_owned(), source };
        let file_in_place = shell.current_dir.join(file);
        let mut bundle: OsString = file_in_place.clone().into();
        bundle.push(BUNDLE);
        let copies =
            copied(&file_in_place).and_then(|copy| Ok((copy, copied(Path::new(&bundle))?)));
        let (copy, bundle) = copies.map_err(failed)?;
        let program = cosign(shell).ok_or(Error::NoCosign)?;
        let mut command = Command::new(program);
        command
            .args(["verify-blob", "--bundle"])
            .arg(bundle.path())
            .args(["--certificate-identity", identity])
            .args(["--certificate-oidc-issuer", &self.signature_issuer])
            .arg(copy.path())
            .env_clear()
            .envs(&shell.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let (ended, said) = run(command).map_err(failed)?;
        if ended {
            return Ok(Some(copy));
        }
        Err(Error::NotSigned { file: file.to_owned(), identity: identity.clone(), said })
    }
}

/// A copy that only this user can write.
fn copied(file: &Path) -> io::Result<NamedTempFile> {
    let mut copy = NamedTempFile::new()?;
    io::copy(&mut fs::File::open(file)?, &mut copy)?;
    copy.flush()?;
    Ok(copy)
}

/// Cosign, as `PATH` has it.
fn cosign(shell: &Shell) -> Option<PathBuf> {
    search_path::find(shell.variable("PATH")?, COSIGN)
}

/// Whether it ended well, and what it said.
fn run(mut command: Command) -> io::Result<(bool, String)> {
    let mut stderr = tempfile()?;
    command.stderr(stderr.try_clone()?);
    let ended = wait_for_child(command.spawn()?, TIMEOUT)?;
    stderr.rewind()?;
    let said = String::from_utf8_lossy(&read_all(&mut stderr)?).trim().to_owned();
    let said = said.chars().take(QUOTED).collect();
    match ended {
        Some(status) => Ok((status.success(), said)),
        None => Ok((false, format!("no answer within {} s", TIMEOUT.as_secs()))),
    }
}

fn read_all(file: &mut fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(file, &mut bytes)?;
    Ok(bytes)
}
