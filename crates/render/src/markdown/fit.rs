//! Divides the length of a document between its parts: each part has several variants, and the
//! longest one that leaves room for the other parts is used.
//!
//! A variant counts what it leaves out itself.

/// The variants of one part, from the longest to the shortest.
pub(super) type LengthVariants = Vec<String>;

/// The parts that say something, each in its chosen variant; and the positions of those that are
/// left out, because not even their shortest variant fits.
pub(super) fn fitted(parts: &[LengthVariants], room: usize) -> (Vec<String>, Vec<usize>) {
    let chosen = fit(parts, room);
    let left_out = (0..chosen.len()).filter(|part| chosen[*part].is_none()).collect();
    let shown = chosen.into_iter().flatten().filter(|it| !it.is_empty());
    (shown.map(str::to_owned).collect(), left_out)
}

/// The chosen variant of each part.
///
/// First all parts get their shortest variant, in order; then, level by level, a longer one, in the
/// same order. So no part shows values before all parts show names.
fn fit(parts: &[LengthVariants], room: usize) -> Vec<Option<&str>> {
    let mut left = room;
    let mut chosen: Vec<Option<&str>> = vec![None; parts.len()];
    let steps = parts.iter().map(Vec::len).max().unwrap_or(0);
    for step in 0..steps {
        for (part, slot) in parts.iter().zip(&mut chosen) {
            let Some(telling) = part.iter().rev().nth(step) else { continue };
            let longer = telling.len() + SEPARATOR;
            let now = slot.map_or(0, |telling| telling.len() + SEPARATOR);
            if longer <= left + now {
                left = left + now - longer;
                *slot = Some(telling);
            }
        }
    }
    chosen
}

/// An empty line between parts.
const SEPARATOR: usize = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variants(lengths: &[usize]) -> LengthVariants {
        lengths.iter().map(|length| "x".repeat(*length)).collect()
    }

    fn lengths(parts: &[&[usize]], room: usize) -> Vec<usize> {
        let parts: Vec<LengthVariants> = parts.iter().map(|lengths| variants(lengths)).collect();
        fit(&parts, room).into_iter().map(|telling| telling.map_or(0, str::len)).collect()
    }

    #[test]
    fn the_longest_variant_that_leaves_room_for_the_others() {
        for (rule, parts, room, want) in [
            ("room for all", &[&[20, 5][..], &[9][..]][..], 100, &[20, 9][..]),
            ("all in short first", &[&[20, 5], &[20, 5]], 28, &[5, 5]),
            ("then the first in full", &[&[20, 5], &[20, 5]], 29, &[20, 5]),
            ("what has no room is left out", &[&[50, 40], &[20, 5]], 30, &[0, 20]),
            ("level by level", &[&[30, 10, 1], &[30, 10, 1]], 26, &[10, 10]),
            ("nothing", &[&[]], 9, &[0]),
        ] {
            assert_eq!(lengths(parts, room), want, "{rule}");
        }
    }

    proptest! {
        #[test]
        fn never_more_than_there_is_room(
            parts in prop::collection::vec(prop::collection::vec(0..50_usize, 0..4), 0..12),
            room in 0..200_usize,
        ) {
            let parts: Vec<LengthVariants> = parts.iter().map(|lengths| variants(lengths)).collect();
            let shown: Vec<&str> = fit(&parts, room).into_iter().flatten().collect();
            prop_assert!(shown.join("\n\n").len() <= room);
        }
    }
}
