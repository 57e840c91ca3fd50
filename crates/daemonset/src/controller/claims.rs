//! Claims pods and revisions for DaemonSets (upstream: `ClaimObject`, `FilterPodsByOwner`).
//!
//! The same rules apply to both. The live re-read before an adoption and the patches are elsewhere.

use super::Owner;
use crate::model::{ControllerRef, Labels, Pod, Revision, TextMap, Uid};

/// The properties of an object that the claiming rules use.
pub trait Claimable {
    /// `metadata.labels`, which the selector matches.
    fn labels(&self) -> &Labels;
    /// The owner reference with `controller: true`.
    fn controller(&self) -> Option<&ControllerRef>;
    /// Whether it is being deleted; such an orphan is not adopted.
    fn is_terminating(&self) -> bool;
    /// Whether a reference to `owner`'s uid is sufficient for ownership.
    fn is_of(&self, reference: &ControllerRef, owner: &Owner<'_>) -> bool;
}

impl Claimable for Pod {
    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn controller(&self) -> Option<&ControllerRef> {
        self.controller.as_deref()
    }

    fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// Pods are indexed by kind, name **and** uid.
    fn is_of(&self, reference: &ControllerRef, owner: &Owner<'_>) -> bool {
        owner.is_named_by(reference)
    }
}

impl Claimable for Revision {
    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn controller(&self) -> Option<&ControllerRef> {
        self.controller.as_deref()
    }

    fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// Revisions are not indexed; only the uid is compared.
    fn is_of(&self, reference: &ControllerRef, owner: &Owner<'_>) -> bool {
        Some(&reference.uid) == owner.uid
    }
}

/// The controller's decision about one object of its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Owned, and the selector matches; kept even while terminating.
    Keep,
    /// An orphan that matches, such as one of a deleted DaemonSet; it is adopted.
    Adopt,
    /// Owned, but the selector no longer matches; the owner reference is removed.
    Release,
    /// Owned by another controller, or an orphan that does not match or is being deleted.
    Ignore,
}

/// Decides on one object of the owner's namespace (upstream: `ClaimObject`).
pub fn claim<T: Claimable>(owner: &Owner<'_>, object: &T) -> Claim {
    let matches = || owner.spec.selector.matches(object.labels());
    match object.controller() {
        Some(reference) if !object.is_of(reference, owner) => Claim::Ignore,
        Some(_) if matches() => Claim::Keep,
        Some(_) if owner.terminating => Claim::Ignore,
        Some(_) => Claim::Release,
        None if owner.terminating || object.is_terminating() || !matches() => Claim::Ignore,
        None => Claim::Adopt,
    }
}

/// The objects that a DaemonSet claims, borrowed from the snapshot.
#[derive(Clone, Debug)]
pub struct Claims<'a, T> {
    /// Kept and adopted objects, in the given order: the input of later decisions.
    pub claimed: Vec<&'a T>,
    /// The objects of [`Claims::claimed`] that are still orphans.
    pub adopted: Vec<&'a T>,
    /// Owned objects that are released.
    pub released: Vec<&'a T>,
}

impl<'a, T: Claimable> Claims<'a, T> {
    /// The claims of `owner` among `candidates`, all of its namespace.
    pub fn of(owner: &Owner<'_>, candidates: impl IntoIterator<Item = &'a T>) -> Self {
        let mut claims = Self { claimed: Vec::new(), adopted: Vec::new(), released: Vec::new() };
        for object in candidates {
            match claim(owner, object) {
                Claim::Keep => claims.claimed.push(object),
                Claim::Adopt => {
                    claims.claimed.push(object);
                    claims.adopted.push(object);
                }
                Claim::Release => claims.released.push(object),
                Claim::Ignore => {}
            }
        }
        claims
    }
}

/// The objects of one namespace by the uid of their controller, so that claiming does not scan
/// every object for each DaemonSet (upstream: `PodControllerIndex`).
#[derive(Clone, Debug)]
pub struct OwnerIndex<'a, T> {
    by_owner: TextMap<&'a Uid, Vec<&'a T>>,
    orphans: Vec<&'a T>,
}

impl<'a, T: Claimable> OwnerIndex<'a, T> {
    /// Indexes the objects of one namespace.
    pub fn new(objects: impl IntoIterator<Item = &'a T>) -> Self
    where
        T: 'a,
    {
        let mut index = Self { by_owner: TextMap::default(), orphans: Vec::new() };
        for object in objects {
            match object.controller() {
                Some(reference) => index.by_owner.entry(&reference.uid).or_default().push(object),
                None => index.orphans.push(object),
            }
        }
        index
    }

    /// The objects that `owner` may claim: its own objects, then the orphans, each in the order of
    /// the index.
    pub fn candidates(&self, owner: &Owner<'_>) -> impl Iterator<Item = &'a T> {
        let own = owner.uid.and_then(|uid| self.by_owner.get(uid));
        own.into_iter().flatten().chain(&self.orphans).copied()
    }

    /// Claims for `owner`.
    pub fn claims(&self, owner: &Owner<'_>) -> Claims<'a, T> {
        Claims::of(owner, self.candidates(owner))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::controller::test_cluster::{Cluster, OTHERS, OURS, labels, pod};

    /// A reference with this kind, name and uid.
    fn reference(kind: &str, name: &str, uid: &str) -> Arc<ControllerRef> {
        ControllerRef { kind: kind.into(), name: name.into(), uid: uid.into() }.into()
    }

    #[test]
    fn claim_pods() {
        let ours = || Some(reference("DaemonSet", "foo", "uid-foo"));
        let foreign = || Some(reference("DaemonSet", "foo", "uid-of-an-earlier-foo"));
        for (name, pairs, controller, terminating, owner_terminating, want) in [
            ("Claim pods with correct label", OURS, None, false, false, Claim::Adopt),
            ("Claim pods with correct label, other", OTHERS, None, false, false, Claim::Ignore),
            ("Controller marked for deletion", OURS, None, false, true, Claim::Ignore),
            ("Controller marked for deletion, own", OURS, ours(), false, true, Claim::Keep),
            (
                "Controller marked for deletion, mismatch",
                OTHERS,
                ours(),
                false,
                true,
                Claim::Ignore,
            ),
            ("owned by another controller", OURS, foreign(), false, false, Claim::Ignore),
            ("releases when selector doesn't match", OTHERS, ours(), false, false, Claim::Release),
            ("own pod marked for deletion", OURS, ours(), true, false, Claim::Keep),
            ("orphaned pod marked for deletion", OURS, None, true, false, Claim::Ignore),
            (
                "another kind of our uid is not in the index",
                OURS,
                Some(reference("ReplicaSet", "foo", "uid-foo")),
                false,
                false,
                Claim::Ignore,
            ),
            (
                "another name of our uid is not in the index",
                OURS,
                Some(reference("DaemonSet", "bar", "uid-foo")),
                false,
                false,
                Claim::Ignore,
            ),
        ] {
            let mut cluster = Cluster::of(0);
            cluster.daemon_set.terminating = owner_terminating;
            let owner = Owner::from(&cluster.daemon_set);
            let pod = Pod { labels: labels(pairs), controller, terminating, ..pod("p", "n") };
            assert_eq!(claim(&owner, &pod), want, "{name}");
        }
    }

    #[test]
    fn a_daemon_set_that_does_not_exist_yet_claims_orphans_only() {
        let cluster = Cluster::of(0);
        let owner = Owner { uid: None, ..Owner::from(&cluster.daemon_set) };
        let theirs = Pod { controller: Some(cluster.reference()), ..pod("p", "n") };
        assert_eq!(claim(&owner, &theirs), Claim::Ignore);
        assert_eq!(claim(&owner, &pod("p", "n")), Claim::Adopt);
    }

    #[test]
    fn the_index_changes_no_claim() {
        let mut cluster = Cluster::of(0);
        cluster.add_pods("n", OURS, 2);
        cluster.add_pods("n", OTHERS, 1);
        cluster.pods.push(pod("orphan", "n"));
        let foreign = Some(reference("DaemonSet", "bar", "uid-bar"));
        cluster.pods.push(Pod { controller: foreign, ..pod("foreign", "n") });
        let owner = Owner::from(&cluster.daemon_set);
        let index = OwnerIndex::new(&cluster.pods);
        assert_eq!(index.candidates(&owner).count(), 4, "the foreign one is not a candidate");
        let (indexed, all) = (index.claims(&owner), Claims::of(&owner, &cluster.pods));
        assert_eq!(indexed.claimed, all.claimed);
        assert_eq!(indexed.adopted, all.adopted);
        assert_eq!(indexed.released, all.released);
        assert_eq!((all.claimed.len(), all.adopted.len(), all.released.len()), (3, 1, 1));
    }
}
