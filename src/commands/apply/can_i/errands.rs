//! The work that `ds-apply can-i` asks about. It depends on which DaemonSets exist, and on policies.
//!
//! Not here: the permissions that the work needs (`executor::permissions`).

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use crate::error::Error;
use cluster::WritableCluster;
use daemonset::model::{DaemonSet, DaemonSetKey, Labels, ManagedBy, NamespaceName, RolloutPolicy};
use executor::permissions::{Errand, Work};
use manifest::Policies;

/// DaemonSets with their labels, in each namespace in which they may be listed.
type Listed = BTreeMap<NamespaceName, BTreeMap<DaemonSetKey, Labels>>;

/// The DaemonSets that exist.
#[derive(Default)]
pub(super) struct Existing {
    /// Those of the DaemonSet controller.
    daemon_sets: Listed,
    /// Those of `ds-apply`, which are records. Empty if no policy may select one by its labels.
    records: Listed,
}

/// What the work of a run depends on.
pub(super) struct Known<'a> {
    /// The policies of the command line.
    pub policies: &'a Policies,
    /// The DaemonSets that exist.
    pub existing: Existing,
    /// The controller of the command line, which overrides the policies.
    pub managed_by: Option<ManagedBy>,
    /// Whether DaemonSets that are no longer in the source are deleted.
    pub prune: bool,
}

/// The namespaces to read: those of the DaemonSets, and of others that share a budget by name.
pub(super) fn namespaces(
    keys: &[DaemonSetKey],
    namespace: &NamespaceName,
    policies: &Policies,
) -> BTreeSet<NamespaceName> {
    let sharing = policies.all().filter(|policy| policy.spec.shared_budget.is_some());
    let siblings = sharing.flat_map(|policy| &policy.spec.selects.names);
    let named = keys.iter().chain(siblings).map(|key| key.namespace.clone());
    named.chain(keys.is_empty().then(|| namespace.clone())).collect()
}

/// Whether a policy may select a record by its labels. Only then records are read.
pub(super) fn may_select_records(policies: &Policies, managed_by: Option<ManagedBy>) -> bool {
    let is_ours =
        |policy: &RolloutPolicy| managed_by.unwrap_or(policy.spec.managed_by) == ManagedBy::DsApply;
    policies.all().any(|policy| policy.goes_by_labels() && is_ours(policy))
}

/// Reads the DaemonSets that exist in these namespaces, and their records if they are wanted.
///
/// # Errors
/// The server does not answer, or not as expected.
pub(super) async fn existing(
    namespaces: BTreeSet<NamespaceName>,
    wants_records: bool,
    cluster: &WritableCluster,
) -> Result<Existing, Error> {
    let (live, mut existing) = (cluster.live(), Existing::default());
    for namespace in namespaces {
        if wants_records && let Some(found) = permitted(live.records_in(&namespace).await)? {
            existing.records.insert(namespace.clone(), found);
        }
        if let Some(found) = permitted(live.daemon_sets_in(&namespace).await)? {
            existing.daemon_sets.insert(namespace, found);
        }
    }
    Ok(existing)
}

/// The labels of what was listed. `None` if that is forbidden: the table shows that this permission is
/// missing.
fn permitted(
    listed: Result<Vec<DaemonSet>, cluster::Error>,
) -> Result<Option<BTreeMap<DaemonSetKey, Labels>>, Error> {
    match listed {
        Ok(found) => Ok(Some(found.into_iter().map(|one| (one.key, one.labels)).collect())),
        Err(cluster::Error::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Known<'_> {
    /// Everything that a run can do to these DaemonSets, or to all of the namespace if there are
    /// none.
    ///
    /// # Errors
    /// Two policies select one DaemonSet.
    pub(super) fn errands(
        &self,
        keys: &[DaemonSetKey],
        namespace: &NamespaceName,
    ) -> Result<Vec<Errand>, Error> {
        if keys.is_empty() {
            return Ok(self.of_namespace(namespace));
        }
        let mut errands = Vec::new();
        for key in keys {
            let policy = self.policy(key)?;
            // If it is not known whether it exists, the run may have to create it.
            let creates = labels_in(&self.existing.daemon_sets, key).is_none();
            let of = |managed_by, work| Errand::with(key, managed_by, work);
            errands.extend(self.under(policy.as_deref(), creates, of));
            if policy.is_none() && creates && self.may_have_hidden_record(key) {
                // A policy may select the record: the table shows that it may not be listed.
                errands.push(Errand::with(key, ManagedBy::DsApply, Work::Look));
            }
        }
        Ok(errands)
    }

    /// The named DaemonSets that none of the policies selects, if there are policies.
    ///
    /// # Errors
    /// Two policies select one DaemonSet.
    pub(super) fn not_selected<'k>(
        &self,
        keys: &'k [DaemonSetKey],
    ) -> Result<Vec<&'k DaemonSetKey>, Error> {
        let mut found = Vec::new();
        for key in keys.iter().filter(|_| !self.policies.is_empty()) {
            if self.policy(key)?.is_none() {
                found.push(key);
            }
        }
        Ok(found)
    }

    /// The work on any DaemonSet of a namespace: without a policy, and under each one that may select
    /// one there.
    fn of_namespace(&self, namespace: &NamespaceName) -> Vec<Errand> {
        let may_select = |policy: &&RolloutPolicy| {
            let mut names = policy.spec.selects.names.iter();
            policy.goes_by_labels() || names.any(|key| key.namespace == *namespace)
        };
        let of = |managed_by, work| Errand::any_in(namespace.clone(), managed_by, work);
        let policies = self.policies.all().filter(may_select).map(Some);
        iter::once(None).chain(policies).flat_map(|policy| self.under(policy, true, of)).collect()
    }

    /// The work under a policy, or without one.
    fn under(
        &self,
        policy: Option<&RolloutPolicy>,
        creates: bool,
        of: impl Fn(ManagedBy, Work) -> Errand,
    ) -> Vec<Errand> {
        let of_policy = policy.map(|policy| policy.spec.managed_by);
        let managed_by = self.managed_by.or(of_policy).unwrap_or_default();
        let change = of(managed_by, Work::Change { creates });
        let change = match policy {
            Some(policy) => change.under(&policy.spec),
            None => change,
        };
        let removal = self.prune.then(|| of(managed_by, Work::Remove));
        let sharing = policy.map(|policy| self.sharing(policy)).unwrap_or_default();
        let shared = sharing.iter().map(|key| Errand::with(key, managed_by, Work::Share));
        [change].into_iter().chain(removal).chain(shared).collect()
    }

    /// The DaemonSets that share the budget of a policy, if it has one.
    fn sharing(&self, policy: &RolloutPolicy) -> BTreeSet<DaemonSetKey> {
        if policy.spec.shared_budget.is_none() {
            return BTreeSet::new();
        }
        let Existing { daemon_sets, records } = &self.existing;
        let existing = daemon_sets.values().chain(records.values()).flatten();
        let selected = existing.filter(|(key, labels)| policy.selects(key, labels));
        policy.spec.selects.names.iter().chain(selected.map(|(key, _)| key)).cloned().collect()
    }

    fn policy(&self, key: &DaemonSetKey) -> Result<Option<Arc<RolloutPolicy>>, Error> {
        let Existing { daemon_sets, records } = &self.existing;
        let labels = [daemon_sets, records].into_iter().filter_map(|all| labels_in(all, key));
        Ok(self.policies.of(key, &labels.collect::<Vec<_>>())?)
    }

    /// Whether it may have a record that a policy would select, but that may not be listed.
    fn may_have_hidden_record(&self, key: &DaemonSetKey) -> bool {
        may_select_records(self.policies, self.managed_by)
            && !self.existing.records.contains_key(&key.namespace)
    }
}

/// The labels of a DaemonSet; `None` if it does not exist, or may not be listed.
fn labels_in<'a>(all: &'a Listed, key: &DaemonSetKey) -> Option<&'a Labels> {
    all.get(&key.namespace)?.get(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{Kind, Permission, Resource, Verb};
    use daemonset::model::ManifestFile;
    use executor::permissions::{Need, Weight, needs};

    /// A policy with this spec.
    fn policies(spec: &str) -> Policies {
        let text = format!(
            "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: one}}\n\
             spec: {{{spec}}}\n"
        );
        let file = ManifestFile { path: "policy.yaml".into(), bytes: text.into_bytes() };
        manifest::read_policies(&[file]).unwrap()
    }

    /// These of `logging`, with a label.
    fn listed<const N: usize>(names: [&str; N]) -> Listed {
        let labels = Labels::from_iter([("tier", "node")]);
        let one = |name: &str| (DaemonSetKey::new("logging", name), labels.clone());
        BTreeMap::from([("logging".into(), names.map(one).into())])
    }

    /// `logging/agent` and `logging/other` exist, and a record of `logging/ours`; `monitoring` may
    /// not be listed.
    fn known(policies: &Policies) -> Known<'_> {
        let existing =
            Existing { daemon_sets: listed(["agent", "other"]), records: listed(["ours"]) };
        Known { policies, existing, managed_by: None, prune: false }
    }

    /// The weight of a permission that the work on a DaemonSet needs; on any of `logging` without
    /// one.
    fn weight(
        known: &Known<'_>,
        name: Option<(&str, &str)>,
        (verb, kind, namespace): (Verb, Kind, Option<&str>),
    ) -> Option<Weight> {
        let keys: Vec<_> =
            name.map(|(space, name)| DaemonSetKey::new(space, name)).into_iter().collect();
        let all = needs(&known.errands(&keys, &"logging".into()).unwrap());
        let permission = Permission {
            verb,
            resource: Resource::Of(kind),
            namespace: namespace.map(NamespaceName::from),
        };
        all.iter().find(|need| need.permission == permission).map(|need| need.weight)
    }

    const AGENT: Option<(&str, &str)> = Some(("logging", "agent"));

    #[test]
    fn a_daemon_set_that_exists_need_not_be_created() {
        let none = Policies::default();
        let create = |name: Option<(&str, &str)>| {
            let namespace = name.map_or("logging", |(namespace, _)| namespace);
            weight(&known(&none), name, (Verb::Create, Kind::DaemonSet, Some(namespace)))
        };
        let required = Some(Weight::Required);
        for (name, want) in [
            (AGENT, None),
            (Some(("logging", "none")), required),
            (Some(("monitoring", "agent")), required),
            (None, required),
        ] {
            assert_eq!(create(name), want, "{name:?}");
        }
    }

    #[test]
    fn a_policy_adds_what_a_run_under_it_needs() {
        let create_pods = (Verb::Create, Kind::Pod, Some("logging"));
        let list_all_pods = (Verb::List, Kind::Pod, None);
        let patch = (Verb::Patch, Kind::DaemonSet, Some("logging"));
        let lease = (Verb::Patch, Kind::Lease, Some("monitoring"));
        let (required, optional) = (Some(Weight::Required), Some(Weight::Optional));
        let pods = "preconditions: [{name: gpu, pods: {resource: nvidia.com/gpu, expect: absent}}]";
        let ours = "selects: {names: [logging/agent]}";
        for (spec, asked, want) in [
            (format!("{ours}, prePull: {{}}"), create_pods, required),
            (format!("{ours}, {pods}"), list_all_pods, required),
            (format!("{ours}, managedBy: ds-apply"), patch, None),
            ("selects: {labels: {tier: node}}, prePull: {}".to_owned(), create_pods, required),
            // Another one.
            ("selects: {names: [a/b]}, prePull: {}".to_owned(), create_pods, optional),
            ("selects: {labels: {tier: web}}, prePull: {}".to_owned(), create_pods, optional),
            (ours.to_owned(), list_all_pods, None),
            (ours.to_owned(), patch, required),
            // Others of the same policy are locked only if they share a budget.
            ("selects: {names: [logging/agent, monitoring/it]}".to_owned(), lease, None),
            (
                "selects: {names: [logging/agent, monitoring/it]}, sharedBudget: 1".to_owned(),
                lease,
                required,
            ),
        ] {
            let policies = policies(&spec);
            assert_eq!(weight(&known(&policies), AGENT, asked), want, "{spec} {asked:?}");
        }
    }

    #[test]
    fn a_policy_selects_a_record_by_its_labels() {
        let policies = policies("selects: {labels: {tier: node}}, managedBy: ds-apply");
        let create_record = (Verb::Create, Kind::DaemonSetRecord, Some("logging"));
        let list_records = (Verb::List, Kind::DaemonSetRecord, Some("logging"));
        let create = (Verb::Create, Kind::DaemonSet, Some("logging"));
        let required = Some(Weight::Required);
        let mut hidden = known(&policies);
        hidden.existing.records.clear();
        for (rule, known, name, want) in [
            ("a record", &known(&policies), "ours", [required, required, None]),
            ("none", &known(&policies), "none", [None, None, required]),
            // It may have a record, with any labels.
            ("not to be listed", &hidden, "none", [None, required, required]),
            ("no need to list", &hidden, "agent", [required, required, None]),
        ] {
            let name = Some(("logging", name));
            let found = [create_record, list_records, create].map(|it| weight(known, name, it));
            assert_eq!(found, want, "{rule}");
        }
    }

    #[test]
    fn records_are_read_only_for_policies_that_go_by_labels() {
        let (ours, theirs) = (ManagedBy::DsApply, ManagedBy::DaemonSetController);
        let (names, labels) = ("selects: {names: [a/b]}", "selects: {labels: {tier: node}}");
        for (spec, flag, want) in [
            (format!("{labels}, managedBy: ds-apply"), None, true),
            (format!("{labels}, managedBy: ds-apply"), Some(theirs), false),
            (format!("{names}, managedBy: ds-apply"), None, false),
            (labels.to_owned(), None, false),
            (labels.to_owned(), Some(ours), true),
        ] {
            assert_eq!(may_select_records(&policies(&spec), flag), want, "{spec} {flag:?}");
        }
        assert!(!may_select_records(&Policies::default(), Some(ours)));
    }

    #[test]
    fn all_policies_of_a_namespace_count_for_any_of_it() {
        let create = (Verb::Create, Kind::Pod, Some("logging"));
        for (selects, want) in [
            ("names: [logging/agent]", Weight::Required),
            ("labels: {any: where}", Weight::Required),
            ("names: [monitoring/agent]", Weight::Optional),
        ] {
            let policies = policies(&format!("selects: {{{selects}}}, prePull: {{}}"));
            assert_eq!(weight(&known(&policies), None, create), Some(want), "{selects}");
        }
    }

    #[test]
    fn the_flag_overrides_the_controller_of_the_policy() {
        let policies = policies("selects: {names: [logging/agent]}, managedBy: ds-apply");
        let managed_by = Some(ManagedBy::DaemonSetController);
        let known = Known { managed_by, ..known(&policies) };
        let patch = (Verb::Patch, Kind::DaemonSet, Some("logging"));
        assert_eq!(weight(&known, AGENT, patch), Some(Weight::Required));
    }

    #[test]
    fn siblings_with_the_labels_are_locked_by_name() {
        let policies =
            policies("selects: {labels: {tier: node}}, sharedBudget: 1, managedBy: ds-apply");
        let key = DaemonSetKey::new("logging", "agent");
        let all = needs(&known(&policies).errands(&[key], &"logging".into()).unwrap());
        let is_lock = |need: &&Need| {
            (need.permission.verb, need.permission.resource)
                == (Verb::Patch, Resource::Of(Kind::Lease))
        };
        let names = all.iter().find(is_lock).unwrap().names.clone();
        assert_eq!(names, Some(["agent".into(), "other".into(), "ours".into()].into()));
    }

    #[test]
    fn a_daemon_set_that_no_policy_selects_is_found() {
        let keys = ["agent", "none"].map(|name| DaemonSetKey::new("logging", name));
        let by_labels = policies("selects: {labels: {tier: node}}");
        assert_eq!(known(&by_labels).not_selected(&keys).unwrap(), [&keys[1]]);
        let none = Policies::default();
        assert_eq!(known(&none).not_selected(&keys).unwrap(), Vec::<&DaemonSetKey>::new());
    }

    #[test]
    fn namespaces_are_those_of_the_daemon_sets_and_of_siblings_that_are_named() {
        let names = "selects: {names: [logging/agent, monitoring/it]}";
        let shared = policies(&format!("{names}, sharedBudget: 1"));
        let alone = policies(names);
        let key = [DaemonSetKey::new("web", "agent")];
        let read = |keys: &[DaemonSetKey], policies: &Policies| {
            let all = namespaces(keys, &"default".into(), policies);
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read(&key, &alone), "web");
        assert_eq!(read(&[], &alone), "default");
        assert_eq!(read(&key, &shared), "logging monitoring web");
    }
}
