//! Reads `RolloutPolicy` documents strictly, and assigns them to DaemonSets.

mod precedence;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::{Error, Errors};
use super::objects::Found;
use daemonset::model::{DaemonSetKey, DesiredDaemonSet, Labels, Place, RolloutPolicy};

pub use precedence::Precedence;
use rules::Violation;

/// A policy, and its position.
#[derive(Clone, Debug)]
pub(super) struct Read {
    policy: Arc<RolloutPolicy>,
    place: Place,
    /// Position of each item of `spec.after`.
    after: Vec<Place>,
}

/// Reads one policy. Unknown fields are always errors, whatever `--validate` is: a misspelled limit
/// would have no effect.
fn read(found: &Found) -> Result<Read, Vec<Error>> {
    let place = |path: &str| {
        let mark = found.node.mark_of(path);
        Place { path: Arc::clone(&found.path), line: mark.line, column: mark.column }
    };
    let error = |(path, message): Violation| Error::Policy { place: place(&path), path, message };
    let errors = |found: Vec<Violation>| found.into_iter().map(error).collect::<Vec<_>>();
    let value = found.node.to_value();
    let refused = rules::of_fields(&value);
    if !refused.is_empty() {
        return Err(errors(refused));
    }
    let policy: RolloutPolicy = serde_path_to_error::deserialize(&value).map_err(|error| {
        let path = match error.path().to_string().as_str() {
            "." => String::new(),
            path => path.to_owned(),
        };
        errors(vec![(path, in_yaml_words(&error.into_inner().to_string()))])
    })?;
    let violations = rules::of_spec(&policy.spec);
    if !violations.is_empty() {
        return Err(errors(violations));
    }
    let after = (0..policy.spec.after.len()).map(|at| place(&format!("spec.after[{at}]")));
    Ok(Read { after: after.collect(), policy: Arc::new(policy), place: place("") })
}

/// The message of a field with the wrong type, without the names of Rust types.
fn in_yaml_words(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let expected = match expected {
        "a sequence" => "a list",
        "u32" | "u64" => "a whole number that is not negative",
        expected if expected.starts_with("struct ") => "a mapping",
        expected => expected,
    };
    format!("{found}, expected {expected}")
}

/// The policies of some files.
#[derive(Clone, Debug, Default)]
pub struct Policies(Vec<Read>);

impl Policies {
    /// Reads each policy; appends its error to the list if it is invalid.
    pub(super) fn read(found: &[Found], errors: &mut Vec<Error>) -> Self {
        let mut policies = Self::default();
        for found in found {
            match read(found) {
                Ok(read) => policies.0.push(read),
                Err(of_one) => errors.extend(of_one),
            }
        }
        policies
    }

    /// `true` if there is no policy.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in the order of the files.
    pub fn all(&self) -> impl Iterator<Item = &RolloutPolicy> {
        self.0.iter().map(|read| &*read.policy)
    }

    /// The policy that selects a DaemonSet by any of these sets of `labels` (for example desired
    /// and live): removing a label does not escape the policy.
    ///
    /// # Errors
    /// Two policies select the DaemonSet.
    pub fn of(
        &self,
        key: &DaemonSetKey,
        labels: &[&Labels],
    ) -> Result<Option<Arc<RolloutPolicy>>, Errors> {
        Ok(self.read_of(key, labels)?.map(|read| Arc::clone(&read.policy)))
    }

    fn read_of(&self, key: &DaemonSetKey, labels: &[&Labels]) -> Result<Option<&Read>, Errors> {
        let selects = |read: &&Read| {
            // Without labels, the policy selects by name.
            labels.iter().any(|labels| read.policy.selects(key, labels))
                || read.policy.spec.selects.names.contains(key)
        };
        let mut selecting = self.0.iter().filter(selects);
        let Some(first) = selecting.next() else { return Ok(None) };
        match selecting.next() {
            None => Ok(Some(first)),
            Some(second) => Err(Errors(vec![Error::TwoPolicies {
                key: key.clone(),
                first: first.place.clone(),
                second: second.place.clone(),
            }])),
        }
    }

    /// Which DaemonSets come before others: these ones, those that come before them, and so on.
    /// `labels` are all sets of labels by which a policy may select a DaemonSet, as in
    /// [`of`](Self::of).
    ///
    /// # Errors
    /// A DaemonSet comes, directly or not, after itself, or two policies select it.
    pub fn precedence<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a DaemonSetKey>,
        labels: impl Fn(&DaemonSetKey) -> Vec<&'a Labels>,
    ) -> Result<Precedence, Errors> {
        if self.0.iter().all(|read| read.after.is_empty()) {
            return Ok(Precedence::default());
        }
        let mut open: Vec<DaemonSetKey> = keys.into_iter().cloned().collect();
        let (mut after, mut places) = (BTreeMap::new(), BTreeMap::new());
        while let Some(key) = open.pop() {
            if after.contains_key(&key) {
                continue;
            }
            let read = self.read_of(&key, &labels(&key))?;
            let before = read.map(|read| read.policy.spec.after.clone()).unwrap_or_default();
            open.extend(before.iter().cloned());
            if let Some(read) = read {
                places.insert(key.clone(), &read.after);
            }
            after.insert(key, before);
        }
        let place = |key: &DaemonSetKey, next: &DaemonSetKey| {
            let at = after.get(key)?.iter().position(|one| one == next)?;
            places.get(key)?.get(at).cloned()
        };
        Precedence::of(after.clone()).map_err(|circle| {
            let next = circle.iter().cycle().skip(1);
            let places = circle.iter().zip(next).filter_map(|(key, next)| place(key, next));
            Errors(vec![Error::AfterItself { places: places.collect(), circle }])
        })
    }
}

/// Assigns to `daemon_set` the policy that selects it by its own labels; two are an error.
pub(super) fn assign(daemon_set: &mut DesiredDaemonSet, policies: &Policies) -> Result<(), Errors> {
    daemon_set.policy = policies.of(&daemon_set.key, &[&daemon_set.labels])?;
    let managed_by = daemon_set.policy.as_ref().map(|policy| policy.spec.managed_by);
    daemon_set.managed_by = managed_by.unwrap_or_default();
    Ok(())
}
