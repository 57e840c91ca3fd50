//! The file of a saved plan. Not here: what a run takes from it (`commands::apply::saved`).

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Error, SavedPlanError};
use super::file_digest::FileDigest;
use super::shell::Shell;
use super::signature::SignatureFlags;
use planner::plan::Plan;

/// The content of a file, which was read only once: what is checked is what is used.
pub(super) struct PlanFile {
    file: PathBuf,
    text: Vec<u8>,
}

impl PlanFile {
    /// Reads a file, or the copy of it whose signature was checked, if one is required.
    ///
    /// # Errors
    /// The file cannot be read, or is not signed as required.
    pub(super) fn read(
        file: &Path,
        signature: &SignatureFlags,
        shell: &Shell,
    ) -> Result<Self, Error> {
        let signed = signature.checked(file, shell)?;
        let place = signed
            .as_ref()
            .map_or_else(|| shell.current_dir.join(file), |copy| copy.path().to_owned());
        let text = fs::read(place)
            .map_err(|source| SavedPlanError::Open { file: file.to_owned(), source })?;
        Ok(Self { file: file.to_owned(), text })
    }

    /// The digest of the file, as `ds-plan --out` prints it.
    pub(super) fn digest(&self) -> FileDigest {
        FileDigest::of(&self.text)
    }

    /// The plan in it.
    ///
    /// # Errors
    /// The file is not a plan.
    pub(super) fn plan(&self) -> Result<Plan, Error> {
        let Self { file, text } = self;
        let plan = serde_json::from_slice(text);
        Ok(plan.map_err(|source| SavedPlanError::NotAPlan { file: file.clone(), source })?)
    }
}
