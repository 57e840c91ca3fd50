//! A parsed document as a tree of values with their positions.
//!
//! Aliases share the node of their anchor, so that a tree is never larger than its text.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

/// A position in a file: line and column in characters, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// One value of a document.
#[derive(Debug)]
pub(super) struct Node {
    /// Position of the value.
    pub(super) at: Mark,
    /// Number of nodes and bytes of text in the value, with aliases expanded.
    pub(super) weight: usize,
    /// Depth of nested lists and mappings; 0 for a scalar.
    pub(super) height: usize,
    pub(super) data: Data,
}

#[derive(Clone, Debug)]
pub(super) enum Data {
    Scalar(Value),
    List(Vec<Rc<Node>>),
    Map(BTreeMap<String, Entry>),
}

/// A value of a mapping, and the position of its key.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key_at: Mark,
    pub(super) node: Rc<Node>,
    /// Position of the key in this mapping; `None` if only a merge key (`<<`) provides it.
    pub(super) written_at: Option<Mark>,
}

impl Node {
    pub(super) fn scalar(at: Mark, value: Value) -> Self {
        let text = value.as_str().map_or(0, str::len);
        Self { at, weight: text.saturating_add(1), height: 0, data: Data::Scalar(value) }
    }

    pub(super) fn list(at: Mark, items: Vec<Rc<Self>>) -> Self {
        let (weight, height) = totals(items.iter());
        Self { at, weight, height, data: Data::List(items) }
    }

    pub(super) fn map(at: Mark, entries: BTreeMap<String, Entry>) -> Self {
        let (weight, height) = totals(entries.values().map(|entry| &entry.node));
        Self { at, weight, height, data: Data::Map(entries) }
    }

    /// The value as JSON, without positions.
    pub(super) fn to_value(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::List(items) => items.iter().map(|item| item.to_value()).collect(),
            Data::Map(entries) => Value::Object(
                entries.iter().map(|(key, entry)| (key.clone(), entry.node.to_value())).collect(),
            ),
        }
    }

    /// The value under `key`, if this is a mapping that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Rc<Self>> {
        match &self.data {
            Data::Map(entries) => entries.get(key).map(|entry| &entry.node),
            Data::Scalar(_) | Data::List(_) => None,
        }
    }

    /// The string under `key`.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.data {
            Data::Scalar(Value::String(text)) => Some(text),
            Data::Scalar(_) | Data::List(_) | Data::Map(_) => None,
        }
    }

    /// The position of the field `path`, such as `spec.containers[0].env` or `limits[cpu]`. For an
    /// absent field, the position of the nearest parent.
    pub(super) fn mark_of(&self, path: &str) -> Mark {
        let (mut node, mut mark, mut rest) = (self, self.at, path);
        while let Some((next, key_at, after)) = node.step(rest) {
            (node, rest) = (next, after);
            mark = match (&node.data, key_at) {
                (Data::Scalar(value), _) if !value.is_null() => node.at,
                (_, Some(key_at)) => key_at,
                (_, None) => node.at,
            };
        }
        mark
    }

    /// Follows the first segment of `path`: returns the value there, the position of its key if it
    /// has one, and the rest of the path.
    fn step<'a, 'p>(&'a self, path: &'p str) -> Option<(&'a Self, Option<Mark>, &'p str)> {
        if path.is_empty() {
            return None;
        }
        let path = path.strip_prefix('.').unwrap_or(path);
        match &self.data {
            Data::Scalar(_) => None,
            Data::List(items) => {
                let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
                Some((items.get(index.parse::<usize>().ok()?)?, None, rest))
            }
            Data::Map(entries) => {
                let (key, rest) = match path.strip_prefix('[') {
                    Some(inner) => inner.split_once(']')?,
                    None => path.split_at(path.find(['.', '[']).unwrap_or(path.len())),
                };
                let entry = entries.get(key)?;
                Some((&entry.node, Some(entry.key_at), rest))
            }
        }
    }
}

fn totals<'a>(children: impl Iterator<Item = &'a Rc<Node>>) -> (usize, usize) {
    let (weight, height) = children.fold((1_usize, 0), |(weight, height), child| {
        (weight.saturating_add(child.weight), child.height.max(height))
    });
    (weight, height + 1)
}
