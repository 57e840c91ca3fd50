//! The permissions that a run needs, in a table by the work of the run, so that they are reviewed
//! in one go before anything is written. The review itself is here too.
//!
//! Not here: the handling of missing permissions (the root package).

mod errand;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use errand::{Errand, Work};

use cluster::{Access, Kind, Permission, Resource, Verb, Verdict, WritableCluster};
use daemonset::model::{
    DaemonSetKey, DaemonSetName, ManagedBy, approvals_name, lease_name, record_name,
};

/// The purpose of a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Reading the cluster for the plan.
    Read,
    /// Default node selectors of namespaces.
    NodeSelectors,
    /// Services that gain or lose endpoints.
    Services,
    /// Templates that failed before.
    FailedTemplates,
    /// PriorityClasses that templates name.
    PriorityClasses,
    /// The lock (a Lease).
    Lock,
    /// Approvals of steps (`approve: true` in a policy).
    Approvals,
    /// Watching the rollout.
    Watch,
    /// Applying the DaemonSet.
    Apply,
    /// Creating the DaemonSet.
    Create,
    /// Replacing outdated pods.
    Replace,
    /// Pulling images before pods are replaced.
    PrePull,
    /// Looking at other pods, for checks.
    Neighbours,
    /// Checking whether admission accepts the pods (dry run).
    TryPods,
    /// `FailedCreate` events of the controller.
    Complaints,
    /// Warning events of pods.
    PodWarnings,
    /// Container logs (`--logs`).
    Logs,
    /// Annotating the revision.
    Annotate,
    /// Deleting DaemonSets that are no longer in the source (`--prune`).
    Prune,
    /// The record ConfigMap of a DaemonSet that is managed by `ds-apply`.
    DaemonSetRecord,
    /// The requests of the in-process controller.
    Controller,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "reading the cluster",
            Self::NodeSelectors => "node selectors of namespaces",
            Self::Services => "Services that gain or lose endpoints",
            Self::FailedTemplates => "templates that failed before",
            Self::PriorityClasses => "PriorityClasses that templates name",
            Self::Lock => "the lock",
            Self::Approvals => "approvals of steps (approve: true in a policy)",
            Self::Watch => "watching the rollout",
            Self::Apply => "applying the DaemonSet",
            Self::Create => "creating the DaemonSet",
            Self::Replace => "replacing pods",
            Self::PrePull => "pulling images before pods are replaced (prePull in a policy)",
            Self::Neighbours => "checks that look at other pods (pods in a policy)",
            Self::TryPods => "checking whether admission accepts the pods (dry run)",
            Self::Complaints => "reporting why the controller creates no pod",
            Self::PodWarnings => "reporting why a pod is not ready",
            Self::Logs => "--logs",
            Self::Annotate => "annotating the revision with the change",
            Self::Prune => "--prune",
            Self::DaemonSetRecord => "the record ConfigMap",
            Self::Controller => "acting as the in-process controller",
        })
    }
}

/// Whether the run requires it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Optional: without it, the run reports less.
    Optional,
    /// Required: the run cannot work without it.
    Required,
}

/// The `ClusterRole` that grants a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// In `deploy/ds-apply.yaml`.
    DsApply,
    /// In `deploy/managed-by-ds-apply.yaml`.
    AsController,
}

impl Role {
    /// The name of the `ClusterRole`.
    pub fn name(self) -> &'static str {
        match self {
            Self::DsApply => "ds-apply",
            Self::AsController => "ds-apply-as-controller",
        }
    }

    /// The file that contains the `ClusterRole`.
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
    /// The permission.
    pub permission: Permission,
    /// The DaemonSets whose objects it is for; `None` is all of them.
    pub names: Option<BTreeSet<DaemonSetName>>,
    /// The purpose.
    pub purpose: Purpose,
    /// Whether the run requires it.
    pub weight: Weight,
    /// The `ClusterRole` that grants it.
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
    /// The access to review for one object.
    fn of(&self, name: Option<&DaemonSetName>) -> Access {
        let Permission { verb, resource, namespace } = self.permission.clone();
        let name = name.map(|name| match resource {
            Resource::Of(Kind::Lease) => lease_name(name.as_str()),
            Resource::Of(Kind::DaemonSetRecord) => record_name(name),
            Resource::Approvals => approvals_name(name),
            Resource::Of(_)
            | Resource::PodLog
            | Resource::PriorityClass
            | Resource::AccessReview
            | Resource::Version => name.to_string(),
        });
        Access { verb, resource, namespace, name }
    }

    /// Whether the object is created by a POST. RBAC does not know the name of such an object, so no
    /// role can permit that by name.
    fn is_posted(&self) -> bool {
        self.permission.verb == Create
            && matches!(self.permission.resource, Resource::Of(Kind::Lease | Kind::DaemonSetRecord))
    }
}

/// The permissions that all errands need, each once, in the order of verbs.
pub fn needs(errands: &[Errand]) -> Vec<Need> {
    let mut all = Needs::default();
    for errand in errands {
        all.add(errand);
    }
    all.0.into_values().collect()
}

#[derive(Default)]
struct Needs(BTreeMap<Permission, Need>);

/// Verbs on a kind in the errand's namespace, with their purpose.
type Row = (&'static [Verb], Kind, Purpose);

use Verb::{Create, Delete, Get, List, Patch, Watch};

/// Resources that every run reads.
const ALWAYS: [Row; 3] = [
    (&[List], Kind::Pod, Purpose::Read),
    (&[List], Kind::DaemonSet, Purpose::Read),
    (&[List], Kind::ControllerRevision, Purpose::Read),
];

/// Resources that are watched during a rollout.
const FOLLOWED: [Row; 2] =
    [(&[Watch], Kind::Pod, Purpose::Watch), (&[Watch], Kind::ControllerRevision, Purpose::Watch)];

/// Permissions of the in-process controller.
const AS_CONTROLLER: [Row; 3] = [
    (&[Get, List, Watch, Create, Patch], Kind::DaemonSetRecord, Purpose::DaemonSetRecord),
    (&[Get, Create, Patch, Delete], Kind::Pod, Purpose::Controller),
    (&[Get, Create, Patch, Delete], Kind::ControllerRevision, Purpose::Controller),
];

impl Needs {
    fn add(&mut self, errand: &Errand) {
        self.read(errand);
        self.rows(errand, &[(&[Get, Create, Patch], Kind::Lease, Purpose::Lock)]);
        let follows = match errand.work {
            Work::Look | Work::Remove => false,
            Work::Change { .. } | Work::Roll | Work::Share | Work::Release => true,
        };
        if follows {
            self.cluster_wide(Watch, Kind::Node, Purpose::Watch, Weight::Required);
            self.rows(errand, &FOLLOWED);
        }
        let begins = matches!(errand.work, Work::Change { .. } | Work::Roll);
        if begins && errand.neighbours {
            for verb in [List, Watch] {
                self.cluster_wide(verb, Kind::Pod, Purpose::Neighbours, Weight::Required);
            }
        }
        match errand.managed_by {
            ManagedBy::DaemonSetController => self.beside_a_controller(errand),
            ManagedBy::DsApply => self.as_controller(errand),
        }
    }

    fn read(&mut self, errand: &Errand) {
        self.cluster_wide(List, Kind::Node, Purpose::Read, Weight::Required);
        self.cluster_wide(List, Kind::Namespace, Purpose::NodeSelectors, Weight::Optional);
        self.put(Need {
            permission: Permission {
                verb: Get,
                resource: Resource::PriorityClass,
                namespace: None,
            },
            names: None,
            purpose: Purpose::PriorityClasses,
            weight: Weight::Optional,
            role: Role::DsApply,
        });
        self.rows(errand, &ALWAYS);
        for (kind, purpose) in
            [(Kind::Service, Purpose::Services), (Kind::Lease, Purpose::FailedTemplates)]
        {
            self.optional(errand, List, Resource::Of(kind), purpose);
        }
        if errand.work == Work::Remove {
            // DaemonSets that are no longer in the source may be in any namespace.
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
            Work::Share => self.rows(errand, &[watch]),
            Work::Change { creates } => {
                self.approvals(errand);
                self.pre_pull(errand);
                let annotate = (&[Patch][..], Kind::ControllerRevision, Purpose::Annotate);
                self.rows(errand, &[watch, apply, replace, annotate]);
                if creates {
                    self.rows(errand, &[(&[Create], Kind::DaemonSet, Purpose::Create)]);
                }
                self.reported_by_the_server(errand);
            }
            Work::Roll => {
                self.approvals(errand);
                self.pre_pull(errand);
                self.rows(errand, &[watch, replace]);
                self.reported_by_the_server(errand);
            }
            Work::Release => self.rows(errand, &[watch, apply]),
            Work::Remove => self.rows(errand, &[(&[Delete], Kind::DaemonSet, Purpose::Prune)]),
        }
    }

    /// Pods that pull images are created by this program, too.
    fn pre_pull(&mut self, errand: &Errand) {
        if errand.pre_pulls {
            let create = (&[Create, Delete][..], Kind::Pod, Purpose::PrePull);
            self.rows(errand, &[create]);
        }
    }

    /// Reading the approvals of steps: required if the policy asks for some. Where `ds-apply` is the
    /// controller, it never does.
    fn approvals(&mut self, errand: &Errand) {
        let (verb, resource) = (Get, Resource::Approvals);
        self.put(Need {
            permission: Permission { verb, resource, namespace: Some(errand.namespace.clone()) },
            names: errand.name.clone().map(|name| [name].into()),
            purpose: Purpose::Approvals,
            weight: if errand.approvals { Weight::Required } else { Weight::Optional },
            role: Role::DsApply,
        });
    }

    /// Optional permissions, for reports.
    fn reported_by_the_server(&mut self, errand: &Errand) {
        self.optional(errand, Create, Resource::Of(Kind::Pod), Purpose::TryPods);
        self.optional(errand, Watch, Resource::Of(Kind::Event), Purpose::Complaints);
        self.optional(errand, List, Resource::Of(Kind::Event), Purpose::PodWarnings);
        self.optional(errand, Get, Resource::PodLog, Purpose::Logs);
    }

    fn as_controller(&mut self, errand: &Errand) {
        match errand.work {
            Work::Look => {
                self.rows(errand, &[(&[List], Kind::DaemonSetRecord, Purpose::Read)]);
            }
            Work::Share => {
                self.rows(errand, &[(&[List, Watch], Kind::DaemonSetRecord, Purpose::Watch)]);
            }
            Work::Change { creates: _ } | Work::Roll | Work::Release => {
                self.rows(errand, &AS_CONTROLLER);
            }
            Work::Remove => {
                self.rows(errand, &[(&[Delete], Kind::DaemonSetRecord, Purpose::Prune)]);
            }
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

    /// A permission with several purposes is listed with the one that requires it.
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

/// The names to review: roles can limit some resources to named objects (`resourceNames`).
fn names(verb: Verb, kind: Kind, errand: &Errand) -> Option<BTreeSet<DaemonSetName>> {
    let has_its_name = match kind {
        Kind::DaemonSet | Kind::Lease | Kind::DaemonSetRecord => true,
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
    let is_its = matches!(purpose, Purpose::DaemonSetRecord | Purpose::Controller)
        || kind == Kind::DaemonSetRecord;
    // Every run deletes pods.
    let is_shared = kind == Kind::Pod && verb == Delete;
    if is_its && !is_shared { Role::AsController } else { Role::DsApply }
}

/// A needed permission and the result of its review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The needed permission.
    pub need: Need,
    /// The server's verdict.
    pub verdict: Verdict,
}

impl Finding {
    /// Whether a required permission is denied.
    pub fn is_missing(&self) -> bool {
        self.need.weight == Weight::Required && self.verdict == Verdict::Denied
    }
}

/// Reviews all permissions in one go. A denied permission that a role can limit to named objects is
/// reviewed again for each name.
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

/// The verdict for all of these names: allowed only if each is allowed or not needed.
async fn of_each(
    cluster: &WritableCluster,
    need: &Need,
    names: &BTreeSet<DaemonSetName>,
) -> Verdict {
    let verdicts = if need.is_posted() {
        vec![Verdict::Denied; names.len()]
    } else {
        cluster.review(names.iter().map(|name| need.of(Some(name))).collect()).await
    };
    for (name, verdict) in names.iter().zip(verdicts) {
        let permitted = verdict == Verdict::Allowed || is_there(cluster, need, name).await;
        if !permitted {
            return verdict;
        }
    }
    Verdict::Allowed
}

/// Whether it is for the creation of a Lease that already exists.
async fn is_there(cluster: &WritableCluster, need: &Need, name: &DaemonSetName) -> bool {
    let Permission { verb, resource, namespace } = &need.permission;
    let Some(namespace) = namespace else { return false };
    let makes_lease = *verb == Create && *resource == Resource::Of(Kind::Lease);
    let key = DaemonSetKey::new(namespace.clone(), name.clone());
    makes_lease && matches!(cluster.live().lease(&key).await, Ok(Some(_)))
}

#[cfg(test)]
mod tests;
