//! Reads `RolloutPolicy` documents strictly, and assigns them to DaemonSets.

mod precedence;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::{Error, Errors};
use super::objects::Found;
use daemonset::model::{DaemonSetKey, DesiredDaemonSet, Labels, Place, RolloutPolicy};

pub use precedence::Precedence;

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
pub(super) fn read(found: &Found) -> Result<Read, Error> {
    let place = |path: &str| {
        let mark = found.node.mark_of(path);
        Place { path: Arc::clone(&found.path), line: mark.line, column: mark.column }
    };
    let value = found.node.to_value();
    let policy: RolloutPolicy = serde_path_to_error::deserialize(&value).map_err(|error| {
        let path = match error.path().to_string().as_str() {
            "." => String::new(),
            path => path.to_owned(),
        };
        Error::Policy { place: place(&path), path, message: error.into_inner().to_string() }
    })?;
    let selects = &policy.spec.selects;
    if selects.names.is_empty() && selects.labels.is_empty() {
        let path = "spec.selects".to_owned();
        let message = "set `names` or `labels`".to_owned();
        return Err(Error::Policy { place: place(&path), path, message });
    }
    let after = (0..policy.spec.after.len()).map(|at| place(&format!("spec.after[{at}]")));
    Ok(Read { after: after.collect(), policy: Arc::new(policy), place: place("") })
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
                Err(error) => errors.push(error),
            }
        }
        policies
    }

    /// `true` if any of the policies selects by labels.
    pub fn go_by_labels(&self) -> bool {
        self.0.iter().any(|read| read.policy.goes_by_labels())
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

#[cfg(test)]
mod tests {
    use crate::{FieldValidation, Options};
    use daemonset::model::{Deadline, IntOrPercent, ManifestFile, OnFailure};

    const AGENT: &str = "\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: logging, labels: {tier: node}}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
";

    fn read(policies: &[&str]) -> Result<crate::Desired, crate::Errors> {
        let head = "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\n";
        let policies: Vec<String> =
            policies.iter().map(|text| format!("---\n{head}{text}\n")).collect();
        let text = format!("{AGENT}{}", policies.concat());
        let file = ManifestFile { path: "f.yaml".into(), bytes: text.into_bytes() };
        // Policies are strict even with this option.
        let validate = FieldValidation::Ignore;
        crate::read(
            &[file],
            &Options {
                default_namespace: "default".into(),
                validate,
                policies: None,
                every_file: false,
                not_objects: crate::options::NotObjects::Reject,
            },
        )
    }

    #[test]
    fn a_policy_is_assigned_to_the_daemon_sets_it_selects() {
        for (selects, selected) in [
            ("{names: [logging/agent]}", true),
            ("{names: [other/agent]}", false),
            ("{labels: {tier: node}}", true),
            ("{labels: {tier: node, app: agent}}", false),
            ("{names: [other/agent], labels: {tier: node}}", true),
        ] {
            let policy = format!("metadata: {{name: p}}\nspec: {{selects: {selects}}}");
            let desired = read(&[&policy]).unwrap();
            assert_eq!(desired.daemon_sets[0].policy.is_some(), selected, "{selects}");
        }
    }

    #[test]
    fn every_field_is_read_and_has_a_default() {
        let bare = "metadata: {name: p}\nspec:\n  selects: {names: [logging/agent]}\n";
        let policy = read(&[bare]).unwrap().daemon_sets[0].policy.clone().unwrap();
        assert_eq!(policy.spec.progress_deadline, Deadline(600));
        assert_eq!(policy.spec.skip_unready_nodes.max, IntOrPercent::Percent(5));
        assert_eq!((policy.spec.max_unavailable, policy.spec.max_restarts), (None, 3));
        let full = format!(
            "{bare}  managedBy: daemonset-controller\n  onFailure: rollback\n  maxUnavailable: 10%\n  \
             after: [net/cni]\n  progressDeadline: 1h30m\n  skipUnreadyNodes: {{max: 7}}\n  maxRestarts: 0\n"
        );
        let policy = read(&[&full]).unwrap().daemon_sets[0].policy.clone().unwrap();
        let spec = &policy.spec;
        assert_eq!(spec.on_failure, OnFailure::Rollback);
        assert_eq!(spec.after, ["net/cni".parse().unwrap()]);
        assert_eq!(spec.max_unavailable, Some(IntOrPercent::Percent(10)));
        assert_eq!((spec.progress_deadline, spec.max_restarts), (Deadline(5400), 0));
        assert_eq!(spec.skip_unready_nodes.max, IntOrPercent::Int(7));
    }

    #[test]
    fn errors_of_a_policy_have_their_place() {
        let good = "metadata: {name: p}\nspec:\n  selects: {names: [logging/agent]}\n";
        for (policy, want) in [
            (
                format!("{good}  maxUnavailble: 1"),
                "f.yaml:15:18: RolloutPolicy: spec.maxUnavailble: \
                unknown field `maxUnavailble`, expected one of",
            ),
            (
                format!("{good}  maxUnavailable: ten"),
                "f.yaml:15:19: RolloutPolicy: spec.maxUnavailable: \
                `ten` is neither a number of nodes nor a percentage such as 10%",
            ),
            (
                format!("{good}  progressDeadline: soon"),
                "f.yaml:15:21: RolloutPolicy: \
                spec.progressDeadline: `soon` is not a duration such as 90s, 10m or 1h30m",
            ),
            (
                format!("{good}  managedBy: kubelet"),
                "f.yaml:15:14: RolloutPolicy: spec.managedBy: \
                unknown variant `kubelet`, expected `daemonset-controller` or `ds-apply`",
            ),
            (
                "spec: {selects: {names: [a/b]}}".into(),
                "f.yaml:10:1: RolloutPolicy: missing field `metadata`",
            ),
            (
                "metadata: {name: p}\nspec: {selects: {}}".into(),
                "f.yaml:13:8: RolloutPolicy: \
                spec.selects: set `names` or `labels`",
            ),
            (
                "metadata: {name: p}\nspec: {selects: {names: [agent]}}".into(),
                "f.yaml:13:18: \
                RolloutPolicy: spec.selects.names: ",
            ),
        ] {
            let error = read(&[&policy]).unwrap_err().to_string();
            assert!(error.starts_with(want), "{policy}: {error}");
        }
    }

    #[test]
    fn two_policies_for_one_daemon_set_are_an_error_that_names_both() {
        let by = |selects: &str| format!("metadata: {{name: p}}\nspec: {{selects: {{{selects}}}}}");
        let both = [by("names: [logging/agent]"), by("labels: {tier: node}")];
        let error = read(&[&both[0], &both[1]]).unwrap_err().to_string();
        assert_eq!(
            error,
            "f.yaml:15:1: a second RolloutPolicy for DaemonSet logging/agent; the first is at f.yaml:10:1"
        );
    }

    #[test]
    fn daemon_sets_that_come_after_themselves_are_an_error_with_the_circle() {
        let of = |name: &str, after: &str| {
            format!(
                "metadata: {{name: p}}\nspec:\n  selects: {{names: [{name}]}}\n  after: [{after}]"
            )
        };
        let agent = "logging/agent";
        for (policies, want) in [
            (vec![of(agent, "net/cni")], None),
            (vec![of(agent, "net/cni"), of("net/cni", "net/other")], None),
            (
                vec![of(agent, "net/cni, logging/agent")],
                Some(
                    "f.yaml:15:20: RolloutPolicy: spec.after: a DaemonSet comes after itself: \
                     logging/agent -> logging/agent",
                ),
            ),
            (
                vec![of(agent, "net/cni"), of("net/cni", "net/x"), of("net/x", agent)],
                Some(
                    "f.yaml:15:11: RolloutPolicy: spec.after: a DaemonSet comes after itself: \
                     logging/agent -> net/cni -> net/x -> logging/agent \
                     (also at f.yaml:22:11, f.yaml:29:11)",
                ),
            ),
            // A circle that no DaemonSet of the source is part of, nor comes after.
            (vec![of("net/x", "net/x")], None),
        ] {
            let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
            let error = read(&policies).err().map(|errors| errors.to_string());
            assert_eq!(error.as_deref(), want, "{policies:#?}");
        }
        let by_label = "metadata: {name: p}\nspec:\n  selects: {labels: {tier: node}}\n  \
                        after: [logging/agent]";
        let error = read(&[by_label]).unwrap_err().to_string();
        assert!(error.contains("logging/agent -> logging/agent"), "{error}");
    }
}
