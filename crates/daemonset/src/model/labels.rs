//! Label maps, small and shared: 30,000 daemon pods carry the same few dozen texts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A map of texts, as labels, selectors, annotations and amounts of resources are: sorted by key, each
/// key once. Clones share it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels(pub(super) Arc<Pairs>);

/// Keys and values apart: the nodes of a cluster have few lists of keys, and share them.
#[derive(Default, PartialEq, Eq, Hash)]
pub(super) struct Pairs {
    /// Sorted, each once.
    pub(super) keys: Arc<[ArcStr]>,
    /// In the order of their keys.
    pub(super) values: Box<[ArcStr]>,
}

impl Labels {
    /// The labels with these keys, sorted and each once, and their values.
    pub(super) fn of(keys: Arc<[ArcStr]>, values: Vec<ArcStr>) -> Self {
        Self(Arc::new(Pairs { keys, values: values.into() }))
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.shared(key).map(|value| &**value)
    }

    /// The value under `key`, shared instead of copied.
    pub fn shared(&self, key: &str) -> Option<&ArcStr> {
        // Most keys differ in length, so for lists of dozens this is faster than a binary search.
        let at = self.0.keys.iter().position(|other| **other == *key)?;
        Some(&self.0.values[at])
    }

    /// All pairs, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.keys.iter().zip(&self.0.values).map(|(k, v)| (&**k, &**v))
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.0.keys.is_empty()
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.0.keys.len()
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// If a key occurs twice, the last value is kept.
impl<K: Into<ArcStr>, V: Into<ArcStr>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter().map(|(key, value)| (key.into(), value.into()));
        let (keys, values) = sorted(pairs.collect()).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        Self::of(keys.into(), values)
    }
}

pub(super) fn sorted(mut pairs: Vec<(ArcStr, ArcStr)>) -> Vec<(ArcStr, ArcStr)> {
    // The pairs are usually sorted already. The sort is stable: the last of equal keys is kept.
    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    pairs.reverse();
    pairs.dedup_by(|(a, _), (b, _)| a == b);
    pairs.reverse();
    pairs
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = Option::<BTreeMap<String, Option<String>>>::deserialize(deserializer)?;
        let pairs = pairs.unwrap_or_default().into_iter();
        Ok(pairs.map(|(k, v)| (k, v.unwrap_or_default())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_keys_stays_and_keys_are_sorted() {
        let labels: Labels = [("b", "1"), ("a", "2"), ("b", "3")].into_iter().collect();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!((labels.get("b"), labels.get("c")), (Some("3"), None));
    }
}
