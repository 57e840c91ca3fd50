//! Transfers ownership from client-side apply, or from other managers, to a manager that uses
//! server-side apply (upstream: `csaupgrade.UpgradeManagedFields`).
//!
//! Without it, fields that kubectl once wrote stay: server-side apply removes only fields that its
//! own manager applied before.

use super::field_path::FieldPath;
use super::managers::{Entry, ManagedFields, Manager, Operation};
use super::schema::Schema;

/// The annotation in which client-side apply stores the last applied object.
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl ManagedFields {
    /// The names of managers that used client-side apply: they own the annotation with the last
    /// applied object (upstream: kubectl's `migrateToSSAIfNecessary`).
    pub fn client_side_appliers(&self) -> Vec<&str> {
        let annotation = FieldPath::of_fields(["metadata", "annotations", LAST_APPLIED_ANNOTATION]);
        let updates = self.0.iter().filter(|entry| entry.manager.operation == Operation::Update);
        let mut names: Vec<_> = updates
            .filter(|entry| entry.fields.has(&annotation))
            .map(|entry| entry.manager.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The ownership after all fields that the managers `from` own by updates are transferred to
    /// `to` as applied fields. One manager after the other, by name.
    #[must_use]
    pub fn migrated(&self, from: &[&str], to: &str) -> Self {
        let mut names = from.to_vec();
        names.sort_unstable();
        names.dedup();
        names.into_iter().fold(self.clone(), |all, name| all.migrated_from(name, to)).tidied()
    }

    fn migrated_from(mut self, from: &str, to: &str) -> Self {
        let is = |entry: &Entry, name: &str, operation| {
            let Manager { name: own, operation: how, subresource, .. } = &entry.manager;
            own == name && *how == operation && subresource.is_empty()
        };
        let updates = |entry: &Entry| is(entry, from, Operation::Update);
        let target = |entry: &Entry| is(entry, to, Operation::Apply);
        let Some(at) = self.0.iter().position(target).or_else(|| self.0.iter().position(updates))
        else {
            return self;
        };
        let version = self.0[at].manager.api_version.clone();
        // Entries in other API versions are lost; the server drops them anyway.
        let same_version = |entry: &&Entry| updates(entry) && entry.manager.api_version == version;
        let gained = self.0.iter().find(same_version).map(|entry| entry.fields.clone());
        let entry = &mut self.0[at];
        entry.manager.operation = Operation::Apply;
        to.clone_into(&mut entry.manager.name);
        entry.fields = entry.fields.union(&gained.unwrap_or_default());
        self.0.retain(|entry| !updates(entry));
        self
    }

    /// The ownership after `to` has forced conflicts with the managers `from`: it owns all their
    /// fields, except those in `status`. A superset of `migrated`: kubectl has no counterpart for
    /// managers that use server-side apply themselves.
    #[must_use]
    pub fn transferred(&self, schema: &Schema, from: &[&str], to: &str) -> Self {
        let mut all = self.migrated(from, to);
        let is_source = |entry: &Entry| {
            let Manager { name, operation, api_version, subresource } = &entry.manager;
            *operation == Operation::Apply
                && from.contains(&name.as_str())
                && name != to
                && *api_version == schema.api_version
                && subresource.is_empty()
        };
        let sources = all.0.iter().filter(|entry| is_source(entry)).cloned().collect::<Vec<_>>();
        all.0.retain(|entry| !is_source(entry));
        for source in sources {
            let manager = Manager { name: to.to_owned(), ..source.manager };
            let own = all.get(&manager).map(|own| own.fields.clone()).unwrap_or_default();
            let fields = own.union(&source.fields);
            all.replace(Entry { manager, time: source.time, fields });
        }
        all.tidied()
    }
}
