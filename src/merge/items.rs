//! The elements of sets and keyed lists, and what each is known by (upstream:
//! `listItemToPathElement`). Duplicates are told apart from the rest, because stored objects have
//! some. Elements that nothing can be known by are passed over; no valid object has one.

use serde_json::Value;

use super::schema::Shape;
use crate::model::{Literal, PathStep};

/// A list's elements in order, each with the step that leads to it.
#[derive(Debug, Default)]
pub(super) struct Items<'v> {
    list: Vec<(PathStep, &'v Value)>,
    /// Positions in the list, by step; of one step in order.
    sorted: Vec<usize>,
    /// The elements at those positions.
    values: Vec<&'v Value>,
}

impl<'v> Items<'v> {
    /// The elements of `value`, none when it is no list.
    pub(super) fn of(shape: Shape, value: Option<&'v Value>) -> Self {
        let elements = value.and_then(Value::as_array).into_iter().flatten();
        let known = elements.filter_map(|element| Some((step_to(shape, element)?, element)));
        let list: Vec<_> = known.collect();
        let mut sorted: Vec<usize> = (0..list.len()).collect();
        sorted.sort_by_key(|at| &list[*at].0);
        let values = sorted.iter().map(|at| list[*at].1).collect();
        Self { list, sorted, values }
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
        let start = self.sorted.partition_point(|at| self.list[*at].0 < *step);
        let same = self.sorted[start..].iter().take_while(|at| self.list[**at].0 == *step);
        &self.values[start..start + same.count()]
    }

    /// Each step once, sorted.
    pub(super) fn steps(&self) -> impl Iterator<Item = &PathStep> {
        self.sorted
            .chunk_by(|a, b| self.list[*a].0 == self.list[*b].0)
            .map(|same| &self.list[same[0]].0)
    }

    /// Whether any element is known by `step`.
    pub(super) fn has(&self, step: &PathStep) -> bool {
        !self.all(step).is_empty()
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
