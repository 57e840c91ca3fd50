//! Label maps, small and shared: 30,000 daemon pods carry the same few dozen texts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::TextSet;

/// A map of labels (or of `nodeSelector` pairs): sorted by key, each key once. Clones share it.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.shared(key).map(|value| &**value)
    }

    /// The value under `key`, shared instead of copied.
    pub fn shared(&self, key: &str) -> Option<&Arc<str>> {
        // Most keys differ in length, so for short lists this is faster than a binary search.
        self.0.iter().find(|(other, _)| **other == *key).map(|(_, value)| value)
    }

    /// All pairs, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (&**k, &**v))
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// If a key occurs twice, the last value is kept.
impl<K: Into<Arc<str>>, V: Into<Arc<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter().map(|(key, value)| (key.into(), value.into()));
        let mut pairs: Vec<(Arc<str>, Arc<str>)> = pairs.collect();
        // The pairs are usually sorted already. The sort is stable: the last of equal keys is kept.
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        pairs.reverse();
        pairs.dedup_by(|(a, _), (b, _)| a == b);
        pairs.reverse();
        Self(pairs.into())
    }
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

/// Keeps one copy of each text while a snapshot is read.
#[derive(Debug, Default)]
pub struct Interner {
    texts: TextSet<Arc<str>>,
    /// The last labels, the newest first: a node has two kinds, its labels and its resources.
    recent: [Labels; 2],
}

impl Interner {
    /// The one shared copy of `text`.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }

    /// The labels of these pairs. Neighbours in a list, such as the pods of one DaemonSet, often
    /// have equal labels and share them.
    pub fn labels<'t>(
        &mut self,
        pairs: impl ExactSizeIterator<Item = (&'t str, &'t str)> + Clone,
    ) -> Labels {
        let is_equal = |recent: &Labels| {
            pairs.len() == recent.len() && pairs.clone().zip(recent.iter()).all(|(a, b)| a == b)
        };
        if let Some(at) = self.recent.iter().position(is_equal) {
            self.recent[..=at].rotate_right(1);
        } else {
            let new = pairs.map(|(key, value)| (self.share(key), self.share(value))).collect();
            let [first, _] = std::mem::take(&mut self.recent);
            self.recent = [new, first];
        }
        self.recent[0].clone()
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

    #[test]
    fn neighbours_share_equal_labels() {
        let mut interner = Interner::default();
        let pairs = [("a", "1"), ("b", "2")];
        let mut labels =
            |pairs: &[(&'static str, &'static str)]| interner.labels(pairs.iter().copied());
        let (first, same) = (labels(&pairs), labels(&pairs));
        assert!(Arc::ptr_eq(&first.0, &same.0));
        // Those of another kind come between.
        labels(&[("cpu", "8")]);
        assert!(Arc::ptr_eq(&labels(&pairs).0, &first.0));
        for other in [&[("a", "1")][..], &[("a", "1"), ("b", "3")], &[]] {
            assert_eq!(labels(other), other.iter().copied().collect());
        }
    }

    #[test]
    fn interning_shares_equal_texts() {
        let mut interner = Interner::default();
        let (a, b) = (interner.share("zone"), interner.share("zone"));
        assert!(Arc::ptr_eq(&a, &b));
    }
}
