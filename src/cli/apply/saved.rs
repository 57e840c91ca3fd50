//! A saved plan: a claim of what was approved, checked before anything is made of it.
//!
//! The file says what was agreed to, and nothing else is taken from it: which guards there are, what
//! the manifests hold and where they come from are found out again. Not here: whether what would be
//! done now is still what was agreed to (`plan::stale`).

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use clap::ValueHint;

use crate::cli::error::Error;
use crate::cli::file_digest::FileDigest;
use crate::cli::flags::SourceFlags;
use crate::cli::shell::Shell;
use crate::cli::signature::SignatureFlags;
use crate::model::{DaemonSetKey, is_commit_id};
use crate::plan::{self, Binding, DaemonSetPlan, Plan, SourceInfo};

/// Which plan is carried out, and which one it has to be.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct SavedFlags {
    /// Carry out this plan, which `ds-plan --out` saved, if it still fits the cluster
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["names", "selector", "rev", "source_id", "resume"])]
    pub(super) plan: Option<PathBuf>,

    /// The SHA-256 of that file, as `ds-plan --out` has printed it; any other file is refused
    #[arg(long, value_name = "DIGEST", requires = "plan")]
    sha256: Option<FileDigest>,

    /// Of a saved plan: replace exactly the pods in it, or nothing
    #[arg(long, requires = "plan")]
    strict: bool,
}

impl SavedFlags {
    /// How much of the plan binds.
    pub(super) fn binding(&self) -> Binding {
        if self.strict { Binding::Pods } else { Binding::Reasons }
    }

    /// The plan, if one is to be carried out.
    ///
    /// # Errors
    /// It cannot be read, or is not the one that was approved.
    pub(super) fn read(
        &self,
        signature: &SignatureFlags,
        shell: &Shell,
    ) -> Result<Option<SavedPlan>, Error> {
        let Some(file) = &self.plan else { return Ok(None) };
        let signed = signature.checked(file, shell)?;
        let place = signed
            .as_ref()
            .map_or_else(|| shell.current_dir.join(file), |copy| copy.path().to_owned());
        // Read once: what is checked is what is carried out.
        let text =
            fs::read(place).map_err(|source| Error::OpenPlan { file: file.clone(), source })?;
        let found = FileDigest::of(&text);
        if let Some(approved) = self.sha256.as_ref().filter(|approved| **approved != found) {
            let (file, approved) = (file.clone(), approved.clone());
            return Err(Error::PlanDigest { file, approved, found });
        }
        let plan: Plan = serde_json::from_slice(&text)
            .map_err(|source| Error::PlanFile { file: file.clone(), source })?;
        let saved = SavedPlan { file: file.clone(), plan };
        saved.check_commit()?;
        Ok(Some(saved))
    }
}

/// A plan from a file.
pub(super) struct SavedPlan {
    file: PathBuf,
    pub(super) plan: Plan,
}

impl SavedPlan {
    /// A branch, or an expression, is another commit tomorrow.
    fn check_commit(&self) -> Result<(), Error> {
        match &self.plan.source.commit {
            Some(commit) if !is_commit_id(commit) => {
                Err(Error::PlanCommit { file: self.file.clone(), commit: commit.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The DaemonSets that it is about. One that deletes is about all of its source.
    pub(super) fn names(&self) -> Vec<DaemonSetKey> {
        match self.plan.source.prune {
            Some(_) => Vec::new(),
            None => self.plan.daemon_sets.iter().map(DaemonSetPlan::key).collect(),
        }
    }

    /// Where its manifests are: at its commit, unless they are files.
    ///
    /// # Errors
    /// It is of files, and none are given.
    pub(super) fn source(&self, flags: &SourceFlags) -> Result<SourceFlags, Error> {
        let mut flags = flags.clone();
        if !flags.filename.is_empty() {
            return Ok(flags);
        }
        let SourceInfo { commit: Some(commit), paths, .. } = &self.plan.source else {
            return Err(Error::PlanOfFiles { file: self.file.clone() });
        };
        flags.rev = Some(commit.clone());
        if flags.path.is_empty() && flags.kustomize.is_none() {
            flags.path = paths.iter().map(PathBuf::from).collect();
        }
        Ok(flags)
    }

    /// The manifests that were read are those of its commit.
    ///
    /// # Errors
    /// They are not: the id is that of a tag, say.
    pub(super) fn is_of(&self, read: &SourceInfo) -> Result<(), Error> {
        match (&self.plan.source.commit, &read.commit) {
            (Some(planned), Some(read)) if planned != read => {
                Err(Error::PlanCommit { file: self.file.clone(), commit: planned.clone() })
            }
            _ => Ok(()),
        }
    }

    /// What was agreed to: of the file only what becomes of each DaemonSet, all else as it was found
    /// out again. Whether that is still what would be done, each DaemonSet's turn finds out; what is
    /// not will not be done, so no guard need speak of it.
    ///
    /// # Errors
    /// It is a plan of another cluster.
    pub(super) fn agreed(self, now: &mut Plan, binding: Binding) -> Result<Plan, Error> {
        let Self { file, plan } = self;
        let (planned, found) = (plan.cluster.uid, now.cluster.uid.clone());
        if planned.is_none() || planned != found {
            return Err(Error::OtherCluster { file, planned, found });
        }
        let agreed = Plan { daemon_sets: plan.daemon_sets, ..now.clone() };
        let stale: BTreeSet<String> = plan::stale(&agreed, now, binding)
            .into_iter()
            .map(|stale| stale.daemon_set.to_string())
            .collect();
        let is_stale = |name: &String| stale.contains(name);
        now.guards.retain(|guard| !guard.daemon_set.as_ref().is_some_and(is_stale));
        Ok(agreed)
    }
}
