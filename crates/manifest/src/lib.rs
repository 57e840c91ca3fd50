//! Reads manifest files into DaemonSets, in the API server's order: parse, decode, default, validate.
//!
//! Parses a file's bytes as kubectl does, and converts the object as the API server would
//! (upstream: `SetObjectDefaults_DaemonSet`, decoding and encoding). Collects every error of every
//! file, each with its place. Not here: reading the bytes (`source`), and the effect of a change on
//! the cluster (`planner`).

mod daemon_set;
mod decode;
mod defaults;
mod documents;
mod encoding;
mod error;
mod field_error;
mod fields;
mod go_number;
mod image;
mod mentions;
mod objects;
mod options;
mod policy;
pub mod quantity;
mod scalar;
mod single;
#[cfg(test)]
mod tests;
mod tree;
mod validate;
mod warning;
mod written;
mod yaml;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;

use daemonset::model::{DaemonSetKey, DesiredDaemonSet, ManifestFile, NamespaceName, Place};

use decode::Problem;
use mentions::may_have_policy;
use objects::Objects;

pub use error::{
    EncodingProblem, Error, Errors, JsonKind, Limit, ListProblem, Missing, NotAnObject, Seen,
    TypeProblem,
};
pub use field_error::{ErrorKind, FieldError, RefusedBy};
pub use mentions::{has_namespace, is_read};
pub use objects::NotObjects;
pub use options::{FieldValidation, Options};
pub use policy::{Policies, Precedence};
pub use single::{NotOneDocument, single_document};
pub use validate::{selector_changes, unchecked_volumes, validate, validate_update, warnings};
pub use warning::{FieldHint, FieldWarning, UnknownField, Warning};

/// The desired state in the files.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// Every DaemonSet, defaulted and valid, sorted by key.
    pub daemon_sets: Vec<DesiredDaemonSet>,
    /// Namespaces that the files create too, and where.
    pub namespaces: BTreeMap<NamespaceName, Place>,
    /// Number of skipped objects of other kinds, by kind (`Kind`, or `Kind.group` for a DaemonSet
    /// of another API group).
    pub other_kinds: BTreeMap<String, usize>,
    /// Warnings, in order of place.
    pub warnings: Vec<Warning>,
    /// The policies in use: those of the options, or those in the files.
    pub policies: Policies,
}

/// Reads every DaemonSet in `files`, and assigns to each the `RolloutPolicy` that selects it.
///
/// Files are parsed only if they mention `DaemonSet` or `RolloutPolicy` in any spelling, or an
/// `apiVersion` of `ds-plan.dev`, or contain a line with `kind: DaemonSet` in the wrong case; with
/// the option `every_file`, all are parsed.
///
/// # Errors
/// All errors of all files: invalid encoding, syntax, wrong types, unknown fields, rules of the API
/// server, a duplicate DaemonSet, or no DaemonSet at all.
pub fn read(files: &[ManifestFile], options: &Options) -> Result<Desired, Errors> {
    read_named(files, &[], options)
}

/// As [`read`]; `others` are files that mention nothing that is read, but that the user has named.
///
/// # Errors
/// Those of [`read`] and [`check_named`].
pub fn read_named(
    files: &[ManifestFile],
    others: &[ManifestFile],
    options: &Options,
) -> Result<Desired, Errors> {
    let (desired, seen, mut errors) = read_all(files, options);
    if let Err(Errors(more)) = check_named(others) {
        errors.extend(more);
        errors.sort_by(|a, b| a.place().cmp(&b.place()));
    }
    if errors.is_empty() && desired.daemon_sets.is_empty() {
        errors.push(Error::NoDaemonSet { seen });
    }
    if errors.is_empty() {
        let by_key: BTreeMap<_, _> =
            desired.daemon_sets.iter().map(|one| (&one.key, &one.labels)).collect();
        let labels = |key: &DaemonSetKey| by_key.get(key).copied().into_iter().collect();
        let order = desired.policies.precedence(by_key.keys().copied(), labels);
        errors.extend(order.err().into_iter().flat_map(|it| it.0));
    }
    if errors.is_empty() { Ok(desired) } else { Err(Errors(errors)) }
}

/// Checks files that mention nothing that is read, but that the user has named: kubectl reads them
/// too. Those that are found in a named folder are not checked, because a folder may have files of
/// other programs.
///
/// # Errors
/// All that kubectl rejects: invalid encoding and syntax, and documents that are not Kubernetes
/// objects. Limits that kubectl does not have are not errors here.
pub fn check_named(files: &[ManifestFile]) -> Result<(), Errors> {
    let mut errors = objects::collect(files, |_| true, NotObjects::Reject).errors;
    errors.retain(|error| !matches!(error, Error::Limit { .. }));
    if errors.is_empty() { Ok(()) } else { Err(Errors(errors)) }
}

/// The DaemonSets in `files` that are valid, and the errors of the others, in order of place.
pub fn read_valid(
    files: &[ManifestFile],
    options: &Options,
) -> (Vec<DesiredDaemonSet>, Vec<Error>) {
    let (desired, _, errors) = read_all(files, options);
    (desired.daemon_sets, errors)
}

/// All that is valid, what else was seen, and all errors in order of place.
fn read_all(files: &[ManifestFile], options: &Options) -> (Desired, Seen, Vec<Error>) {
    let is_parsed = |bytes: &[u8]| options.every_file || is_read(bytes);
    let Objects { daemon_sets, policies, namespaces, seen, mut warnings, mut errors } =
        objects::collect(files, is_parsed, options.not_objects);
    let policies = match &options.policies {
        Some(elsewhere) => elsewhere.clone(),
        None => Policies::read(&policies, &mut errors),
    };
    let mut by_key: BTreeMap<DaemonSetKey, DesiredDaemonSet> = BTreeMap::new();
    for found in &daemon_sets {
        let Some(mut new) = daemon_set::read(found, options, &mut errors, &mut warnings) else {
            continue;
        };
        if let Err(Errors(two)) = policy::assign(&mut new, &policies) {
            errors.extend(two);
        }
        match by_key.entry(new.key.clone()) {
            Entry::Vacant(free) => {
                free.insert(new);
            }
            Entry::Occupied(taken) => errors.push(Error::Duplicate {
                key: new.key,
                first: taken.get().place.clone(),
                second: new.place,
            }),
        }
    }
    errors.sort_by(|a, b| a.place().cmp(&b.place()));
    warnings.sort_by(|a, b| a.place().cmp(b.place()));
    let daemon_sets = by_key.into_values().collect();
    let other_kinds = seen.other_kinds.clone();
    (Desired { daemon_sets, namespaces, other_kinds, warnings, policies }, seen, errors)
}

/// Reads the policies in `files`, and ignores everything else: a file without one need not be valid.
///
/// # Errors
/// All errors of the policies, of objects of `ds-plan.dev` with an unknown kind, and of files with
/// one of them that cannot be parsed.
pub fn read_policies(files: &[ManifestFile]) -> Result<Policies, Errors> {
    let Objects { policies, mut errors, .. } =
        objects::collect(files, may_have_policy, NotObjects::Skip);
    let policies = Policies::read(&policies, &mut errors);
    if errors.is_empty() { Ok(policies) } else { Err(Errors(errors)) }
}

/// A DaemonSet as the API server would serve it right after creating it from `object`, except
/// `status` and server-written `metadata`. Fields that the API does not have are dropped.
///
/// # Errors
/// Every value of the wrong type, by path.
pub fn default_daemon_set(object: Value) -> Result<Value, Vec<(String, TypeProblem)>> {
    let (mut object, problems) = decode::daemon_set(object);
    let problems: Vec<_> = problems
        .into_iter()
        .filter_map(|problem| match problem {
            Problem::Type { path, problem } => Some((path, problem)),
            Problem::Unknown(_) => None,
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    defaults::daemon_set(&mut object);
    Ok(object)
}

/// The paths of all fields of a DaemonSet that the API does not have.
pub fn unknown_fields(object: Value) -> Vec<String> {
    decode::unknown_paths(&decode::daemon_set(object).1).into_iter().collect()
}

/// Estimates the number of DaemonSets in `bytes` without parsing them: lines with `kind:
/// DaemonSet`, or 1 if the kind may be spelled with escapes. For folders that must be rendered
/// first, such as Helm charts.
pub fn count_daemon_sets(bytes: &[u8]) -> usize {
    let written = bytes.split(|&byte| byte == b'\n').filter(|line| says_daemon_set(line)).count();
    written.max(usize::from(mentions::is_spelt_otherwise(bytes)))
}

/// Limit of the kinds that [`count_kinds`] counts.
const MAX_KINDS: usize = 20;

/// Adds the kinds of the objects in `bytes` to `kinds` without parsing them: lines that begin with
/// `kind:`. For messages about files that have no DaemonSet.
pub fn count_kinds(bytes: &[u8], kinds: &mut BTreeMap<String, usize>) {
    for line in bytes.split(|&byte| byte == b'\n') {
        let kind = line.strip_prefix(b"kind:").map(<[u8]>::trim_ascii).unwrap_or_default();
        let is_kind = !kind.is_empty() && kind.iter().all(u8::is_ascii_alphanumeric);
        let Some(kind) = str::from_utf8(kind).ok().filter(|kind| is_kind && kind.len() < 64) else {
            continue;
        };
        if kinds.len() < MAX_KINDS || kinds.contains_key(kind) {
            *kinds.entry(kind.to_owned()).or_default() += 1;
        }
    }
}

fn says_daemon_set(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"- ").unwrap_or(line).trim_ascii_start();
    let Some(value) =
        [&b"kind:"[..], b"\"kind\":", b"'kind':"].iter().find_map(|key| line.strip_prefix(*key))
    else {
        return false;
    };
    let value = value.trim_ascii();
    let Some(rest) = value.strip_prefix(b"DaemonSet").or_else(|| {
        value.strip_prefix(b"\"DaemonSet\"").or_else(|| value.strip_prefix(b"'DaemonSet'"))
    }) else {
        return false;
    };
    matches!(rest.first(), None | Some(b',' | b' ' | b'\t' | b'#'))
}
