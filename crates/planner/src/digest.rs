//! Digests of JSON values, whatever the order of their fields.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use daemonset::controller::revision_data::{canonical_json, template_of};
use daemonset::model::Revision;

/// Returns the digest of a pod template; templates with the same revision data have the same
/// digest.
pub fn template_digest(template: &Value) -> String {
    json_digest(template)
}

/// Whether a revision has the template with this digest.
pub(crate) fn is_of_template(revision: &Revision, digest: &str) -> bool {
    template_of(&revision.data).is_some_and(|template| template_digest(&template) == digest)
}

/// Returns the digest of a JSON value.
pub(crate) fn json_digest(value: &Value) -> String {
    text(&Sha256::digest(canonical_json(value)))
}

/// `sha256:` and the digest in hexadecimal.
pub(crate) fn text(digest: &[u8]) -> String {
    digest.iter().fold(String::from("sha256:"), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
