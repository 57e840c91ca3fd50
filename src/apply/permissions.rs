//! What a run has to be permitted, so that it is asked in one go before anything is written: a
//! table by what the run does. What is asked, and how the answers are taken, is here too.
//!
//! Not here: what becomes of a run that lacks something (`cli`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::cluster::{Access, Kind, Permission, Resource, Verb, Verdict, WritableCluster};
use crate::model::{
    DaemonSetKey, DaemonSetName, ManagedBy, NamespaceName, lease_name, ledger_name,
};

/// What a run does with a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Looks whether anything is to be done, under its lock.
    Look,
    /// Applies it, and replaces its pods.
    Change {
        /// Whether it may have to be made.
        creates: bool,
    },
    /// Replaces its pods, and never writes it.
    Roll,
    /// Gives its strategy back.
    Release,
    /// Deletes it.
    Remove,
}

/// One thing to be done.
#[derive(Clone, Debug)]
pub struct Errand {
    /// Where.
    pub namespace: NamespaceName,
    /// With which DaemonSet; `None` is any.
    pub name: Option<DaemonSetName>,
    /// Who acts on it.
    pub managed_by: ManagedBy,
    /// What.
    pub work: Work,
}

impl Errand {
    /// Whether it is about this DaemonSet, and no other.
    pub fn is_of(&self, key: &DaemonSetKey) -> bool {
        self.namespace == key.namespace && self.name.as_ref() == Some(&key.name)
    }

    /// Something to be done with one DaemonSet.
    pub fn with(key: &DaemonSetKey, managed_by: ManagedBy, work: Work) -> Self {
        Self { namespace: key.namespace.clone(), name: Some(key.name.clone()), managed_by, work }
    }
}

/// What a permission is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The plan.
    Read,
    /// Defaults of namespaces.
    NodeSelectors,
    /// Services that gain or lose endpoints.
    Services,
    /// Templates that failed before.
    FailedTemplates,
    /// The lock.
    Lock,
    /// Following each pod.
    Watch,
    /// The object.
    Apply,
    /// A new object.
    Create,
    /// Old pods.
    Replace,
    /// Whether admission takes the pods.
    TryPods,
    /// The controller's warnings.
    Complaints,
    /// Warnings about pods.
    PodWarnings,
    /// What containers print.
    Logs,
    /// The revision's annotations.
    Record,
    /// What is not in the source any more.
    Prune,
    /// The ConfigMap that stands for a DaemonSet.
    Ledger,
    /// The part of the controller.
    Controller,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "reading the cluster",
            Self::NodeSelectors => "node selectors of namespaces",
            Self::Services => "Services that gain or lose endpoints",
            Self::FailedTemplates => "templates that failed before",
            Self::Lock => "the lock",
            Self::Watch => "following the rollout",
            Self::Apply => "applying the DaemonSet",
            Self::Create => "creating the DaemonSet",
            Self::Replace => "replacing pods",
            Self::TryPods => "trying out whether admission takes the pods (dry run)",
            Self::Complaints => "telling why the controller creates no pod",
            Self::PodWarnings => "telling why a pod is not ready",
            Self::Logs => "--logs",
            Self::Record => "recording the change on its revision",
            Self::Prune => "--prune",
            Self::Ledger => "the ledger",
            Self::Controller => "acting as the controller",
        })
    }
}

/// Whether a run can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It says less.
    Optional,
    /// It cannot.
    Required,
}

/// The `ClusterRole` that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// In `deploy/ds-apply.yaml`.
    DsApply,
    /// In `deploy/managed-by-ds-apply.yaml`.
    AsController,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::DsApply => "ds-apply",
            Self::AsController => "ds-apply-as-controller",
        }
    }

    /// The file that it is in.
    pub fn file(self) -> &'static str {
        match self {
            Self::DsApply => "deploy/ds-apply.yaml",
            Self::AsController => "deploy/managed-by-ds-apply.yaml",
        }
    }
}

/// One permission that a run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Which one.
    pub permission: Permission,
    /// To the objects of which DaemonSets; `None` is all of them.
    pub names: Option<BTreeSet<DaemonSetName>>,
    /// What for.
    pub purpose: Purpose,
    /// Whether a run can do without.
    pub weight: Weight,
    /// Where it is to be had.
    pub role: Role,
}

/// `delete pods in namespace logging: replacing pods (ClusterRole ds-apply)`.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { permission, names: _, purpose, weight: _, role } = self;
        write!(f, "{permission}: {purpose} (ClusterRole {})", role.name())
    }
}

impl Need {
    /// The same of one object.
    fn of(&self, name: Option<&DaemonSetName>) -> Access {
        let Permission { verb, resource, namespace } = self.permission.clone();
        let name = name.map(|name| match resource {
            Resource::Of(Kind::Lease) => lease_name(name.as_str()),
            Resource::Of(Kind::Ledger) => ledger_name(name),
            Resource::Of(_) | Resource::PodLog | Resource::AccessReview | Resource::Version => {
                name.to_string()
            }
        });
        Access { verb, resource, namespace, name }
    }
}

/// What all of this needs, each permission once, in the order of verbs.
pub fn needs(errands: &[Errand]) -> Vec<Need> {
    let mut all = Needs::default();
    for errand in errands {
        all.add(errand);
    }
    all.0.into_values().collect()
}

#[derive(Default)]
struct Needs(BTreeMap<Permission, Need>);

/// Verbs on a kind in the errand's namespace, and what they are for.
type Row = (&'static [Verb], Kind, Purpose);

use Verb::{Create, Delete, Get, List, Patch, Watch};

/// What every run reads, and locks with.
const ALWAYS: [Row; 3] = [
    (&[List], Kind::Pod, Purpose::Read),
    (&[List], Kind::DaemonSet, Purpose::Read),
    (&[List], Kind::ControllerRevision, Purpose::Read),
];

/// What is followed during a rollout.
const FOLLOWED: [Row; 2] =
    [(&[Watch], Kind::Pod, Purpose::Watch), (&[Watch], Kind::ControllerRevision, Purpose::Watch)];

/// What it takes to be the controller.
const AS_CONTROLLER: [Row; 3] = [
    (&[Get, List, Watch, Create, Patch], Kind::Ledger, Purpose::Ledger),
    (&[Get, Create, Patch, Delete], Kind::Pod, Purpose::Controller),
    (&[Get, Create, Patch, Delete], Kind::ControllerRevision, Purpose::Controller),
];

impl Needs {
    fn add(&mut self, errand: &Errand) {
        self.read(errand);
        self.rows(errand, &[(&[Get, Create, Patch], Kind::Lease, Purpose::Lock)]);
        let follows = match errand.work {
            Work::Look | Work::Remove => false,
            Work::Change { .. } | Work::Roll | Work::Release => true,
        };
        if follows {
            self.cluster_wide(Watch, Kind::Node, Purpose::Watch, Weight::Required);
            self.rows(errand, &FOLLOWED);
        }
        match errand.managed_by {
            ManagedBy::DaemonSetController => self.beside_a_controller(errand),
            ManagedBy::DsApply => self.as_controller(errand),
        }
    }

    fn read(&mut self, errand: &Errand) {
        self.cluster_wide(List, Kind::Node, Purpose::Read, Weight::Required);
        self.cluster_wide(List, Kind::Namespace, Purpose::NodeSelectors, Weight::Optional);
        self.rows(errand, &ALWAYS);
        for (kind, purpose) in
            [(Kind::Service, Purpose::Services), (Kind::Lease, Purpose::FailedTemplates)]
        {
            self.optional(errand, List, Resource::Of(kind), purpose);
        }
        if errand.work == Work::Remove {
            // What the source has no longer may be anywhere.
            for (_, kind, purpose) in ALWAYS {
                self.cluster_wide(List, kind, purpose, Weight::Required);
            }
        }
    }

    fn beside_a_controller(&mut self, errand: &Errand) {
        let watch = (&[Watch][..], Kind::DaemonSet, Purpose::Watch);
        let apply = (&[Patch][..], Kind::DaemonSet, Purpose::Apply);
        let replace = (&[Delete][..], Kind::Pod, Purpose::Replace);
        match errand.work {
            Work::Look => {}
            Work::Change { creates } => {
                let record = (&[Patch][..], Kind::ControllerRevision, Purpose::Record);
                self.rows(errand, &[watch, apply, replace, record]);
                if creates {
                    self.rows(errand, &[(&[Create], Kind::DaemonSet, Purpose::Create)]);
                }
                self.told_by_the_server(errand);
            }
            Work::Roll => {
                self.rows(errand, &[watch, replace]);
                self.told_by_the_server(errand);
            }
            Work::Release => self.rows(errand, &[watch, apply]),
            Work::Remove => self.rows(errand, &[(&[Delete], Kind::DaemonSet, Purpose::Prune)]),
        }
    }

    /// Worth having, not needing.
    fn told_by_the_server(&mut self, errand: &Errand) {
        self.optional(errand, Create, Resource::Of(Kind::Pod), Purpose::TryPods);
        self.optional(errand, Watch, Resource::Of(Kind::Event), Purpose::Complaints);
        self.optional(errand, List, Resource::Of(Kind::Event), Purpose::PodWarnings);
        self.optional(errand, Get, Resource::PodLog, Purpose::Logs);
    }

    fn as_controller(&mut self, errand: &Errand) {
        match errand.work {
            Work::Look => {}
            Work::Change { creates: _ } | Work::Roll | Work::Release => {
                self.rows(errand, &AS_CONTROLLER);
            }
            Work::Remove => self.rows(errand, &[(&[Delete], Kind::Ledger, Purpose::Prune)]),
        }
    }

    fn rows(&mut self, errand: &Errand, rows: &[Row]) {
        for (verbs, kind, purpose) in rows {
            for &verb in *verbs {
                let resource = Resource::Of(*kind);
                let namespace = Some(errand.namespace.clone());
                self.put(Need {
                    permission: Permission { verb, resource, namespace },
                    names: names(verb, *kind, errand),
                    purpose: *purpose,
                    weight: Weight::Required,
                    role: role(verb, *kind, *purpose),
                });
            }
        }
    }

    fn optional(&mut self, errand: &Errand, verb: Verb, resource: Resource, purpose: Purpose) {
        let namespace = Some(errand.namespace.clone());
        self.put(Need {
            permission: Permission { verb, resource, namespace },
            names: None,
            purpose,
            weight: Weight::Optional,
            role: Role::DsApply,
        });
    }

    fn cluster_wide(&mut self, verb: Verb, kind: Kind, purpose: Purpose, weight: Weight) {
        let permission = Permission { verb, resource: Resource::Of(kind), namespace: None };
        self.put(Need { permission, names: None, purpose, weight, role: Role::DsApply });
    }

    /// A permission that is needed for several things is told for the one that needs it most.
    fn put(&mut self, need: Need) {
        let Some(known) = self.0.get_mut(&need.permission) else {
            self.0.insert(need.permission.clone(), need);
            return;
        };
        known.names = match (known.names.take(), need.names.clone()) {
            (Some(mut known), Some(more)) => {
                known.extend(more);
                Some(known)
            }
            (None, _) | (_, None) => None,
        };
        if need.weight > known.weight {
            *known = Need { names: known.names.take(), ..need };
        }
    }
}

/// Roles can name the objects of some resources (`resourceNames`), where the run names them too.
fn names(verb: Verb, kind: Kind, errand: &Errand) -> Option<BTreeSet<DaemonSetName>> {
    let has_its_name = match kind {
        Kind::DaemonSet | Kind::Lease | Kind::Ledger => true,
        Kind::Namespace
        | Kind::Node
        | Kind::ControllerRevision
        | Kind::Pod
        | Kind::Service
        | Kind::Event => false,
    };
    let by_name = match verb {
        Get | Patch | Delete | Create => has_its_name,
        List | Watch => false,
    };
    errand.name.clone().filter(|_| by_name).map(|name| [name].into())
}

fn role(verb: Verb, kind: Kind, purpose: Purpose) -> Role {
    let is_its = matches!(purpose, Purpose::Ledger | Purpose::Controller) || kind == Kind::Ledger;
    // Whoever paces deletes pods.
    let is_shared = kind == Kind::Pod && verb == Delete;
    if is_its && !is_shared { Role::AsController } else { Role::DsApply }
}

/// A need, and whether it is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The need.
    pub need: Need,
    /// What the server says of it.
    pub verdict: Verdict,
}

impl Finding {
    /// Whether the run cannot do without, and may not.
    pub fn is_missing(&self) -> bool {
        self.need.weight == Weight::Required && self.verdict == Verdict::Denied
    }
}

/// Asks the server about all of them at once. Where a role names its objects, it is asked for each
/// by name.
pub async fn ask(cluster: &WritableCluster, needs: Vec<Need>) -> Vec<Finding> {
    let verdicts = cluster.review(needs.iter().map(|need| need.of(None)).collect()).await;
    let mut findings = Vec::new();
    for (need, verdict) in needs.into_iter().zip(verdicts) {
        let by_name = need.names.as_ref().filter(|_| verdict == Verdict::Denied);
        let verdict = match by_name {
            Some(names) => of_each(cluster, &need, names).await,
            None => verdict,
        };
        findings.push(Finding { need, verdict });
    }
    findings
}

/// Whether it is permitted, or not needed, for each of these.
async fn of_each(
    cluster: &WritableCluster,
    need: &Need,
    names: &BTreeSet<DaemonSetName>,
) -> Verdict {
    let verdicts = cluster.review(names.iter().map(|name| need.of(Some(name))).collect()).await;
    for (name, verdict) in names.iter().zip(verdicts) {
        let permitted = verdict == Verdict::Allowed || is_there(cluster, need, name).await;
        if !permitted {
            return verdict;
        }
    }
    Verdict::Allowed
}

/// Whether it is about making a lease that was made before.
async fn is_there(cluster: &WritableCluster, need: &Need, name: &DaemonSetName) -> bool {
    let Permission { verb, resource, namespace } = &need.permission;
    let Some(namespace) = namespace else { return false };
    let makes_lease = *verb == Create && *resource == Resource::Of(Kind::Lease);
    let key = DaemonSetKey::new(namespace.clone(), name.clone());
    makes_lease && matches!(cluster.live().lease(&key).await, Ok(Some(_)))
}

#[cfg(test)]
mod tests;
