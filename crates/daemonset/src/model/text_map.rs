//! Maps by names and uids: a cluster has tens of thousands of them, and each evaluation looks up
//! every one.

use std::collections::{HashMap, HashSet};

/// A map by name or uid. Its hash function is much faster than the standard one on short texts, and
/// is also seeded randomly in each process.
pub type TextMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A set of names or texts with the same hash function.
pub type TextSet<K> = HashSet<K, foldhash::fast::RandomState>;
