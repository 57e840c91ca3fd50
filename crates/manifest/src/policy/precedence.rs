//! Which DaemonSets come before others, by `after` of their policies.

use std::collections::{BTreeMap, BTreeSet};

use daemonset::model::DaemonSetKey;

/// The DaemonSets that come before others. It has no circles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precedence {
    /// `after` of the policy of each DaemonSet.
    after: BTreeMap<DaemonSetKey, Vec<DaemonSetKey>>,
    /// Every DaemonSet in an order in which they can be rolled out: by name where `after` permits.
    sequence: Vec<DaemonSetKey>,
}

impl Precedence {
    /// No DaemonSet comes before another one.
    pub const NONE: Self = Self { after: BTreeMap::new(), sequence: Vec::new() };

    /// Orders the DaemonSets; each predecessor has an entry of its own.
    ///
    /// # Errors
    /// A circle: each DaemonSet comes after the next one, and the last one after the first one.
    pub(super) fn of(
        after: BTreeMap<DaemonSetKey, Vec<DaemonSetKey>>,
    ) -> Result<Self, Vec<DaemonSetKey>> {
        let mut waits: BTreeMap<&DaemonSetKey, BTreeSet<&DaemonSetKey>> =
            after.iter().map(|(key, before)| (key, before.iter().collect())).collect();
        let mut followers: BTreeMap<&DaemonSetKey, Vec<&DaemonSetKey>> = BTreeMap::new();
        for (key, before) in &waits {
            for one in before {
                followers.entry(one).or_default().push(key);
            }
        }
        let free = waits.iter().filter(|(_, before)| before.is_empty());
        let mut free: BTreeSet<&DaemonSetKey> = free.map(|(key, _)| *key).collect();
        let mut sequence = Vec::with_capacity(after.len());
        while let Some(next) = free.pop_first() {
            waits.remove(next);
            sequence.push(next.clone());
            for follower in followers.get(next).into_iter().flatten() {
                if let Some(before) = waits.get_mut(follower) {
                    before.remove(next);
                    if before.is_empty() {
                        free.insert(follower);
                    }
                }
            }
        }
        match circle(&waits) {
            Some(circle) => Err(circle),
            None => Ok(Self { after, sequence }),
        }
    }

    /// The position of a DaemonSet in the order in which they are rolled out.
    pub fn rank(&self) -> impl Fn(&DaemonSetKey) -> usize + use<> {
        let ranks: BTreeMap<DaemonSetKey, usize> =
            self.sequence.iter().cloned().enumerate().map(|(at, key)| (key, at)).collect();
        move |key| ranks.get(key).copied().unwrap_or(usize::MAX)
    }

    /// The DaemonSets that come before this one, directly or not; the first ones first.
    pub fn before(&self, key: &DaemonSetKey) -> Vec<DaemonSetKey> {
        let mut before: BTreeSet<&DaemonSetKey> = BTreeSet::new();
        let mut open = vec![key];
        while let Some(one) = open.pop() {
            let direct = self.after.get(one).into_iter().flatten();
            open.extend(direct.filter(|one| before.insert(one)));
        }
        if before.is_empty() {
            return Vec::new();
        }
        self.sequence.iter().filter(|one| before.contains(one)).cloned().collect()
    }

    /// Whether no DaemonSet comes before another one.
    pub fn is_empty(&self) -> bool {
        self.after.values().all(Vec::is_empty)
    }
}

/// A circle among DaemonSets of which each waits for another one of them.
fn circle(waits: &BTreeMap<&DaemonSetKey, BTreeSet<&DaemonSetKey>>) -> Option<Vec<DaemonSetKey>> {
    let mut key = *waits.first_key_value()?.0;
    let mut seen: BTreeMap<&DaemonSetKey, usize> = BTreeMap::new();
    let mut path: Vec<DaemonSetKey> = Vec::new();
    loop {
        if let Some(start) = seen.insert(key, path.len()) {
            let mut circle = path.split_off(start);
            let least = circle.iter().enumerate().min_by_key(|(_, key)| *key).map(|(at, _)| at);
            circle.rotate_left(least.unwrap_or_default());
            return Some(circle);
        }
        path.push(key.clone());
        // Each of them waits for at least one of the others.
        key = waits.get(key)?.first()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> DaemonSetKey {
        DaemonSetKey::new("n", name)
    }

    /// DaemonSets as `a>b,c`: `a` comes after `b` and `c`.
    fn of(edges: &str) -> Result<Precedence, String> {
        let mut after: BTreeMap<DaemonSetKey, Vec<DaemonSetKey>> = BTreeMap::new();
        for edge in edges.split_whitespace() {
            let (one, before) = edge.split_once('>').unwrap_or((edge, ""));
            let before: Vec<DaemonSetKey> =
                before.split(',').filter(|it| !it.is_empty()).map(key).collect();
            for one in &before {
                after.entry(one.clone()).or_default();
            }
            after.entry(key(one)).or_default().extend(before);
        }
        Precedence::of(after).map_err(|circle| names(&circle))
    }

    fn names(keys: &[DaemonSetKey]) -> String {
        keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn predecessors_come_first_and_names_decide_the_rest() {
        for (edges, sequence, of_a) in [
            ("", "", ""),
            ("b a c", "a b c", ""),
            ("a>b b>c", "c b a", "c b"),
            ("a>z b", "b z a", "z"),
            ("a>b,c b>d c>d", "d b c a", "d b c"),
            ("a>b,b", "b a", "b"),
            ("x>a", "a x", ""),
        ] {
            let precedence = of(edges).unwrap();
            assert_eq!(names(&precedence.sequence), sequence, "{edges}");
            assert_eq!(names(&precedence.before(&key("a"))), of_a, "{edges}");
            let rank = precedence.rank();
            let ranks: Vec<usize> = precedence.sequence.iter().map(rank).collect();
            assert_eq!(ranks, (0..precedence.sequence.len()).collect::<Vec<_>>(), "{edges}");
            assert_eq!(precedence.is_empty(), !edges.contains('>'), "{edges}");
        }
    }

    #[test]
    fn a_circle_is_found_and_begins_with_its_first_name() {
        for (edges, circle) in [
            ("a>a", "a"),
            ("b>a a>b", "a b"),
            ("c>b b>d d>c", "b d c"),
            ("a>m m>z z>m b", "m z"),
            ("a>b,x x>y y>x", "x y"),
        ] {
            assert_eq!(of(edges).unwrap_err(), circle, "{edges}");
        }
    }
}
