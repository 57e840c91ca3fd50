//! Checks of a policy that somebody outside of the cluster answers: the question, and what came back.
//!
//! Asking is I/O, and elsewhere; so is the judgement of an answer. `nodeConditions` and `pods` are
//! questions only in a rehearsal: else the observed cluster answers them.

use jiff::{SignedDuration, Timestamp};

use super::{DaemonSetKey, NodeName, Soak};

/// A check to ask, with everything that its answer depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckQuestion {
    /// Name of the check in the policy.
    pub name: String,
    /// Whom to ask, and what.
    pub endpoint: CheckEndpoint,
    /// The DaemonSet: `{{namespace}}` and `{{name}}` of a query.
    pub daemon_set: DaemonSetKey,
    /// The nodes with an available new pod: `{{nodes}}` of a query.
    pub nodes: Vec<NodeName>,
    /// The other desired nodes: `{{others}}` of a query.
    pub others: Vec<NodeName>,
    /// Start of the range, by the server's clock.
    pub from: Timestamp,
    /// End of the range: now, by the server's clock.
    pub until: Timestamp,
    /// Time between two samples. At least one second.
    pub interval: Soak,
}

/// Points of a series at most. Prometheus itself allows 11,000.
const MOST_POINTS: u32 = 1_000;

impl CheckQuestion {
    /// Seconds between two samples: the interval, or the smallest multiple of it with which the range
    /// has at most 1,000 samples.
    pub fn step(&self) -> u32 {
        let interval = self.interval.0.max(1);
        let length = self.until.as_second() - self.from.as_second();
        let length = u32::try_from(length.max(0)).unwrap_or(u32::MAX);
        // The first sample is at the start.
        let multiple = length.div_ceil(interval.saturating_mul(MOST_POINTS - 1)).max(1);
        interval.saturating_mul(multiple)
    }

    /// The times of the samples, so many seconds apart. The last one is the end of the range: what
    /// has just become bad must not wait for the next step.
    pub fn times(&self, step: u32) -> impl Iterator<Item = Timestamp> + use<> {
        let until = self.until.max(self.from);
        let length = until.duration_since(self.from).as_secs();
        let step = i64::from(step.max(1));
        (0..=length / step).rev().filter_map(move |steps| {
            until.checked_sub(SignedDuration::from_secs(steps * step)).ok()
        })
    }
}

/// What answers a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckEndpoint {
    /// A range query (`/api/v1/query_range`).
    Prometheus {
        /// The server: `https://prom.example`, with an optional path prefix.
        address: String,
        /// The query, with its placeholders.
        query: String,
    },
    /// One request (`GET`).
    Http {
        /// The URL.
        url: String,
        /// The expected status.
        status: u16,
    },
    /// A program: exit status 0 is a pass, 1 a fail, everything else is unknown.
    Command(Vec<String>),
    /// The observed cluster. Nobody is asked, but in a rehearsal, where the fault file answers.
    Cluster,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckResponse {
    /// The points of a range query.
    Series(CheckSeries),
    /// One sample of an HTTP request or of a program, at a time.
    Sample {
        /// Time of the sample, by the server's clock.
        at: Timestamp,
        /// Whether it is as expected.
        is_expected: bool,
        /// What was seen instead, or as well: `status 503`, `exit status 1`. From others: escape it
        /// before it is shown.
        detail: String,
    },
    /// No answer that could be used.
    Unanswered(Unanswered),
}

/// The series of a range query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckSeries {
    /// Time between two points, in seconds: the interval, or a multiple of it in a long range.
    pub step: u32,
    /// The series.
    pub series: Vec<Series>,
    /// Warnings of the server: its answer may be incomplete.
    pub warnings: Vec<String>,
}

/// One series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its labels, as `name=value`, sorted. From others: escape them before they are shown.
    pub labels: Vec<String>,
    /// Its points, in order of time. Values may be NaN or infinite.
    pub points: Vec<(Timestamp, f64)>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// One sentence, without a full stop, that names the address without its credentials. Already
    /// safe to show.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn question(length: i64, interval: u32) -> CheckQuestion {
        CheckQuestion {
            name: String::new(),
            endpoint: CheckEndpoint::Command(Vec::new()),
            daemon_set: DaemonSetKey::new("a", "b"),
            nodes: Vec::new(),
            others: Vec::new(),
            from: Timestamp::UNIX_EPOCH,
            until: Timestamp::from_second(length).unwrap(),
            interval: Soak(interval),
        }
    }

    #[test]
    fn long_ranges_are_coarser() {
        for (length, interval, want) in [
            (0, 60, 60),
            (-5, 60, 60),
            (60, 0, 1),
            (999, 1, 1),
            (1_000, 1, 2),
            (7 * 86_400, 60, 660),
            (i64::from(u32::MAX), 1, 4_299_267),
            (253_402_207_200, u32::MAX, u32::MAX),
        ] {
            assert_eq!(question(length, interval).step(), want, "{length} by {interval}");
        }
    }

    #[test]
    fn samples_end_with_the_range() {
        for (length, step, want) in [
            (0, 60, &[0][..]),
            (-5, 60, &[0]),
            (59, 60, &[59]),
            (60, 60, &[0, 60]),
            (125, 60, &[5, 65, 125]),
            (2, 0, &[0, 1, 2]),
        ] {
            let times = question(length, 1).times(step).map(Timestamp::as_second);
            assert_eq!(times.collect::<Vec<_>>(), want, "{length} by {step}");
        }
    }

    proptest! {
        #[test]
        fn never_more_than_a_thousand_points(
            length in 0..i64::from(u32::MAX),
            interval in 1..100_000_u32,
        ) {
            let question = question(length, interval);
            let step = question.step();
            prop_assert_eq!(step % interval, 0);
            prop_assert!(question.times(step).count() <= 1_000);
            // And not coarser than that needs.
            let finer = i64::from(step - interval);
            prop_assert!(finer == 0 || length > finer * i64::from(MOST_POINTS - 1));
        }
    }
}
