//! Checks, asked of a real Prometheus that scrapes exporters of the test; they need no Kubernetes.
//!
//! A range query sees what happened while nobody was asking. What the server does not know, or does
//! not say, is unknown.

mod asking;
mod command;
mod exporter;
mod prometheus;

pub(crate) use asking::scraped;
pub(crate) use exporter::Exporter;
pub(crate) use prometheus::Prometheus;
