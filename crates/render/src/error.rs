//! The error of formats that are written by a library.

/// A document could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output cannot be written.
    #[error("cannot write the output")]
    Output(#[source] std::io::Error),
    /// Serializing to JSON failed.
    #[error("cannot write JSON")]
    Json(#[source] serde_json::Error),
    /// Encoding as OpenMetrics failed.
    #[error("cannot write metrics")]
    Metrics(#[source] std::fmt::Error),
    /// Serializing to YAML failed.
    #[error("cannot write YAML")]
    Yaml(#[source] serde_saphyr::ser::Error),
}
