//! Uids and suffixes of generated names: random, but the same for the same seed.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The alphabet of a generated suffix (upstream: `k8s.io/apimachinery/pkg/util/rand`): without
/// vowels and ambiguous characters.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The length of a generated suffix.
const SUFFIX: usize = 5;

/// A sequence of random strings. Each is a digest of the seed and of its index.
#[derive(Clone, Debug)]
pub(super) struct Seeded {
    seed: u64,
    drawn: u64,
}

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// A version 4 UUID.
    pub(super) fn uid(&mut self) -> String {
        let mut bytes = self.draw();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut uid = String::with_capacity(36);
        for (at, byte) in bytes[..16].iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                uid.push('-');
            }
            // Writing to a string cannot fail.
            let _ = write!(uid, "{byte:02x}");
        }
        uid
    }

    /// A generated suffix of a name.
    pub(super) fn suffix(&mut self) -> String {
        let bytes = self.draw();
        let characters = bytes.chunks_exact(4).take(SUFFIX).map(|chunk| {
            let number = chunk.iter().fold(0_usize, |all, &byte| all << 8 | usize::from(byte));
            char::from(ALPHABET[number % ALPHABET.len()])
        });
        characters.collect()
    }

    fn draw(&mut self) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(self.seed.to_be_bytes());
        digest.update(self.drawn.to_be_bytes());
        self.drawn += 1;
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_texts_and_another_one_others() {
        let texts = |seed| {
            let mut seeded = Seeded::new(seed);
            [seeded.uid(), seeded.suffix(), seeded.uid(), seeded.suffix()]
        };
        assert_eq!(texts(1), texts(1));
        let [uid, suffix, next_uid, next_suffix] = texts(1);
        assert!(uid != next_uid && suffix != next_suffix && uid != texts(2)[0]);
        assert_eq!((uid.len(), &uid[14..15], suffix.len()), (36, "4", 5), "{uid} {suffix}");
        assert!(suffix.bytes().all(|byte| ALPHABET.contains(&byte)), "{suffix}");
    }
}
