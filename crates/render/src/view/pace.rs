//! The pace of a wave as text.

use crate::neutral;
use daemonset::model::{MinReady, Ramp};
use planner::plan::Wave;
use planner::words::{count, grouped};

/// `, first a-01 alone, then 2, 4 and so on, at most 42 at a time`; nothing for a single node.
pub(super) fn pace(wave: &Wave) -> String {
    let [first, _, ..] = &wave.nodes[..] else { return String::new() };
    let first = neutral::line(first.as_str());
    let rounds: Vec<u32> = wave.rounds().collect();
    let most = rounds.iter().copied().max().unwrap_or_default();
    let mut sizes: Vec<u32> = rounds.iter().copied().filter(|size| *size > 1).collect();
    sizes.dedup();
    let at_most = grouped(most);
    match (wave.ramp, most, &rounds[..], &sizes[..]) {
        (Ramp::None, ..) => format!(", at most {} at a time", grouped(wave.at_a_time())),
        (Ramp::Double, 0 | 1, ..) => ", at most 1 at a time".to_owned(),
        (Ramp::Double, _, [_, second], _) => format!(", first {first} alone, then {second}"),
        (Ramp::Double, _, [_, second, third], _) if second != third => {
            format!(", first {first} alone, then {second}, then {third}")
        }
        (Ramp::Double, _, _, [_]) => {
            format!(", first {first} alone, then at most {at_most} at a time")
        }
        (Ramp::Double, _, _, [2, last] | [2, last, ..]) if *last == most => {
            format!(", first {first} alone, then 2, at most {at_most} at a time")
        }
        (Ramp::Double, ..) => {
            format!(", first {first} alone, then 2, 4 and so on, at most {at_most} at a time")
        }
    }
}

/// `; each new pod must stay up for 10s`; empty if new pods need not stay up.
pub(super) fn stays_up(wave: &Wave) -> String {
    let MinReady { first, others } = wave.min_ready_seconds;
    match (wave.nodes.len(), first, others) {
        (0, ..) | (_, 0, 0) => String::new(),
        (1, first, _) => format!("; its new pod must stay up for {first}s"),
        (_, first, 0) => format!("; the first new pod must stay up for {first}s"),
        (_, first, others) if first == others => {
            format!("; each new pod must stay up for {first}s")
        }
        (_, first, others) => {
            format!("; the first new pod must stay up for {first}s, the others for {others}s")
        }
    }
}

/// The number of rounds of a wave; `None` without nodes.
pub(super) fn rounds(wave: &Wave) -> Option<String> {
    let rounds = wave.rounds().count();
    let at_a_time = usize::try_from(wave.at_a_time()).unwrap_or(usize::MAX);
    (rounds > 0)
        .then(|| format!("{} of at most {}", count(rounds, "round"), count(at_a_time, "node")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(nodes: usize, max_unavailable: u32, ramp: Ramp) -> Wave {
        let nodes = (0..nodes).map(|at| format!("n-{at}").into()).collect();
        Wave { ramp, ..Wave::plain(1, max_unavailable, nodes) }
    }

    #[test]
    fn the_pace_of_a_wave() {
        for (nodes, budget, ramp, want) in [
            (1, 9, Ramp::Double, ""),
            (2, 1, Ramp::Double, ", at most 1 at a time"),
            (2, 9, Ramp::Double, ", at most 1 at a time"),
            (3, 9, Ramp::Double, ", first n-0 alone, then 2"),
            (7, 9, Ramp::Double, ", first n-0 alone, then 2, then 4"),
            (9, 2, Ramp::Double, ", first n-0 alone, then at most 2 at a time"),
            (20, 3, Ramp::Double, ", first n-0 alone, then 2, at most 3 at a time"),
            (50, 9, Ramp::Double, ", first n-0 alone, then 2, 4 and so on, at most 9 at a time"),
            (50, 9, Ramp::None, ", at most 9 at a time"),
            (9_000, 1_200, Ramp::None, ", at most 1,200 at a time"),
        ] {
            assert_eq!(pace(&wave(nodes, budget, ramp)), want, "{nodes} by {budget}");
        }
    }

    #[test]
    fn the_time_that_new_pods_must_stay_up() {
        for (nodes, first, others, want) in [
            (3, 0, 0, ""),
            (1, 10, 0, "; its new pod must stay up for 10s"),
            (3, 10, 0, "; the first new pod must stay up for 10s"),
            (3, 10, 10, "; each new pod must stay up for 10s"),
            (3, 10, 4, "; the first new pod must stay up for 10s, the others for 4s"),
        ] {
            let min_ready_seconds = MinReady { first, others };
            let wave = Wave { min_ready_seconds, ..wave(nodes, 1, Ramp::Double) };
            assert_eq!(stays_up(&wave), want);
        }
    }
}
