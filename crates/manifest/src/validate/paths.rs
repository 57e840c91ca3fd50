//! File paths in the manifest (upstream: `validateLocalDescendingPath` and related functions).

use super::at::{At, Errors};

/// Must not contain `..` as an element.
pub(super) fn no_backsteps(path: &At<'_>, errors: &mut Errors) {
    if climbs(path.text()) {
        errors.push(path.invalid("must not contain '..'"));
    }
}

/// Must be relative and not contain `..`.
pub(super) fn local_descending(path: &At<'_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    no_backsteps(path, errors);
}

/// Must be relative, not contain `..`, and not begin with two dots: the kubelet reserves such
/// names.
pub(super) fn local_non_reserved(path: &At<'_>, errors: &mut Errors) {
    local_descending(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        errors.push(path.invalid("must not start with '..'"));
    }
}

/// Must be permission bits, if set.
pub(super) fn file_mode(mode: &At<'_>, errors: &mut Errors) {
    if !(0..=0o777).contains(&mode.int()) {
        errors.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}

/// `true` if an element of the path is `..`.
pub(super) fn climbs(path: &str) -> bool {
    path.split('/').any(|element| element == "..")
}
