//! Random choices that come out the same for the same seed.

/// The next of splitmix64's numbers, and choices made of them.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(limit).unwrap()).unwrap()
    }

    /// One of several.
    pub(crate) fn pick<'t, T>(&mut self, choices: &'t [T]) -> &'t T {
        &choices[self.below(choices.len())]
    }

    /// Each with even odds, in random order.
    pub(crate) fn some<T: Clone>(&mut self, choices: &[T]) -> Vec<T> {
        let mut left = choices.to_vec();
        let mut taken = Vec::new();
        while !left.is_empty() {
            let choice = left.remove(self.below(left.len()));
            if self.one_in(2) {
                taken.push(choice);
            }
        }
        taken
    }
}
