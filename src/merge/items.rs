//! The elements of sets and keyed lists, and what each is known by (upstream:
//! `listItemToPathElement`). Duplicates are told apart from the rest, because stored objects have
//! some. Elements that nothing can be known by are passed over; no valid object has one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::schema::Shape;
use crate::model::{Literal, PathStep};

/// A list's elements in order, each with the step that leads to it.
#[derive(Debug, Default)]
pub(super) struct Items<'v> {
    list: Vec<(PathStep, &'v Value)>,
    by_step: BTreeMap<PathStep, Vec<&'v Value>>,
}

impl<'v> Items<'v> {
    /// The elements of `value`, none when it is no list.
    pub(super) fn of(shape: Shape, value: Option<&'v Value>) -> Self {
        let mut items = Self::default();
        for element in value.and_then(Value::as_array).into_iter().flatten() {
            let Some(step) = step_to(shape, element) else { continue };
            items.by_step.entry(step.clone()).or_default().push(element);
            items.list.push((step, element));
        }
        items
    }

    /// All elements, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&PathStep, &'v Value)> {
        self.list.iter().map(|(step, element)| (step, *element))
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The element at a position.
    pub(super) fn at(&self, position: usize) -> Option<(&PathStep, &'v Value)> {
        self.list.get(position).map(|(step, element)| (step, *element))
    }

    /// All elements that `step` leads to.
    pub(super) fn all(&self, step: &PathStep) -> &[&'v Value] {
        self.by_step.get(step).map_or(&[], Vec::as_slice)
    }

    /// Each step once, sorted.
    pub(super) fn steps(&self) -> impl Iterator<Item = &PathStep> {
        self.by_step.keys()
    }

    /// Whether any element is known by `step`.
    pub(super) fn has(&self, step: &PathStep) -> bool {
        self.by_step.contains_key(step)
    }
}

/// What an element of a list is known by.
pub(super) fn step_to(shape: Shape, element: &Value) -> Option<PathStep> {
    match shape {
        Shape::Keyed(keys, _) => keys.of(element),
        Shape::Set => {
            let plain = !(element.is_null() || element.is_array() || element.is_object());
            plain.then(|| PathStep::Value(Literal::from(element)))
        }
        Shape::Scalar | Shape::Atomic | Shape::Map | Shape::Struct(_) => None,
    }
}
