//! Durations of replacing pods, from the delete to the available pod, and the slowest nodes.

use std::cmp::Reverse;

use planner::rollout::Replaced;
use planner::words::count;

/// Number of the slowest nodes that are listed.
const NAMED: usize = 5;

/// The slowest nodes first; nodes with the same duration by name.
pub(super) fn slowest(replaced: &[Replaced]) -> impl Iterator<Item = &Replaced> {
    let mut all: Vec<&Replaced> = replaced.iter().collect();
    all.sort_by_key(|one| (Reverse(one.seconds), &one.node));
    all.into_iter().take(NAMED)
}

/// The lines about all durations, and about the slowest nodes if they differ from the others; none
/// if no pod was replaced.
pub(super) fn words(replaced: &[Replaced]) -> Vec<String> {
    let mut seconds: Vec<i64> = replaced.iter().map(|one| one.seconds).collect();
    seconds.sort_unstable();
    let [fastest, .., last] = seconds[..] else {
        let only = replaced.first();
        return only
            .map(|one| format!("1 node replaced in {}s", one.seconds))
            .into_iter()
            .collect();
    };
    let median = seconds[seconds.len() / 2];
    let all = count(replaced.len(), "node");
    if fastest == last {
        return vec![format!("{all} replaced, each in {last}s")];
    }
    if is_like(last, fastest) {
        return vec![format!("{all} replaced, each in {fastest}s to {last}s")];
    }
    let slow: Vec<String> =
        slowest(replaced).filter(|one| !is_like(one.seconds, median)).map(line).collect();
    let more = if slow.is_empty() { "" } else { "; the slowest:" };
    let first = format!("{all} replaced in {fastest}s to {last}s, the median in {median}s{more}");
    [first].into_iter().chain(slow).collect()
}

/// Whether one duration is at most half longer than another, or at most 2 s longer, the error of
/// rounding and of the time of observation.
fn is_like(one: i64, other: i64) -> bool {
    2 * one <= 3 * other || one - other <= 2
}

/// The line about one node, with known reasons for its duration.
fn line(one: &Replaced) -> String {
    let Replaced { node, wave: _, seconds, terminating, restarts } = one;
    let terminating = terminating.filter(|terminating| *terminating > 0);
    let terminating =
        terminating.map(|terminating| format!("its old pod gone after {terminating}s"));
    let restarts = match restarts {
        0 => None,
        1 => Some("its new pod restarted once".to_owned()),
        more => Some(format!("its new pod restarted {more} times")),
    };
    let known = [Some(format!("  {node}: {seconds}s")), terminating, restarts];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[i64]) -> Vec<Replaced> {
        let one = |(at, seconds): (usize, &i64)| Replaced {
            node: format!("n-{at}").as_str().into(),
            wave: Some(1),
            seconds: *seconds,
            terminating: None,
            restarts: 0,
        };
        times.iter().enumerate().map(one).collect()
    }

    #[test]
    fn only_outliers_are_listed() {
        for (times, want) in [
            (&[][..], &[][..]),
            (&[7], &["1 node replaced in 7s"]),
            (&[0, 0, 0], &["3 nodes replaced, each in 0s"]),
            (&[0, 2], &["2 nodes replaced, each in 0s to 2s"]),
            (&[9, 12, 10], &["3 nodes replaced, each in 9s to 12s"]),
            (&[3, 9, 9, 10], &["4 nodes replaced in 3s to 10s, the median in 9s"]),
            (
                &[9, 45, 10, 9, 60],
                &[
                    "5 nodes replaced in 9s to 60s, the median in 10s; the slowest:",
                    "  n-4: 60s",
                    "  n-1: 45s",
                ],
            ),
        ] {
            assert_eq!(words(&of(times)), want, "{times:?}");
        }
    }

    #[test]
    fn five_nodes_are_listed_the_slowest_first_then_by_name() {
        let mut times = vec![1; 20];
        times[3..10].copy_from_slice(&[7, 9, 7, 7, 7, 7, 8]);
        let replaced = of(&times);
        let named: Vec<&str> = slowest(&replaced).map(|one| one.node.as_str()).collect();
        assert_eq!(named, ["n-4", "n-9", "n-3", "n-5", "n-6"]);
        assert_eq!(words(&replaced).len(), 6);
    }

    #[test]
    fn known_reasons_are_shown() {
        let plain = of(&[40]).remove(0);
        for (terminating, restarts, want) in [
            (None, 0, "  n-0: 40s"),
            (Some(0), 0, "  n-0: 40s"),
            (Some(31), 0, "  n-0: 40s, its old pod gone after 31s"),
            (Some(31), 1, "  n-0: 40s, its old pod gone after 31s, its new pod restarted once"),
            (None, 2, "  n-0: 40s, its new pod restarted 2 times"),
        ] {
            assert_eq!(line(&Replaced { terminating, restarts, ..plain.clone() }), want);
        }
    }
}
