//! The policies that apply to DaemonSets: a pull request does not choose the policy that applies to
//! it.
//!
//! With `--base` or `--policy-from`, policies are read at the tip of the trusted branch, and select
//! by the labels that a DaemonSet has there and in the cluster, too. Not here: parsing
//! (`manifest`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;

use super::read::{or_nothing, read_instead, read_source, request};
use crate::error::Error;
use crate::flags::{ManagedByFlag, SourceFlags};
use crate::shell::Shell;
use daemonset::model::{
    DaemonSetKey, DesiredDaemonSet, Labels, LoosenedPolicy, ManifestFile, RolloutPolicy, Snapshot,
};
use manifest::{self, Policies, Precedence};
use source::{self, FileName, GitRequest, Instead, Request};

/// The policies in these files, for commands that read no other source.
///
/// # Errors
/// A file cannot be read, or has an invalid policy.
pub(crate) fn of_files(files: &[OsString], shell: &Shell) -> Result<Policies, Error> {
    if files.is_empty() {
        return Ok(Policies::default());
    }
    let names = files.iter().cloned().map(Into::into).collect();
    let read = read_source(&Request::Files { names, recursive: false }, false, shell)?;
    Ok(manifest::read_policies(&read.files)?)
}

/// The policies that the flags of a source name, for commands that show the live cluster: those of
/// the source, if a flag names one, and of `--policy`. None without such a flag.
///
/// # Errors
/// A file cannot be read, or has an invalid policy.
pub(crate) fn of_source(flags: &SourceFlags, shell: &Shell) -> Result<Policies, Error> {
    if let Some(revision) = &flags.policy_from {
        return at_tip(revision, flags, shell);
    }
    if !flags.is_given() {
        return of_files(&flags.policy, shell);
    }
    let mut files = read_source(&request(flags, None), false, shell)?.files;
    files.extend(named(flags, shell)?);
    Ok(manifest::read_policies(&files)?)
}

/// The policies that select these live DaemonSets, by their labels.
///
/// # Errors
/// Two policies select one DaemonSet.
pub(crate) fn of_live(
    policies: &Policies,
    snapshot: &Snapshot,
    keys: &BTreeSet<DaemonSetKey>,
) -> Result<BTreeMap<DaemonSetKey, Arc<RolloutPolicy>>, Error> {
    let mut found = BTreeMap::new();
    for live in snapshot.daemon_sets.iter().filter(|live| keys.contains(&live.key)) {
        if let Some(policy) = policies.of(&live.key, &[&live.labels])? {
            found.insert(live.key.clone(), policy);
        }
    }
    Ok(found)
}

/// Whether a step of the policy needs an approval.
pub(crate) fn asks(policy: &RolloutPolicy) -> bool {
    policy.spec.steps.iter().any(|step| step.approve)
}

/// Reads the files that `--policy` names from disk.
pub(super) fn named(flags: &SourceFlags, shell: &Shell) -> Result<Vec<ManifestFile>, Error> {
    if flags.policy.is_empty() {
        return Ok(Vec::new());
    }
    let names = flags.policy.iter().cloned().map(Into::into).collect();
    Ok(read_source(&Request::Files { names, recursive: false }, false, shell)?.files)
}

/// Reads the same files at another commit. Files outside of the repository belong to the pipeline,
/// and are read from disk.
pub(super) fn named_at(
    instead: impl Fn() -> Instead,
    flags: &SourceFlags,
    shell: &Shell,
) -> Result<Vec<ManifestFile>, Error> {
    let mut files = Vec::new();
    for name in &flags.policy {
        let FileName::Path(path) = name.clone().into() else {
            let stdin = Request::Files { names: vec![FileName::StandardInput], recursive: false };
            files.extend(read_source(&stdin, false, shell)?.files);
            continue;
        };
        let at_commit = Request::Git(GitRequest {
            repository: flags.repo.clone(),
            revision: flags.rev.clone(),
            require_ref: None,
            instead: Some(instead()),
            paths: vec![shell.current_dir.join(&path)],
            kustomize: None,
        });
        let read = match or_nothing(read_source(&at_commit, false, shell), flags) {
            Err(Error::Source(source::Error::PathOutside { .. })) => {
                let names = vec![FileName::Path(path)];
                read_source(&Request::Files { names, recursive: false }, false, shell)?
            }
            read => read?,
        };
        files.extend(read.files);
    }
    Ok(files)
}

/// The policies at the tip of a trusted branch, or at another revision of the command line.
pub(super) fn at_tip(
    revision: &str,
    flags: &SourceFlags,
    shell: &Shell,
) -> Result<Policies, Error> {
    let instead = || Instead::Tip(revision.to_owned());
    let mut files = read_instead(flags, instead, false, shell)?.files;
    files.extend(named_at(instead, flags, shell)?);
    let failed = |errors| Error::Base { revision: revision.to_owned(), errors };
    manifest::read_policies(&files).map_err(failed)
}

/// Assigns policies to DaemonSets.
#[derive(Debug, Default)]
pub(crate) struct PolicyAssignment {
    /// The policies that apply.
    policies: Policies,
    /// The policies in the pull request, and those at its merge base.
    changed: Option<(Policies, Policies)>,
    /// `--managed-by`, which overrides the policies.
    managed_by: Option<ManagedByFlag>,
}

impl PolicyAssignment {
    pub(super) fn new(
        policies: Policies,
        changed: Option<(Policies, Policies)>,
        managed_by: Option<ManagedByFlag>,
    ) -> Self {
        Self { policies, changed, managed_by }
    }

    /// Assigns each DaemonSet its policy, by its labels in the source, at the base and live.
    ///
    /// # Errors
    /// Two policies select one DaemonSet.
    pub(crate) fn apply(
        &self,
        daemon_sets: &mut [DesiredDaemonSet],
        base: &[DesiredDaemonSet],
        snapshot: Option<&Snapshot>,
    ) -> Result<(), Error> {
        let live = live_labels(snapshot);
        for one in daemon_sets {
            let at_base = base.iter().find(|it| it.key == one.key).map(|it| &it.labels);
            let live = live.get(&one.key).copied();
            let labels: Vec<&Labels> =
                [Some(&one.labels), at_base, live].into_iter().flatten().collect();
            let policy = self.policies.of(&one.key, &labels)?;
            one.loosened = match &self.changed {
                None => None,
                Some((own, before)) => {
                    let before = before.of(&one.key, &[at_base.unwrap_or(&one.labels)])?;
                    let after = own.of(&one.key, &[&one.labels])?;
                    LoosenedPolicy::of(before.as_deref(), after)
                }
            };
            let managed_by = policy.as_ref().map(|policy| policy.spec.managed_by);
            one.managed_by = match self.managed_by {
                Some(flag) => flag.into(),
                None => managed_by.unwrap_or_default(),
            };
            one.policy = policy;
        }
        Ok(())
    }

    /// Which of all DaemonSets of the source come before others, by the same labels.
    ///
    /// # Errors
    /// A DaemonSet comes after itself, or two policies select one that the source does not have.
    pub(crate) fn precedence<'a>(
        &self,
        all: impl IntoIterator<Item = &'a DesiredDaemonSet>,
        base: &'a [DesiredDaemonSet],
        snapshot: Option<&'a Snapshot>,
    ) -> Result<Precedence, Error> {
        let by_key = |all: &mut dyn Iterator<Item = &'a DesiredDaemonSet>| {
            all.map(|one| (&one.key, &one.labels)).collect::<BTreeMap<_, _>>()
        };
        let (own, base) = (by_key(&mut all.into_iter()), by_key(&mut base.iter()));
        let live = live_labels(snapshot);
        let labels = |key: &DaemonSetKey| -> Vec<&'a Labels> {
            [&own, &base, &live].into_iter().filter_map(|all| all.get(key).copied()).collect()
        };
        Ok(self.policies.precedence(own.keys().copied(), labels)?)
    }
}

/// The labels of the live DaemonSets.
fn live_labels(snapshot: Option<&Snapshot>) -> BTreeMap<&DaemonSetKey, &Labels> {
    let live = snapshot.map(|snapshot| &snapshot.daemon_sets[..]).unwrap_or_default();
    live.iter().map(|one| (&one.key, &one.labels)).collect()
}
