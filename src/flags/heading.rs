//! Headings of the help text.

pub(crate) const SOURCE: &str = "Source";
pub(crate) const CLUSTER: &str = "Cluster";
pub(crate) const NARROW: &str = "Narrowing";
pub(crate) const OUTPUT: &str = "Output";
