//! Whether pages of lists are asked for uncompressed.
//!
//! Compression costs the server a sixth of the time that it needs for a page, and saves nothing
//! where the connection is fast. So pages are uncompressed once an answer came from nearby, or a page
//! arrived fast although it was compressed; until an uncompressed page does not arrive fast.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// The speed of a fast connection in bytes per second: a fifth of Gigabit Ethernet.
const FAST: u128 = 25 << 20;

/// The longest time between a request and its answer from nearby: from the same data centre, and not
/// through the internet.
const NEARBY: Duration = Duration::from_millis(5);

/// The smallest answer whose speed is measured, in bytes. Servers compress answers of 128 KiB and
/// more.
const MEASURED: usize = 256 << 10;

/// What is known of the connection.
#[derive(Debug, Default)]
pub(super) struct Link(AtomicU8);

/// The states, in their only order.
const UNKNOWN: u8 = 0;
const IS_FAST: u8 = 1;
const IS_SLOW: u8 = 2;

impl Link {
    /// Whether compression is only a cost.
    pub(super) fn is_fast(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IS_FAST
    }

    /// Notes the time from a request to the beginning of its answer.
    pub(super) fn answered(&self, took: Duration) {
        if took <= NEARBY {
            self.advance(UNKNOWN, IS_FAST);
        }
    }

    /// Notes the size of a page after decompression, and the time in which it arrived.
    pub(super) fn observe(&self, bytes: usize, took: Duration, was_plain: bool) {
        if bytes < MEASURED {
            return;
        }
        let is_fast = bytes as u128 * 1_000_000 >= FAST * took.as_micros();
        let (from, to) = match (was_plain, is_fast) {
            (false, true) => (UNKNOWN, IS_FAST),
            (true, false) => (IS_FAST, IS_SLOW),
            (true, true) | (false, false) => return,
        };
        self.advance(from, to);
    }

    fn advance(&self, from: u8, to: u8) {
        // Another answer may have been first, with the same right.
        let _ = self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_plain_while_they_arrive_fast() {
        const PAGE: usize = 4 << 20;
        let (fast, slow) = (Duration::from_millis(160), Duration::from_millis(161));
        for (pages, want) in [
            (&[][..], false),
            (&[(PAGE, fast, false)], true),
            (&[(PAGE, slow, false)], false),
            (&[(PAGE, slow, false), (PAGE, fast, false)], true),
            // Too small to tell.
            (&[(MEASURED - 1, Duration::ZERO, false)], false),
            (&[(PAGE, fast, false), (PAGE, fast, true)], true),
            // Compressed pages in flight say nothing about plain ones.
            (&[(PAGE, fast, false), (PAGE, slow, false)], true),
            (&[(PAGE, fast, false), (PAGE, slow, true)], false),
            // Not tried again.
            (&[(PAGE, fast, false), (PAGE, slow, true), (PAGE, fast, false)], false),
        ] {
            let link = Link::default();
            for (bytes, took, was_plain) in pages {
                link.observe(*bytes, *took, *was_plain);
            }
            assert_eq!(link.is_fast(), want, "{pages:?}");
        }
    }

    #[test]
    fn pages_from_nearby_are_plain_until_one_is_slow() {
        for (took, want) in [(4, true), (5, true), (6, false)] {
            let link = Link::default();
            link.answered(Duration::from_millis(took));
            assert_eq!(link.is_fast(), want, "{took} ms");
            link.observe(4 << 20, Duration::from_secs(1), want);
            link.answered(Duration::ZERO);
            assert_eq!(link.is_fast(), !want, "slow, after {took} ms");
        }
    }
}
