//! Shares what many objects of a cluster have in common, while they are read.

use std::sync::Arc;

use arcstr::ArcStr;

use super::labels::sorted;
use super::{ControllerRef, Labels, TextSet};

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
            self.recent.rotate_right(1);
            self.recent[0] = Labels::of(self.share_keys(keys), values);
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
            |it: &&Arc<ControllerRef>| it.name == name && it.kind == kind && it.uid == uid;
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

    #[test]
    fn labels_with_the_same_keys_share_them() {
        let mut interner = Interner::default();
        let mut labels =
            |pairs: &[(&'static str, &'static str)]| interner.labels(pairs.iter().copied());
        let (first, other) = (labels(&[("a", "1"), ("b", "2")]), labels(&[("a", "1")]));
        let same = labels(&[("a", "3"), ("b", "4")]);
        assert!(Arc::ptr_eq(&first.0.keys, &same.0.keys));
        assert_eq!((other.get("b"), same.get("b")), (None, Some("4")));
    }

    #[test]
    fn neighbours_share_their_controller() {
        let mut interner = Interner::default();
        // Each differs from the one before in one field.
        for (kind, name, uid) in [
            ("DaemonSet", "a", "u"),
            ("ReplicaSet", "a", "u"),
            ("ReplicaSet", "b", "u"),
            ("ReplicaSet", "b", "v"),
        ] {
            let other = interner.controller(kind, name, uid);
            assert_eq!((&*other.kind, &*other.name), (kind, name));
            assert_eq!(other.uid, uid);
            assert!(Arc::ptr_eq(&other, &interner.controller(kind, name, uid)));
        }
    }
}
