//! Manifest files to DaemonSets, in the API server's order: read, type, default, validate.
//!
//! Decides what a file's bytes mean (as kubectl reads them), and what the API server would make of
//! the object (upstream: `SetObjectDefaults_DaemonSet`, and what decoding and encoding do to it).
//! Collects every error of every file, each with its place. Not here: where bytes come from
//! (`source`), and what a change does to the cluster (`plan`).

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
mod policy;
pub mod quantity;
mod scalar;
mod single;
#[cfg(test)]
mod tests;
mod tree;
mod unknown;
mod validate;
mod warning;
mod written;
mod yaml;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::{DaemonSetKey, DesiredDaemonSet, ManifestFile, NamespaceName};

use decode::Problem;
use objects::Objects;

pub use error::{EncodingProblem, Error, Errors, JsonKind, Limit, Seen, TypeProblem};
pub use field_error::{ErrorKind, FieldError, RefusedBy};
pub use mentions::is_read;
pub use policy::Policies;
pub use single::{NotOneDocument, single_document};
pub use validate::{FieldWarning, selector_changes, validate, validate_update, warnings};
pub use warning::{FieldHint, UnknownField, Warning};

/// What the caller decides about reading.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace of DaemonSets whose manifest names none.
    pub default_namespace: NamespaceName,
    /// What happens to fields that the API does not know.
    pub validate: FieldValidation,
    /// The policies that count instead of those beside the DaemonSets. None: those beside them.
    pub policies: Option<Policies>,
    /// Parse every file, not only those that mention what is read: for whoever tells what is *not*
    /// there.
    pub every_file: bool,
}

/// kubectl's `--validate`: what happens to unknown fields. Duplicate keys are warned about in
/// every case, as kubectl lets them pass in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are errors.
    #[default]
    Strict,
    /// They are warned about and dropped, as the server drops them.
    Warn,
    /// They are dropped.
    Ignore,
}

/// What the files ask for.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// Every DaemonSet, defaulted and valid, sorted by key.
    pub daemon_sets: Vec<DesiredDaemonSet>,
    /// Namespaces that the files create beside them.
    pub namespaces: BTreeSet<NamespaceName>,
    /// How many objects of other kinds were passed over, by kind (`Kind`, or `Kind.group` for a
    /// DaemonSet of another API group).
    pub other_kinds: BTreeMap<String, usize>,
    /// What deserves a look but is no error, in order of place.
    pub warnings: Vec<Warning>,
    /// The policies that count.
    pub policies: Policies,
}

/// Reads every DaemonSet in `files`, and gives each the `RolloutPolicy` that selects it.
///
/// Files that mention neither `DaemonSet` nor `RolloutPolicy` in any spelling, nor have a line that
/// misspells the first one's case, are not parsed, unless the options say so.
///
/// # Errors
/// All errors of all files: bytes that are no text, syntax, wrong types, unknown fields, rules of
/// the API server, the same DaemonSet twice, or no DaemonSet at all.
pub fn read(files: &[ManifestFile], options: &Options) -> Result<Desired, Errors> {
    let Objects { daemon_sets, policies, namespaces, seen, mut warnings, mut errors } =
        objects::collect(files, options.every_file);
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
    if errors.is_empty() && by_key.is_empty() {
        errors.push(Error::NoDaemonSet { seen });
        return Err(Errors(errors));
    }
    errors.sort_by(|a, b| a.place().cmp(&b.place()));
    warnings.sort_by(|a, b| a.place().cmp(b.place()));
    if errors.is_empty() {
        let daemon_sets = by_key.into_values().collect();
        let other_kinds = seen.other_kinds;
        Ok(Desired { daemon_sets, namespaces, other_kinds, warnings, policies })
    } else {
        Err(Errors(errors))
    }
}

/// Reads the policies in `files`, and nothing else of them.
///
/// # Errors
/// All errors of the policies, and of files that cannot be taken apart.
pub fn read_policies(files: &[ManifestFile]) -> Result<Policies, Errors> {
    let Objects { policies, mut errors, .. } = objects::collect(files, false);
    let policies = Policies::read(&policies, &mut errors);
    if errors.is_empty() { Ok(policies) } else { Err(Errors(errors)) }
}

/// A DaemonSet as the API server would serve it right after it was created from `object`, but for
/// `status` and what the server adds to `metadata`. Fields that the API does not know are dropped.
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

/// The paths of all fields of a DaemonSet that the API does not know.
pub fn unknown_fields(object: Value) -> Vec<String> {
    decode::unknown_paths(&decode::daemon_set(object).1).into_iter().collect()
}

/// How many DaemonSets `bytes` look to hold, without parsing them: lines that say
/// `kind: DaemonSet`, or one when there may be a kind in another spelling. For folders that must be
/// rendered first, such as Helm charts.
pub fn count_daemon_sets(bytes: &[u8]) -> usize {
    let written = bytes.split(|&byte| byte == b'\n').filter(|line| says_daemon_set(line)).count();
    written.max(usize::from(mentions::is_spelt_otherwise(bytes)))
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
