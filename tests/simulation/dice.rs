//! Random seed: all random choices come from it (splitmix64).

/// A sequence of numbers that is the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    /// The sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high - low + 1)
    }

    /// True with a probability of one in `sides`.
    pub(crate) fn one_in(&mut self, sides: u64) -> bool {
        self.draw().is_multiple_of(sides)
    }

    /// A random element.
    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let at = usize::try_from(self.draw() % all.len() as u64).unwrap();
        all[at].clone()
    }
}
