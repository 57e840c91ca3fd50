//! Maps by names and uids: a cluster has tens of thousands of them, and each look at it asks for
//! every one.

use std::collections::{HashMap, HashSet};

/// A map by name or uid. Its hash takes a fraction of the standard one's time on short texts, and
/// has a seed of its own in each process, as that has.
pub type TextMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A set of names or texts, hashed likewise.
pub type TextSet<K> = HashSet<K, foldhash::fast::RandomState>;
