//! From flags to what the commands work on: the manifests that were asked for.
//!
//! Reading is all or nothing. Not here: the cluster (`connection`), and what is made of either.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::error::{Error, Place};
use super::flags::{NarrowFlags, SourceFlags, Validate};
use super::shell::Shell;
use super::warnings;
use crate::manifest::{self, FieldValidation};
use crate::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, Labels, ManifestFile, NamespaceName,
};
use crate::plan::{SourceInfo, Warning};
use crate::source::{
    self, FETCH_TIMEOUT, FilesVersion, Git, GitRequest, KUSTOMIZE_TIMEOUT, Kustomize, Request,
    Surroundings,
};

/// What the source asks for.
#[derive(Debug)]
pub(super) struct Desired {
    /// The DaemonSets that the command is about; at least one.
    pub(super) daemon_sets: Vec<DesiredDaemonSet>,
    /// Namespaces that the source creates beside them.
    pub(super) namespaces: BTreeSet<NamespaceName>,
    /// What the merge base with `--base` asks for.
    pub(super) base: Option<Vec<DesiredDaemonSet>>,
    /// Where they came from.
    pub(super) source: SourceInfo,
    /// Which version plain files are; `None` for those of a commit.
    pub(super) version: Option<FilesVersion>,
    /// What was noticed on the way.
    pub(super) warnings: Vec<Warning>,
}

/// Reads the manifests, all of them, and keeps the DaemonSets that the command is about.
///
/// With a `base`, policies are read from there, so that a pull request cannot loosen the policy
/// that judges it; those that `--policy` names count in any case.
pub(super) fn desired(
    flags: &SourceFlags,
    base: Option<&str>,
    selection: &Selection<'_>,
    default_namespace: NamespaceName,
    shell: &Shell,
) -> Result<Desired, Error> {
    let read = read_source(&request(flags, None), shell)?;
    let mut warnings = warnings::of_source(&read);
    if read.files.is_empty() {
        // Folders that must be rendered may be why there is nothing: say so before failing.
        warnings::print(&warnings, shell.printer);
        return Err(Error::NoDaemonSet { files: read.passed_over });
    }
    let validate = field_validation(flags.validate);
    let mut options = manifest::Options { default_namespace, validate, policies: None };
    let base = base.map(|revision| Base::read(revision, flags, &options, shell)).transpose()?;
    let policies = read_policies(&flags.policy, shell)?;
    let is_plain = read.origin.commit.is_none();
    let version = is_plain.then(|| FilesVersion::of(&read.files, &shell.current_dir));
    let mut files = read.files;
    match &base {
        Some(base) => options.policies = Some([&base.files[..], &policies].concat()),
        None => files.extend(policies),
    }
    let desired = manifest::read(&files, &options)?;
    warnings.extend(warnings::of_manifests(&desired));
    let source::Origin { repository, commit, paths } = read.origin;
    let (commit, subject) = commit.map(|commit| (commit.id, commit.subject)).unzip();
    let base_commit = base.as_ref().and_then(|base| base.commit.clone());
    Ok(Desired {
        daemon_sets: managed_by(flags, selection.narrow_to_some(desired.daemon_sets)?),
        namespaces: desired.namespaces,
        base: base.map(|base| base.daemon_sets),
        source: SourceInfo {
            repository,
            commit,
            subject,
            base: base_commit,
            paths,
            id: None,
            prune: None,
        },
        version,
        warnings,
    })
}

/// What the command line says counts for all of them.
fn managed_by(flags: &SourceFlags, mut all: Vec<DesiredDaemonSet>) -> Vec<DesiredDaemonSet> {
    if let Some(flag) = flags.managed_by {
        for one in &mut all {
            one.managed_by = flag.into();
        }
    }
    all
}

/// The commit where a pull request branched off.
struct Base {
    commit: Option<String>,
    files: Vec<ManifestFile>,
    daemon_sets: Vec<DesiredDaemonSet>,
}

impl Base {
    fn read(
        revision: &str,
        flags: &SourceFlags,
        options: &manifest::Options,
        shell: &Shell,
    ) -> Result<Self, Error> {
        let read = match read_source(&request(flags, Some(revision)), shell) {
            // The pull request brings the folder, or makes the first kustomization of it.
            Err(Error::Source(source::Error::PathNotInRevision { .. })) => source::Read::default(),
            Err(Error::Source(source::Error::NotAKustomization { .. }))
                if flags.kustomize.is_some() =>
            {
                source::Read::default()
            }
            read => read?,
        };
        let daemon_sets = match manifest::read(&read.files, options) {
            Ok(desired) => desired.daemon_sets,
            // No DaemonSet at all: the pull request brings the first one.
            Err(errors) if errors.iter().all(|error| error.place().is_none()) => Vec::new(),
            Err(errors) => return Err(Error::Base { revision: revision.to_owned(), errors }),
        };
        let commit = read.origin.commit.map(|commit| commit.id);
        Ok(Self { commit, files: read.files, daemon_sets })
    }
}

/// The files that `--policy` names.
fn read_policies(names: &[OsString], shell: &Shell) -> Result<Vec<ManifestFile>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let names = names.iter().cloned().map(Into::into).collect();
    Ok(read_source(&Request::Files { names, recursive: false }, shell)?.files)
}

fn read_source(request: &Request, shell: &Shell) -> Result<source::Read, Error> {
    let mut around = Surroundings {
        current_dir: shell.current_dir.clone(),
        cache_dir: shell.cache_dir(),
        stdin: &mut std::io::stdin().lock(),
        git: git(shell),
        kustomize: kustomize(shell),
    };
    Ok(source::read(request, &manifest::is_read, &mut around)?)
}

fn request(flags: &SourceFlags, base: Option<&str>) -> Request {
    let SourceFlags {
        repo,
        rev,
        path,
        kustomize,
        allow_kustomize: _, // clap has seen to it
        filename,
        recursive,
        policy: _,
        validate: _,
        managed_by: _,
    } = flags.clone();
    if filename.is_empty() {
        return Request::Git(GitRequest {
            repository: repo,
            revision: rev,
            merge_base_with: base.map(str::to_owned),
            paths: path,
            kustomize,
        });
    }
    Request::Files { names: filename.into_iter().map(Into::into).collect(), recursive }
}

fn git(shell: &Shell) -> Git {
    Git {
        program: "git".into(),
        environment: shell.environment.clone().into_iter().collect(),
        terminal: shell.terminal,
        timeout: FETCH_TIMEOUT,
    }
}

fn kustomize(shell: &Shell) -> Kustomize {
    Kustomize {
        search: shell.variable("PATH").map(Into::into),
        timeout: KUSTOMIZE_TIMEOUT,
        parse: |bytes| manifest::single_document(bytes).map_err(|error| error.to_string()),
    }
}

fn field_validation(flag: Validate) -> FieldValidation {
    match flag {
        Validate::Strict => FieldValidation::Strict,
        Validate::Warn => FieldValidation::Warn,
        Validate::Ignore => FieldValidation::Ignore,
    }
}

/// Which DaemonSets a command is about: `-n`, `-l` and names, all of which must fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    /// `-n`
    pub(super) namespace: Option<&'a NamespaceName>,
    /// Names and `-l`
    pub(super) flags: &'a NarrowFlags,
    /// Where they are looked for.
    pub(super) place: Place,
}

/// What a selection looks at.
pub(super) trait Selectable {
    /// Namespace and name.
    fn key(&self) -> &DaemonSetKey;
    /// Its labels.
    fn labels(&self) -> &Labels;
}

impl Selectable for DesiredDaemonSet {
    fn key(&self) -> &DaemonSetKey {
        &self.key
    }
    fn labels(&self) -> &Labels {
        &self.labels
    }
}

impl Selectable for &DaemonSet {
    fn key(&self) -> &DaemonSetKey {
        &self.key
    }
    fn labels(&self) -> &Labels {
        &self.labels
    }
}

impl Selection<'_> {
    /// Keeps what was asked for; a name that is not there is an error.
    pub(super) fn narrow<T: Selectable>(&self, mut all: Vec<T>) -> Result<Vec<T>, Error> {
        let known: Vec<DaemonSetKey> = all.iter().map(T::key).cloned().collect();
        let names = self.flags.names.iter();
        let missing: Vec<_> = names.filter(|name| !known.contains(name)).cloned().collect();
        if !missing.is_empty() {
            return Err(Error::NotFound { missing, place: self.place, known });
        }
        all.retain(|one| self.covers(one));
        Ok(all)
    }

    /// As [`narrow`](Self::narrow); and to be left with nothing is an error too, because that is a
    /// typing mistake more often than not, and would look like a fleet with nothing to do.
    fn narrow_to_some<T: Selectable>(&self, all: Vec<T>) -> Result<Vec<T>, Error> {
        let known: Vec<DaemonSetKey> = all.iter().map(T::key).cloned().collect();
        let left = self.narrow(all)?;
        if left.is_empty() {
            return Err(Error::NothingSelected { known, place: self.place });
        }
        Ok(left)
    }

    fn covers(&self, one: &impl Selectable) -> bool {
        let NarrowFlags { names, selector } = self.flags;
        self.namespace.is_none_or(|namespace| one.key().namespace == *namespace)
            && (names.is_empty() || names.contains(one.key()))
            && selector.as_ref().is_none_or(|selector| selector.matches(one.labels()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::label_selector;

    struct Named(DaemonSetKey, Labels);

    impl Selectable for Named {
        fn key(&self) -> &DaemonSetKey {
            &self.0
        }
        fn labels(&self) -> &Labels {
            &self.1
        }
    }

    #[test]
    fn everything_that_was_asked_for_must_fit() {
        let fleet = || {
            let tiers = [("log/agent", "node"), ("log/gpu", "gpu"), ("net/agent", "node")];
            let named = |(key, tier): (&str, &str)| {
                Named(key.parse().unwrap(), [("tier", tier)].into_iter().collect())
            };
            tiers.map(named).into_iter().collect::<Vec<_>>()
        };
        for (namespace, names, selector, want) in [
            (None, vec![], "", Ok("log/agent log/gpu net/agent")),
            (Some("log"), vec![], "", Ok("log/agent log/gpu")),
            (Some("log"), vec![], "tier=node", Ok("log/agent")),
            (None, vec!["net/agent"], "", Ok("net/agent")),
            (None, vec![], "tier!=node", Ok("log/gpu")),
            (None, vec!["net/gpu"], "", Err("DaemonSet net/gpu not found in the manifests")),
            (Some("log"), vec!["net/agent"], "", Err("no DaemonSet in the manifests is left")),
            (Some("none"), vec![], "", Err("no DaemonSet in the manifests is left")),
        ] {
            let namespace = namespace.map(NamespaceName::from);
            let flags = NarrowFlags {
                names: names.iter().map(|name| name.parse().unwrap()).collect(),
                selector: Some(label_selector::parse(selector).unwrap()),
            };
            let selection =
                Selection { namespace: namespace.as_ref(), flags: &flags, place: Place::Manifests };
            let narrowed = selection.narrow_to_some(fleet()).map(|kept| {
                let names: Vec<_> = kept.iter().map(|one| one.0.to_string()).collect();
                names.join(" ")
            });
            match (narrowed, want) {
                (Ok(kept), want) => assert_eq!(Ok(kept.as_str()), want),
                (Err(error), Err(want)) => assert!(error.to_string().starts_with(want), "{error}"),
                (Err(error), Ok(want)) => panic!("{error} instead of {want}"),
            }
        }
    }
}
