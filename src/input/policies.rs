//! The policies that apply to DaemonSets: a pull request does not choose the policy that applies to
//! it.
//!
//! With `--base` or `--policy-from`, policies are read at the tip of the trusted branch, and select
//! by the labels that a DaemonSet has there and in the cluster, too. Not here: parsing
//! (`manifest`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::slice;
use std::sync::Arc;

use super::read::{or_nothing, read_instead, read_source, request};
use crate::error::{Error, PolicyError};
use crate::flags::{ManagedByFlag, SourceFlags};
use crate::shell::Shell;
use crate::warnings;
use daemonset::model::{
    DaemonSetKey, DesiredDaemonSet, Labels, LoosenedPolicy, ManifestFile, RolloutPolicy, Snapshot,
};
use manifest::{self, Policies, Precedence};
use planner::plan::Warning;
use source::{self, FileName, GitRequest, Instead, Request};

/// The policies in these files, for commands that read no other source.
///
/// # Errors
/// A file cannot be read, or has no policy or an invalid one.
pub(crate) fn of_files(files: &[OsString], shell: &Shell) -> Result<Policies, Error> {
    Ok(manifest::read_policies(&on_disk(files, shell)?)?)
}

/// The policies that the flags of a source name, for commands that show the live cluster: those of
/// the source, if a flag names one, and of `--policy`. None without such a flag.
///
/// # Errors
/// A file cannot be read, or has an invalid policy, or there is none where a flag says that there
/// is one.
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

/// Reads the files that `--policy` names from disk. With `--policy-from`, one may exist only at
/// that revision.
pub(super) fn named(flags: &SourceFlags, shell: &Shell) -> Result<Vec<ManifestFile>, Error> {
    if flags.policy_from.is_none() {
        return on_disk(&flags.policy, shell);
    }
    let is_there = |name: &&OsString| *name == "-" || shell.current_dir.join(name).exists();
    let names: Vec<OsString> = flags.policy.iter().filter(is_there).cloned().collect();
    on_disk(&names, shell)
}

/// Reads files one by one, so that each is known to have a policy. A file that is reached twice
/// counts once.
fn on_disk(names: &[OsString], shell: &Shell) -> Result<Vec<ManifestFile>, Error> {
    if names.iter().filter(|name| *name == "-").count() > 1 {
        return Err(Error::Source(source::Error::StandardInputTwice));
    }
    let mut files: Vec<ManifestFile> = Vec::new();
    for name in names {
        let request = Request::Files { names: vec![name.clone().into()], recursive: false };
        let read = read_source(&request, false, shell)?.files;
        check_has_policy(&read, name, None)?;
        let is_new = |file: &ManifestFile| files.iter().all(|it| it.bytes != file.bytes);
        let new: Vec<ManifestFile> = read.into_iter().filter(is_new).collect();
        files.extend(new);
    }
    Ok(files)
}

/// Checks that what a name of `--policy` stands for has a policy: otherwise, a misspelled kind
/// would mean no limits. Invalid policies are reported later, with those of all other files.
fn check_has_policy(
    files: &[ManifestFile],
    name: &OsStr,
    revision: Option<&str>,
) -> Result<(), Error> {
    if !manifest::read_policies(files).is_ok_and(|policies| policies.is_empty()) {
        return Ok(());
    }
    let file = if name == "-" { "standard input".into() } else { name.to_string_lossy() };
    let revision = revision.map(str::to_owned);
    Err(PolicyError::NoneIn { file: file.into_owned(), revision }.into())
}

/// Reads the same files at another commit. Files outside of the repository belong to the pipeline,
/// and are read from disk. A file that the commit does not have is an error with `--policy-from`;
/// with `--base` alone, the pull request adds it.
pub(super) fn named_at(
    instead: impl Fn() -> Instead,
    flags: &SourceFlags,
    shell: &Shell,
) -> Result<Vec<ManifestFile>, Error> {
    let mut files = Vec::new();
    for name in &flags.policy {
        let FileName::Path(path) = name.clone().into() else {
            files.extend(on_disk(slice::from_ref(name), shell)?);
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
        let read = read_source(&at_commit, false, shell);
        if matches!(read, Err(Error::Source(source::Error::PathOutside { .. }))) {
            files.extend(on_disk(slice::from_ref(name), shell)?);
            continue;
        }
        let is_missing =
            matches!(read, Err(Error::Source(source::Error::PathNotInRevision { .. })));
        let found = match instead() {
            Instead::Tip(revision) if flags.policy_from.is_some() => {
                if is_missing {
                    return Err(PolicyError::NotIn { file: path, revision }.into());
                }
                let read = read?.files;
                check_has_policy(&read, name, Some(&revision))?;
                read
            }
            Instead::Tip(revision) if is_missing => {
                warn_not_in(name, &revision, shell);
                Vec::new()
            }
            Instead::Tip(_) | Instead::MergeBase(_) => or_nothing(read, flags)?.files,
        };
        files.extend(found);
    }
    Ok(files)
}

/// Warns about a file of `--policy` that the target branch does not have: its policies do not apply
/// yet.
fn warn_not_in(name: &OsStr, revision: &str, shell: &Shell) {
    let warning = Warning {
        code: "policyNotInBase".to_owned(),
        message: format!(
            "{} is not in revision `{revision}`: its policies apply only when it is merged",
            name.display()
        ),
        daemon_set: None,
        nodes: Vec::new(),
    };
    warnings::print(&[warning], shell.printer);
}

/// The policies at the tip of a trusted branch, or at another revision of the command line, which
/// must have some if `--policy-from` names it.
pub(super) fn at_tip(
    revision: &str,
    flags: &SourceFlags,
    shell: &Shell,
) -> Result<Policies, Error> {
    let instead = || Instead::Tip(revision.to_owned());
    let mut files = read_instead(flags, instead, false, shell)?.files;
    files.extend(named_at(instead, flags, shell)?);
    let policies = at(revision, &files)?;
    if flags.policy_from.is_some() && policies.is_empty() {
        let (revision, paths) = (revision.to_owned(), flags.path.clone());
        return Err(PolicyError::NoneAt { revision, paths }.into());
    }
    Ok(policies)
}

/// The policies in the files of another revision.
pub(super) fn at(revision: &str, files: &[ManifestFile]) -> Result<Policies, Error> {
    let failed = |errors| PolicyError::InvalidAt { revision: revision.to_owned(), errors };
    Ok(manifest::read_policies(files).map_err(failed)?)
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
