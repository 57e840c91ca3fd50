//! Random numbers that are the same in every run.

/// A stream of numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream of one entity of a test. Each has its own, so adding an entity changes no other
    /// stream.
    pub fn of(test: &str, entity: &str) -> Self {
        // FNV-1a: the same on every machine and with every compiler.
        let bytes = test.bytes().chain([0]).chain(entity.bytes());
        let seed = bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::seeded(seed)
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of `items`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// The next number, below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(limit).unwrap()).unwrap()
    }
}

#[test]
fn every_entity_has_its_own_stream() {
    let first = |test, entity| {
        let mut random = Random::of(test, entity);
        [random.below(1 << 30), random.below(1 << 30)]
    };
    assert_eq!(first("test", "node-1"), first("test", "node-1"));
    assert_ne!(first("test", "node-1"), first("test", "node-2"));
    assert_ne!(first("test", "node-1"), first("other", "node-1"));
}
