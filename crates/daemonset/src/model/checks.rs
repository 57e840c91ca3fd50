//! Checks of a policy that somebody outside of the cluster answers: the question, and what came back.
//!
//! Asking is I/O, and elsewhere; so is the judgement of an answer. `nodeConditions` and `pods` are
//! not here: the observed cluster answers them.

use jiff::Timestamp;

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
