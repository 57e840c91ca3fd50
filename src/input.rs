//! Reads the manifests that the flags name, and selects DaemonSets.
//!
//! One invalid manifest fails the whole read. Not here: reading the cluster (`connection`).

pub(crate) mod policies;
mod read;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use policies::PolicyAssignment;

use self::read::{read_and_count, read_instead, request};
use super::error::{Error, Place};
use super::flags::{NarrowFlags, SourceFlags, Validate, name};
use super::shell::Shell;
use super::warnings;
use cluster::Scope;
use daemonset::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, LabelSelector, Labels, NamespaceName,
    Place as ManifestPlace, Snapshot,
};
use manifest::{self, FieldValidation, NotObjects, Policies, Precedence};
use planner::plan::{SourceInfo, Warning};
use source::{FilesVersion, Instead};

/// The content of the source.
#[derive(Debug)]
pub(super) struct Desired {
    /// The DaemonSets that are selected; at least one.
    pub(super) daemon_sets: Vec<DesiredDaemonSet>,
    /// All other DaemonSets, if any policy has `after`.
    pub(super) others: Vec<DesiredDaemonSet>,
    /// Namespaces that the source creates too, and where.
    pub(super) namespaces: BTreeMap<NamespaceName, ManifestPlace>,
    /// The DaemonSets at the merge base with `--base`.
    pub(super) base: Option<Vec<DesiredDaemonSet>>,
    /// Those of them that are selected and that the whole source no longer has.
    pub(super) removed: BTreeSet<DaemonSetKey>,
    /// The origin of the manifests.
    pub(super) source: SourceInfo,
    /// The version of plain files; `None` for files of a commit.
    pub(super) version: Option<FilesVersion>,
    /// Warnings of reading the source.
    pub(super) warnings: Vec<Warning>,
    /// Assigns policies, once the live labels are known.
    pub(super) assignment: PolicyAssignment,
}

impl Desired {
    /// Assigns each DaemonSet its policy, by its labels in the source, at the base and live.
    /// Returns which ones come before others.
    ///
    /// # Errors
    /// Two policies select one DaemonSet, or one comes after itself.
    pub(super) fn assign_policies(&mut self, snapshot: &Snapshot) -> Result<Precedence, Error> {
        let base = self.base.as_deref().unwrap_or_default();
        self.assignment.apply(&mut self.daemon_sets, base, Some(snapshot))?;
        self.assignment.apply(&mut self.others, base, Some(snapshot))?;
        let all = self.daemon_sets.iter().chain(&self.others);
        self.assignment.precedence(all, base, Some(snapshot))
    }
}

/// The way in which a command reads its source.
pub(super) struct Reading<'a> {
    /// The location of the manifests.
    pub(super) flags: &'a SourceFlags,
    /// `--base`
    pub(super) base: Option<&'a str>,
    /// Whether every file is parsed, because absence from the source matters (`--prune`).
    pub(super) every_file: bool,
    /// Namespace of manifests without one.
    pub(super) default_namespace: NamespaceName,
}

/// Reads all manifests, and keeps the DaemonSets that are selected.
///
/// With a `base`, policies are read at its revision, so that a pull request cannot loosen the
/// policy that applies to it; policies that `--policy` names always apply.
pub(super) fn desired(
    reading: Reading<'_>,
    selection: &Selection<'_>,
    shell: &Shell,
) -> Result<Desired, Error> {
    let Reading { flags, base, every_file, default_namespace } = reading;
    let mut kinds = BTreeMap::new();
    let read = read_and_count(&request(flags, None), every_file, &mut kinds, shell)?;
    let mut warnings = warnings::of_source(&read, every_file);
    if !read.files.iter().any(|file| every_file || manifest::is_read(&file.bytes)) {
        // Folders that must be rendered may be the cause: print their warnings before failing.
        warnings::print(&warnings, shell.printer);
        manifest::check_named(&read.named)?;
        let files = read.unwanted + read.files.len();
        let only = read.files.iter().chain(&read.named).find(|_| files == 1);
        let only = only.map(|file| file.path.to_string());
        return Err(Error::NoDaemonSet { files, only, kinds });
    }
    let validate = field_validation(flags.validate);
    let is_plain = read.origin.commit.is_none();
    let not_objects = if is_plain { NotObjects::Reject } else { NotObjects::Skip };
    let policies = None;
    let mut options =
        manifest::Options { default_namespace, validate, policies, every_file, not_objects };
    let version = is_plain.then(|| FilesVersion::of(&read.files, &shell.current_dir));
    let mut files = read.files;
    files.extend(policies::named(flags, shell)?);
    let base = base.map(|revision| Base::read(revision, flags, &options, shell)).transpose()?;
    let trusted = flags.policy_from.as_deref().or(base.as_ref().map(|base| base.revision.as_str()));
    options.policies =
        trusted.map(|revision| policies::at_tip(revision, flags, shell)).transpose()?;
    let desired = manifest::read_named(&files, &read.named, &options)?;
    warnings.extend(warnings::of_manifests(&desired));
    warnings
        .extend(base.as_ref().and_then(|base| warnings::invalid_at(&base.revision, &base.errors)));
    let source = source_info(read.origin, base.as_ref());
    let own = base.as_ref().map(|_| manifest::read_policies(&files)).transpose()?;
    let (of_base, base) = base.map(|base| (base.policies, base.daemon_sets)).unzip();
    let assignment = PolicyAssignment::new(desired.policies, own.zip(of_base), flags.managed_by);
    let of_base = base.as_deref().unwrap_or_default();
    let ordered = !assignment.precedence(&desired.daemon_sets, of_base, None)?.is_empty();
    let removed = selection.removed(of_base, &desired.daemon_sets);
    let (mut daemon_sets, others) = selection.parted(desired.daemon_sets, ordered)?;
    // Reading the cluster depends on the controller of each. Live labels are considered later.
    assignment.apply(&mut daemon_sets, of_base, None)?;
    Ok(Desired {
        daemon_sets,
        others,
        namespaces: desired.namespaces,
        base,
        removed,
        assignment,
        source,
        version,
        warnings,
    })
}

/// The origin of the manifests as a plan shows it.
fn source_info(origin: source::Origin, base: Option<&Base>) -> SourceInfo {
    let source::Origin { repository, commit, paths } = origin;
    let (commit, subject) = commit.map(|commit| (commit.id, commit.subject)).unzip();
    SourceInfo {
        repository,
        commit,
        subject,
        base: base.and_then(|base| base.commit.clone()),
        paths,
        id: None,
        prune: None,
        prune_namespaces: BTreeSet::new(),
    }
}

/// The commit where a pull request branched off.
struct Base {
    /// The revision in `--base`.
    revision: String,
    commit: Option<String>,
    policies: Policies,
    daemon_sets: Vec<DesiredDaemonSet>,
    /// Why other DaemonSets there are unknown.
    errors: Vec<manifest::Error>,
}

impl Base {
    fn read(
        revision: &str,
        flags: &SourceFlags,
        options: &manifest::Options,
        shell: &Shell,
    ) -> Result<Self, Error> {
        let instead = || Instead::MergeBase(revision.to_owned());
        let read = read_instead(flags, instead, options.every_file, shell)?;
        let mut files = read.files.clone();
        files.extend(policies::named_at(instead, flags, shell)?);
        let policies = policies::at(revision, &files)?;
        // What is merged already need not be valid: the pull request may correct it.
        let options = manifest::Options {
            validate: FieldValidation::Ignore,
            policies: Some(Policies::default()), // only the labels matter
            ..options.clone()
        };
        let (daemon_sets, errors) = manifest::read_valid(&read.files, &options);
        let commit = read.origin.commit.map(|commit| commit.id);
        Ok(Self { revision: revision.to_owned(), commit, policies, daemon_sets, errors })
    }
}

fn field_validation(flag: Validate) -> FieldValidation {
    match flag {
        Validate::Strict => FieldValidation::Strict,
        Validate::Warn => FieldValidation::Warn,
        Validate::Ignore => FieldValidation::Ignore,
    }
}

/// The selected DaemonSets: those that match the namespace, `-l` and the names.
#[derive(Clone, Debug)]
pub(super) struct Selection<'a> {
    /// The only namespace; `None` for all.
    pub(super) namespace: Option<&'a NamespaceName>,
    /// The names; none for all.
    pub(super) names: Vec<DaemonSetKey>,
    /// `-l`
    pub(super) selector: Option<&'a LabelSelector>,
    /// Where they are searched.
    pub(super) place: Place,
}

impl<'a> Selection<'a> {
    /// The selection that the flags make; `namespace` is that of `-n`, `default` that of names
    /// without one.
    ///
    /// # Errors
    /// A name has another namespace than `-n`.
    pub(super) fn of(
        flags: &'a NarrowFlags,
        namespace: Option<&'a NamespaceName>,
        default: &NamespaceName,
        place: Place,
    ) -> Result<Self, Error> {
        let NarrowFlags { names, selector } = flags;
        let names = name::keys(names, namespace, default)?;
        Ok(Self { namespace, names, selector: selector.as_ref(), place })
    }
}

/// An object that a selection can match.
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
    /// The namespaces to read: only those that were requested, because the user may not be
    /// permitted to read the others.
    pub(super) fn scope(&self) -> Scope {
        let names = self.names.iter().map(|name| name.namespace.clone());
        let namespaces: BTreeSet<_> = names.chain(self.namespace.cloned()).collect();
        if namespaces.is_empty() { Scope::All } else { Scope::Namespaces(namespaces) }
    }

    /// Keeps the selected DaemonSets; a name that does not exist is an error.
    pub(super) fn narrow<T: Selectable>(&self, mut all: Vec<T>) -> Result<Vec<T>, Error> {
        let known: Vec<DaemonSetKey> = all.iter().map(T::key).cloned().collect();
        let names = self.names.iter();
        let missing: Vec<_> = names.filter(|name| !known.contains(name)).cloned().collect();
        if !missing.is_empty() {
            return Err(Error::NotFound { missing, place: self.place, known });
        }
        all.retain(|one| self.covers(one));
        Ok(all)
    }

    /// The DaemonSets at the base that are selected, by their labels there, and that the source does
    /// not have any more: neither selected nor as others.
    fn removed(
        &self,
        base: &[DesiredDaemonSet],
        source: &[DesiredDaemonSet],
    ) -> BTreeSet<DaemonSetKey> {
        let declared: BTreeSet<&DaemonSetKey> = source.iter().map(|one| &one.key).collect();
        let gone = base.iter().filter(|one| !declared.contains(&one.key) && self.covers(*one));
        gone.map(|one| one.key.clone()).collect()
    }

    /// The selected DaemonSets, of which there is at least one, and all others if they matter.
    fn parted(
        &self,
        all: Vec<DesiredDaemonSet>,
        others_matter: bool,
    ) -> Result<(Vec<DesiredDaemonSet>, Vec<DesiredDaemonSet>), Error> {
        let others = all.iter().filter(|one| others_matter && !self.covers(*one)).cloned();
        let others = others.collect();
        Ok((self.narrow_to_some(all)?, others))
    }

    /// As [`narrow`](Self::narrow); an empty selection is an error too. It is mostly a typing
    /// mistake, and would look like a fleet with nothing to do.
    fn narrow_to_some<T: Selectable>(&self, all: Vec<T>) -> Result<Vec<T>, Error> {
        let known: Vec<DaemonSetKey> = all.iter().map(T::key).cloned().collect();
        let left = self.narrow(all)?;
        if left.is_empty() {
            return Err(Error::NothingSelected { known, place: self.place });
        }
        Ok(left)
    }

    fn covers(&self, one: &impl Selectable) -> bool {
        self.namespace.is_none_or(|namespace| one.key().namespace == *namespace)
            && (self.names.is_empty() || self.names.contains(one.key()))
            && self.selector.is_none_or(|selector| selector.matches(one.labels()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn namespace_names_and_labels_must_all_match() {
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
            (Some("log"), vec!["gpu"], "", Ok("log/gpu")),
            (None, vec!["agent"], "", Ok("net/agent")),
            (None, vec!["gpu"], "", Err("DaemonSet net/gpu not found in the manifests")),
            (
                Some("log"),
                vec!["net/agent"],
                "",
                Err("net/agent is not in the namespace of -n: log"),
            ),
            (Some("none"), vec![], "", Err("no DaemonSet in the manifests matches")),
        ] {
            let namespace = namespace.map(NamespaceName::from);
            let flags = NarrowFlags {
                names: names.iter().map(|name| name.parse().unwrap()).collect(),
                selector: Some(selector.parse().unwrap()),
            };
            let default = NamespaceName::from("net");
            let selection = Selection::of(&flags, namespace.as_ref(), &default, Place::Manifests);
            let narrowed = selection.and_then(|it| it.narrow_to_some(fleet())).map(|kept| {
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
