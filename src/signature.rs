//! `--require-signature`: accept a recording or a saved plan only with a keyless signature of a
//! workflow.
//!
//! The file is copied, so that no other user can change it between the check and reading it. The
//! installed cosign does the check. Not here: signing, which the workflow does.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use tempfile::{NamedTempFile, tempfile};

use super::error::{Error, SavedPlanError};
use super::flags::heading;
use super::shell::Shell;
use host::search_path;
use source::wait_for_child;

/// The program that verifies signatures.
const COSIGN: &str = "cosign";

/// Suffix of a signed file's bundle.
const BUNDLE: &str = ".sigstore.json";

/// Timeout of the check, which may fetch Sigstore's trust roots.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Number of characters of the output of cosign that are quoted.
const QUOTED: usize = 500;

/// The required signer of a file.
#[derive(Args, Clone, Debug)]
pub(super) struct SignatureFlags {
    /// Accept a recording (--snapshot), or a saved plan (--plan), only if this identity signed it;
    /// the signature is in FILE.sigstore.json next to it
    ///
    /// The identity is that of the certificate: for a GitHub workflow,
    /// `https://github.com/OWNER/REPO/.github/workflows/FILE@refs/heads/BRANCH`. The
    /// installed cosign checks it (`cosign verify-blob`) and may fetch Sigstore's trust roots.
    #[arg(long, global = true, value_name = "IDENTITY", help_heading = heading::CLUSTER)]
    require_signature: Option<String>,

    /// Issuer of that identity
    #[arg(long, global = true, value_name = "URL", help_heading = heading::CLUSTER)]
    #[arg(default_value = "https://token.actions.githubusercontent.com")]
    signature_issuer: String,
}

impl SignatureFlags {
    /// Whether a signature is required.
    pub(super) fn is_demanded(&self) -> bool {
        self.require_signature.is_some()
    }

    /// Checks the signature of `file`, if one is required. Returns a copy of the checked content,
    /// to be read instead of the file; `None` if no signature is required.
    ///
    /// # Errors
    /// The file is not signed by the identity, or the signature cannot be checked.
    pub(super) fn checked(
        &self,
        file: &Path,
        shell: &Shell,
    ) -> Result<Option<NamedTempFile>, Error> {
        let Some(identity) = &self.require_signature else { return Ok(None) };
        let failed = |source| SavedPlanError::SignatureUnchecked { file: file.to_owned(), source };
        let file_in_place = shell.current_dir.join(file);
        let mut bundle: OsString = file_in_place.clone().into();
        bundle.push(BUNDLE);
        let copies =
            copied(&file_in_place).and_then(|copy| Ok((copy, copied(Path::new(&bundle))?)));
        let (copy, bundle) = copies.map_err(failed)?;
        let program = cosign(shell).ok_or(SavedPlanError::NoCosign)?;
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
        let (ended, output) = run(command).map_err(failed)?;
        if ended {
            return Ok(Some(copy));
        }
        Err(SavedPlanError::NotSigned { file: file.to_owned(), identity: identity.clone(), output }
            .into())
    }
}

/// A copy that only this user can write.
fn copied(file: &Path) -> io::Result<NamedTempFile> {
    let mut copy = NamedTempFile::new()?;
    io::copy(&mut fs::File::open(file)?, &mut copy)?;
    copy.flush()?;
    Ok(copy)
}

/// The path of cosign, searched in `PATH`.
fn cosign(shell: &Shell) -> Option<PathBuf> {
    search_path::find(shell.variable("PATH")?, COSIGN)
}

/// Runs a program: whether it succeeded, and the start of its standard error.
fn run(mut command: Command) -> io::Result<(bool, String)> {
    let mut stderr = tempfile()?;
    command.stderr(stderr.try_clone()?);
    let ended = wait_for_child(command.spawn()?, TIMEOUT)?;
    stderr.rewind()?;
    let output = String::from_utf8_lossy(&read_all(&mut stderr)?).trim().to_owned();
    let output = output.chars().take(QUOTED).collect();
    match ended {
        Some(status) => Ok((status.success(), output)),
        None => Ok((false, format!("cosign did not finish within {} s", TIMEOUT.as_secs()))),
    }
}

fn read_all(file: &mut fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(file, &mut bytes)?;
    Ok(bytes)
}
