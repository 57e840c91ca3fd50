//! Label maps, small and shared: 30,000 daemon pods carry the same few dozen texts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ControllerRef, TextSet};

/// A map of labels (or of `nodeSelector` pairs): sorted by key, each key once. Clones share it.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<Pairs>);

/// Keys and values apart: the nodes of a cluster have few lists of keys, and share them.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Pairs {
    /// Sorted, each once.
    keys: Arc<[ArcStr]>,
    /// In the order of their keys.
    values: Box<[ArcStr]>,
}

impl Labels {
    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.shared(key).map(|value| &**value)
    }

    /// The value under `key`, shared instead of copied.
    pub fn shared(&self, key: &str) -> Option<&ArcStr> {
        // Most keys differ in length, so for short lists this is faster than a binary search.
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
        Self(Arc::new(Pairs { keys: keys.into(), values: values.into() }))
    }
}

fn sorted(mut pairs: Vec<(ArcStr, ArcStr)>) -> Vec<(ArcStr, ArcStr)> {
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

/// Keeps one copy of each text while a snapshot is read.
#[derive(Debug, Default)]
pub struct Interner {
    texts: TextSet<ArcStr>,
    /// The lists of keys of all labels.
    keys: TextSet<Arc<[ArcStr]>>,
    /// The last labels, the newest first: a node has two kinds, its labels and its resources.
    recent: [Labels; 2],
    /// The last controller.
    controller: Option<Arc<ControllerRef>>,
}

impl Interner {
    /// The one shared copy of `text`.
    pub fn share(&mut self, text: &str) -> ArcStr {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new = ArcStr::from(text);
        self.texts.insert(new.clone());
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
            let pairs = pairs.map(|(key, value)| (self.share(key), self.share(value)));
            let (keys, values) = sorted(pairs.collect()).into_iter().unzip::<_, _, _, Vec<_>>();
            let keys = self.share_keys(keys);
            let new = Labels(Arc::new(Pairs { keys, values: values.into() }));
            self.recent.rotate_right(1);
            self.recent[0] = new;
        }
        self.recent[0].clone()
    }

    fn share_keys(&mut self, keys: Vec<ArcStr>) -> Arc<[ArcStr]> {
        if let Some(known) = self.keys.get(&*keys) {
            return Arc::clone(known);
        }
        let new: Arc<[ArcStr]> = keys.into();
        self.keys.insert(Arc::clone(&new));
        new
    }

    /// The controller of an object. Neighbours in a list often have the same one and share it.
    pub fn controller(&mut self, kind: &str, name: &str, uid: &str) -> Arc<ControllerRef> {
        let is_same =
            |it: &&Arc<ControllerRef>| it.uid == uid && it.name == name && it.kind == kind;
        if let Some(known) = self.controller.as_ref().filter(is_same) {
            return Arc::clone(known);
        }
        let new = ControllerRef { kind: self.share(kind), name: self.share(name), uid: uid.into() };
        Arc::clone(self.controller.insert(Arc::new(new)))
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
        assert!(ArcStr::ptr_eq(&a, &b));
    }
}
