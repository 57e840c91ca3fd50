//! The elements of sets and keyed lists, each with its path element (upstream:
//! `listItemToPathElement`). Duplicates are supported, because stored objects have some. Elements
//! without a key are skipped; no valid object has one.

use serde_json::Value;

use super::field_path::{Literal, PathStep};
use super::schema::Shape;

/// The elements of a list in order, each with the step that leads to it.
#[derive(Debug, Default)]
pub(super) struct Items<'v> {
    list: Vec<(PathStep, &'v Value)>,
    /// Positions in `list`, sorted by step; those of the same step are in order.
    sorted: Vec<usize>,
    /// The elements at those positions.
    values: Vec<&'v Value>,
}

impl<'v> Items<'v> {
    /// The elements of `value`; none when it is not a list.
    pub(super) fn of(shape: Shape<'_>, value: Option<&'v Value>) -> Self {
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

    /// Number of elements.
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

    /// Whether `step` leads to any element.
    pub(super) fn has(&self, step: &PathStep) -> bool {
        !self.all(step).is_empty()
    }
}

/// The step that leads to an element of a list; `None` if it has no key.
pub(super) fn step_to(shape: Shape<'_>, element: &Value) -> Option<PathStep> {
    match shape {
        Shape::Keyed(keys, _) => keys.of(element),
        Shape::Set => {
            let plain = !(element.is_null() || element.is_array() || element.is_object());
            plain.then(|| PathStep::Value(Literal::from(element)))
        }
        Shape::Scalar | Shape::Atomic | Shape::Map | Shape::Struct(_) => None,
    }
}
