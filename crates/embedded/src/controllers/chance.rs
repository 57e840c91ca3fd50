//! Reproducible random numbers: a number between 0 and 1 from the seed and the purpose. One more
//! pod does not change the numbers of others.

/// Random seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 up to (not including) 1, for the purpose that these words name.
    pub(crate) fn share(self, words: &[&str]) -> f64 {
        let mut state = mix(self.0 ^ 0x9e37_79b9_7f4a_7c15);
        for byte in words.iter().flat_map(|word| word.bytes().chain([0])) {
            state = mix(state ^ u64::from(byte));
        }
        // The upper 53 bits are as many as a float holds.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let share = (state >> 11) as f64 / (1_u64 << 53) as f64;
        share
    }
}

/// The finaliser of `SplitMix64`.
fn mix(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_and_reproducible() {
        let chance = Chance::new(7);
        let shares: Vec<f64> =
            (0..1000).map(|n: u32| chance.share(&["pod", &n.to_string()])).collect();
        let below = shares.iter().filter(|share| **share < 0.25).count();
        assert!(shares.iter().all(|share| (0.0..1.0).contains(share)));
        assert!((200..300).contains(&below), "{below} of 1000 below a quarter");
        let same = |a: f64, b: f64| (a - b).abs() < f64::EPSILON;
        assert!(same(shares[5], chance.share(&["pod", "5"])));
        assert!(!same(shares[5], Chance::new(8).share(&["pod", "5"])));
        assert!(!same(chance.share(&["ab", "c"]), chance.share(&["a", "bc"])));
    }
}
