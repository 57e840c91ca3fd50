//! A saved plan: it records what was approved, and is checked before it is used.
//!
//! Only the approved changes are read from the file: guards, manifests and their origin are
//! determined again. Not here: comparing the approved changes with the current ones
//! (`plan::stale`).

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueHint;

use crate::error::{Error, SavedPlanError};
use crate::file_digest::FileDigest;
use crate::flags::SourceFlags;
use crate::saved_plan::PlanFile;
use crate::shell::Shell;
use crate::signature::SignatureFlags;
use daemonset::model::{DaemonSetKey, is_commit_id};
use planner::plan::{self, Binding, DaemonSetPlan, Plan, SourceInfo};

/// The flags for a saved plan.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct SavedFlags {
    /// Apply this plan, which `ds-plan --out` saved, if it still matches the cluster
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["names", "selector", "rev", "source_id", "resume"])]
    pub(super) plan: Option<PathBuf>,

    /// The SHA-256 of that file, as `ds-plan --out` has printed it; any other file is refused
    #[arg(long, value_name = "DIGEST", requires = "plan")]
    sha256: Option<FileDigest>,

    /// Replace exactly the pods in the saved plan, or nothing
    #[arg(long, requires = "plan")]
    strict: bool,
}

impl SavedFlags {
    /// The parts of the plan that must not change.
    pub(super) fn binding(&self) -> Binding {
        if self.strict { Binding::Pods } else { Binding::Reasons }
    }

    /// Reads the saved plan, if `--plan` is given.
    ///
    /// # Errors
    /// The file cannot be read, or its digest or signature is not the required one.
    pub(super) fn read(
        &self,
        signature: &SignatureFlags,
        shell: &Shell,
    ) -> Result<Option<SavedPlan>, Error> {
        let Some(file) = &self.plan else { return Ok(None) };
        let read = PlanFile::read(file, signature, shell)?;
        let found = read.digest();
        if let Some(approved) = self.sha256.as_ref().filter(|approved| **approved != found) {
            let (file, approved) = (file.clone(), approved.clone());
            return Err(SavedPlanError::OtherDigest { file, approved, found }.into());
        }
        let saved = SavedPlan { file: file.clone(), plan: read.plan()? };
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
    /// Refuses a branch or an expression: they can name another commit later.
    fn check_commit(&self) -> Result<(), Error> {
        match &self.plan.source.commit {
            Some(commit) if !is_commit_id(commit) => Err(SavedPlanError::NoFullCommit {
                file: self.file.clone(),
                commit: commit.clone(),
            }
            .into()),
            Some(_) | None => Ok(()),
        }
    }

    /// The DaemonSets of the plan; none if it prunes, because that selects the whole source.
    pub(super) fn names(&self) -> Vec<DaemonSetKey> {
        match self.plan.source.prune {
            Some(_) => Vec::new(),
            None => self.plan.daemon_sets.iter().map(DaemonSetPlan::key).collect(),
        }
    }

    /// The location of its manifests: its commit, or the files given with `-f`.
    ///
    /// # Errors
    /// It is a plan of files, and `-f` is not given.
    pub(super) fn source(&self, flags: &SourceFlags) -> Result<SourceFlags, Error> {
        let mut flags = flags.clone();
        if !flags.filename.is_empty() {
            return Ok(flags);
        }
        let SourceInfo { commit, paths, .. } = &self.plan.source;
        let Some(commit) = commit else {
            let (file, paths) = (self.file.clone(), paths.clone());
            return Err(SavedPlanError::OfFiles { file, paths }.into());
        };
        flags.rev = Some(commit.clone());
        if flags.path.is_empty() && flags.kustomize.is_none() {
            flags.path = paths.iter().map(PathBuf::from).collect();
        }
        Ok(flags)
    }

    /// Replaces the error that there is no repository here: the plan was made from one.
    pub(super) fn repository_named(&self, error: Error) -> Error {
        match error {
            Error::Source(source::Error::NoRepository { folder }) => {
                SavedPlanError::NoRepository { file: self.file.clone(), folder }.into()
            }
            error => error,
        }
    }

    /// Checks that the manifests that were read are those of its commit.
    ///
    /// # Errors
    /// They are not: the id could be that of a tag.
    pub(super) fn is_of(&self, read: &SourceInfo) -> Result<(), Error> {
        match (&self.plan.source.commit, &read.commit) {
            (Some(planned), Some(read)) if planned != read => Err(SavedPlanError::NoFullCommit {
                file: self.file.clone(),
                commit: planned.clone(),
            }
            .into()),
            _ => Ok(()),
        }
    }

    /// The approved plan: the DaemonSets of the file, and everything else from `now`. Each apply of
    /// a DaemonSet checks whether its part is stale. Stale parts are not applied, so their guards
    /// are removed from `now`.
    ///
    /// # Errors
    /// The plan is for another cluster.
    pub(super) fn approved(self, now: &mut Plan, binding: Binding) -> Result<Plan, Error> {
        let Self { file, plan } = self;
        let (planned, found) = (plan.cluster.uid, now.cluster.uid.clone());
        if planned.is_none() || planned != found {
            return Err(SavedPlanError::OtherCluster { file, planned, found }.into());
        }
        let approved = Plan { daemon_sets: plan.daemon_sets, ..now.clone() };
        let stale: BTreeSet<String> = plan::stale(&approved, now, binding)
            .into_iter()
            .map(|stale| stale.daemon_set.to_string())
            .collect();
        let is_stale = |name: &String| stale.contains(name);
        now.guards.retain(|guard| !guard.daemon_set.as_ref().is_some_and(is_stale));
        Ok(approved)
    }
}
