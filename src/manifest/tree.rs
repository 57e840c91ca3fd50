//! A document as a tree of values that know their places.
//!
//! Aliases share the node that their anchor names, so that a tree is never larger than its text.

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
    /// Where the value begins.
    pub(super) at: Mark,
    /// Nodes and bytes of text in it, with aliases counted in full.
    pub(super) weight: usize,
    /// How deep lists and mappings nest in it; 0 for a scalar.
    pub(super) height: usize,
    pub(super) data: Data,
}

#[derive(Clone, Debug)]
pub(super) enum Data {
    Scalar(Value),
    List(Vec<Rc<Node>>),
    Map(BTreeMap<String, Entry>),
}

/// A mapping's value, and where its key stands.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key_at: Mark,
    pub(super) node: Rc<Node>,
    /// Whether it came in by a merge key (`<<`).
    pub(super) merged: bool,
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

    /// The value without its places.
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

    /// The text under `key`.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.data {
            Data::Scalar(Value::String(text)) => Some(text),
            Data::Scalar(_) | Data::List(_) | Data::Map(_) => None,
        }
    }

    /// Where the field `path` stands, such as `spec.containers[0].env` or `limits[cpu]`. A
    /// field that is not there is placed at the nearest parent that is.
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

    /// Follows the first segment of `path`: the value there, its key's place when it has a key,
    /// and the path after it.
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
