//! An agent that exports metrics: what the test sets is what Prometheus scrapes.

use crate::harness::Served;

/// Serves `/metrics` on loopback until the test process ends.
pub(crate) struct Exporter(Served);

impl Exporter {
    /// An exporter without metrics.
    pub(crate) fn start() -> Self {
        Self(Served::start("text/plain; version=0.0.4"))
    }

    /// `127.0.0.1:PORT`, which is the label `instance` of its series.
    pub(crate) fn target(&self) -> String {
        self.0.address()
    }

    /// Sets all metrics: one line each, such as `agent_errors{node="a"} 0.5`.
    pub(crate) fn set(&self, metrics: &str) {
        self.0.set(format!("{metrics}\n"));
    }
}
