//! Sets of fields and their operations (upstream: `fieldpath.Set`).
//!
//! A field can be a member, have members below it, or both. Membership is not recursive: the owner
//! of a list element need not own its fields. Not here: the serialized format (`fields_v1`).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::field_path::{FieldPath, PathStep};
use super::schema::Shape;

/// A set of fields. No child is empty, so equal sets compare equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    members: BTreeSet<PathStep>,
    children: BTreeMap<PathStep, FieldSet>,
}

impl FieldSet {
    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Whether the field itself is in the set.
    pub fn has(&self, path: &FieldPath) -> bool {
        let Some((last, parents)) = path.0.split_last() else { return false };
        self.at(parents).is_some_and(|set| set.members.contains(last))
    }

    /// Whether the field or any field below it is in the set.
    pub fn touches(&self, path: &FieldPath) -> bool {
        self.has(path) || self.at(&path.0).is_some_and(|set| !set.is_empty())
    }

    /// All fields of the set, parents before their children.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<PathStep>, paths: &mut Vec<FieldPath>) {
        for member in &self.members {
            prefix.push(member.clone());
            paths.push(FieldPath(prefix.clone()));
            prefix.pop();
        }
        for (step, child) in &self.children {
            prefix.push(step.clone());
            child.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// The set below a path.
    fn at(&self, path: &[PathStep]) -> Option<&Self> {
        path.iter().try_fold(self, |set, step| set.children.get(step))
    }

    /// Adds a field. The root is not a field: no manager owns a whole object.
    pub(super) fn insert(&mut self, path: &[PathStep]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut set = self;
        for step in parents {
            set = set.children.entry(step.clone()).or_default();
        }
        set.members.insert(last.clone());
    }

    /// Whether the field at this step is in the set.
    pub(super) fn has_member(&self, step: &PathStep) -> bool {
        self.members.contains(step)
    }

    /// The set below one step, when it is not empty.
    pub(super) fn child(&self, step: &PathStep) -> Option<&Self> {
        self.children.get(step)
    }

    /// The fields one step down, in order.
    pub(super) fn members(&self) -> impl Iterator<Item = &PathStep> {
        self.members.iter()
    }

    /// The non-empty sets one step down, in order.
    pub(super) fn children(&self) -> impl Iterator<Item = (&PathStep, &Self)> {
        self.children.iter()
    }

    /// Adds a field one step down.
    pub(super) fn add_member(&mut self, step: PathStep) {
        self.members.insert(step);
    }

    /// Adds a field at `step` that is not in the set yet, and the fields below it.
    pub(super) fn add(&mut self, step: PathStep, is_member: bool, below: Self) {
        if is_member {
            self.members.insert(step.clone());
        }
        if !below.is_empty() {
            self.children.insert(step, below);
        }
    }

    /// Adds all fields of `below` under `step`.
    pub(super) fn add_child(&mut self, step: PathStep, below: Self) {
        if below.is_empty() {
            return;
        }
        match self.children.entry(step) {
            Entry::Vacant(child) => {
                child.insert(below);
            }
            Entry::Occupied(mut child) => child.get_mut().extend(&below),
        }
    }

    /// Adds all fields of another set.
    pub(super) fn extend(&mut self, other: &Self) {
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        for member in &other.members {
            if !self.members.contains(member) {
                self.members.insert(member.clone());
            }
        }
        for (step, below) in &other.children {
            match self.children.get_mut(step) {
                Some(child) => child.extend(below),
                None => self.add_child(step.clone(), below.clone()),
            }
        }
    }

    /// The union of both sets.
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.extend(other);
        all
    }

    /// The intersection of both sets.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let both = |(step, below): (&PathStep, &Self)| {
            let below = below.intersection(other.children.get(step)?);
            (!below.is_empty()).then(|| (step.clone(), below))
        };
        Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: self.children.iter().filter_map(both).collect(),
        }
    }

    /// The difference of both sets, field by field: without a parent, the fields below it stay.
    pub(super) fn difference(&self, other: &Self) -> Self {
        let rest = |(step, below): (&PathStep, &Self)| {
            let below = match other.children.get(step) {
                Some(gone) => below.difference(gone),
                None => below.clone(),
            };
            (!below.is_empty()).then(|| (step.clone(), below))
        };
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: self.children.iter().filter_map(rest).collect(),
        }
    }

    /// The difference of both sets, also without all fields below those of `other`.
    pub(super) fn recursive_difference(&self, other: &Self) -> Self {
        let rest = |(step, below): (&PathStep, &Self)| {
            if other.members.contains(step) {
                return None;
            }
            let below = match other.children.get(step) {
                Some(gone) => below.recursive_difference(gone),
                None => below.clone(),
            };
            (!below.is_empty()).then(|| (step.clone(), below))
        };
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: self.children.iter().filter_map(rest).collect(),
        }
    }

    /// The set with every named field that has members below it (upstream:
    /// `EnsureNamedFieldsAreMembers`): entries of maps and elements of lists are not added.
    #[must_use]
    pub(super) fn with_named_parents(self, shape: Shape<'_>) -> Self {
        let Self { mut members, children } = self;
        members.extend(children.keys().filter(|step| shape.names(step)).cloned());
        let children = children.into_iter().map(|(step, below)| {
            let below = below.with_named_parents(shape.step(&step));
            (step, below)
        });
        Self { members, children: children.collect() }
    }
}

impl FromIterator<FieldPath> for FieldSet {
    fn from_iter<I: IntoIterator<Item = FieldPath>>(paths: I) -> Self {
        let mut set = Self::default();
        paths.into_iter().for_each(|path| set.insert(&path.0));
        set
    }
}
