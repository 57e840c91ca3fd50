//! Finds the end of an object in JSON text, so that one thread can split the text for the decoder
//! threads.
//!
//! Only strings and brackets matter here, 64 bytes at a time (after the first stage of simdjson,
//! Langdale and Lemire 2019). The decoder checks the syntax.

use wide::u8x16;

/// The bytes of a block, one bit each.
const BLOCK: usize = 64;

/// The scan of one object, whose text may come in pieces. Begins at its `{`.
#[derive(Debug, Default)]
pub(crate) struct ObjectScanner {
    depth: u32,
    /// All bits set when the last byte was within a string, else zero.
    in_string: u64,
    /// Whether the last byte was a backslash that escapes the next one.
    escaping: bool,
    /// Line breaks so far.
    breaks: usize,
    /// Bytes after the last line break, or all bytes without one.
    since_break: usize,
}

/// Bit masks of the bytes in a block; the first byte is the lowest bit.
struct Bits {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
    breaks: u64,
}

impl Bits {
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut bits = Self { quotes: 0, backslashes: 0, opening: 0, closing: 0, breaks: 0 };
        let (lanes, _) = block.as_chunks::<16>();
        for (at, lane) in lanes.iter().enumerate() {
            let bytes = u8x16::new(*lane);
            // Brackets and braces differ only in this bit.
            let braces = bytes | u8x16::splat(0x20);
            let equal = |bytes: u8x16, byte| {
                u64::from(bytes.simd_eq(u8x16::splat(byte)).to_bitmask()) << (at * 16)
            };
            bits.quotes |= equal(bytes, b'"');
            bits.backslashes |= equal(bytes, b'\\');
            bits.opening |= equal(braces, b'{');
            bits.closing |= equal(braces, b'}');
            bits.breaks |= equal(bytes, b'\n');
        }
        bits
    }
}

impl ObjectScanner {
    /// Scans the next bytes. Returns the end of the object in them, or `None` when it does not end.
    pub(crate) fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, chunk) in bytes.chunks(BLOCK).enumerate() {
            let mut padded = [b' '; BLOCK];
            let block = chunk.first_chunk().unwrap_or_else(|| {
                padded[..chunk.len()].copy_from_slice(chunk);
                &padded
            });
            if let Some(end) = self.end_in_block(block, chunk.len()) {
                return Some(at * BLOCK + end);
            }
        }
        None
    }

    /// The number of line breaks so far, and of bytes after the last one.
    pub(super) fn lines(&self) -> (usize, usize) {
        (self.breaks, self.since_break)
    }

    /// The end of the object in the first `length` bytes of a block, which is padded with blanks.
    fn end_in_block(&mut self, block: &[u8; BLOCK], length: usize) -> Option<usize> {
        let bits = Bits::of(block);
        let quotes = bits.quotes & !self.escaped(bits.backslashes, length);
        let within = parity(quotes) ^ self.in_string;
        self.in_string = if within >> (BLOCK - 1) == 1 { u64::MAX } else { 0 };
        let end = self.ends(bits.opening & !within, bits.closing & !within);
        self.count_lines(bits.breaks, end.unwrap_or(length));
        end
    }

    /// The bytes that a backslash escapes. Few blocks have any.
    fn escaped(&mut self, backslashes: u64, length: usize) -> u64 {
        let mut escaped = u64::from(self.escaping);
        if length > 0 {
            self.escaping = false;
        }
        let mut left = backslashes & !escaped;
        while left != 0 {
            let next = left.trailing_zeros() + 1;
            self.escaping = next as usize == length;
            let target = 1_u64.checked_shl(next).unwrap_or_default();
            escaped |= target;
            left &= left - 1;
            left &= !target;
        }
        escaped
    }

    /// Counts the brackets outside of strings. Returns the end if the outermost one is closed.
    fn ends(&mut self, opening: u64, closing: u64) -> Option<usize> {
        if self.depth > closing.count_ones() {
            self.depth = self.depth + opening.count_ones() - closing.count_ones();
            return None;
        }
        let mut brackets = opening | closing;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            brackets &= brackets - 1;
            if opening >> at & 1 == 1 {
                self.depth += 1;
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    return Some(at as usize + 1);
                }
            }
        }
        None
    }

    fn count_lines(&mut self, breaks: u64, length: usize) {
        let breaks = if length < BLOCK { breaks & ((1 << length) - 1) } else { breaks };
        if breaks == 0 {
            self.since_break += length;
        } else {
            self.breaks += breaks.count_ones() as usize;
            self.since_break = length - (BLOCK - breaks.leading_zeros() as usize);
        }
    }
}

/// A prefix xor: each bit is the parity of the bits up to it, so that the bits from one quote to
/// the next are set.
fn parity(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].into_iter().fold(bits, |parity, shift| parity ^ (parity << shift))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_hide_brackets() {
        for (text, want) in [
            ("{}", Some(2)),
            ("{},{}", Some(2)),
            (r#"{"a":[{"b":"}]"}]} "#, Some(18)),
            (r#"{"a":"\"}"}"#, Some(11)),
            (r#"{"a":"\\"}"#, Some(10)),
            (r#"{"a":"\\\"}"#, None),
            (r#"{"a":[1,2"#, None),
            ("{", None),
            // The decoder reports it, at the same byte.
            (r#"{"a":1]"#, Some(7)),
        ] {
            assert_eq!(ObjectScanner::default().end_in(text.as_bytes()), want, "{text}");
        }
    }

    /// The reference: scans byte by byte. Returns the end, line breaks, and bytes after the last.
    fn plainly(text: &[u8]) -> (Option<usize>, (usize, usize)) {
        let (mut depth, mut in_string, mut escaping) = (0, false, false);
        let (mut breaks, mut since_break) = (0, 0);
        for (at, byte) in text.iter().enumerate() {
            since_break += 1;
            match byte {
                b'\n' => (breaks, since_break) = (breaks + 1, 0),
                b'"' if !escaping => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth -= 1,
                _ => {}
            }
            // Outside of strings a backslash is an error, which the decoder finds.
            escaping = *byte == b'\\' && !escaping;
            if depth == 0 {
                return (Some(at + 1), (breaks, since_break));
            }
        }
        (None, (breaks, since_break))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn blocks_and_pieces_make_no_difference(
            text in r#"[\{\{\{\[\[\[\}\]"\\\\\\a\n]{0,300}"#,
            cuts in prop::collection::vec(0..302_usize, 0..6),
        ) {
            let text = format!("{{{text}");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut object_scanner = ObjectScanner::default();
            let in_pieces = cuts.windows(2).find_map(|piece| {
                let end = object_scanner.end_in(&text.as_bytes()[piece[0]..piece[1]])?;
                Some(piece[0] + end)
            });
            prop_assert_eq!((in_pieces, object_scanner.lines()), plainly(text.as_bytes()));
        }
    }
}
