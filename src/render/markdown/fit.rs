//! How the parts of a document share its length: each is there in several tellings, and gets the
//! longest that leaves room for the others.
//!
//! Not here: what a telling leaves out, which it counts itself.

/// The tellings of one part, from the longest to the shortest.
pub(super) type Tellings = Vec<String>;

/// For each part the telling that it gets; `None` where not even the shortest has room.
///
/// First all get their shortest telling, in order; then, telling by telling, all get a longer one,
/// in the same order. So nobody gets values before everybody has names.
pub(super) fn fit(parts: &[Tellings], room: usize) -> Vec<Option<&str>> {
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

    fn tellings(lengths: &[usize]) -> Tellings {
        lengths.iter().map(|length| "x".repeat(*length)).collect()
    }

    fn lengths(parts: &[&[usize]], room: usize) -> Vec<usize> {
        let parts: Vec<Tellings> = parts.iter().map(|lengths| tellings(lengths)).collect();
        fit(&parts, room).into_iter().map(|telling| telling.map_or(0, str::len)).collect()
    }

    #[test]
    fn the_longest_telling_that_leaves_room_for_the_others() {
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
            let parts: Vec<Tellings> = parts.iter().map(|lengths| tellings(lengths)).collect();
            let shown: Vec<&str> = fit(&parts, room).into_iter().flatten().collect();
            prop_assert!(shown.join("\n\n").len() <= room);
        }
    }
}
