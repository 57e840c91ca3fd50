//! The syntax of label keys and label values (upstream: `content.IsLabelKey`,
//! `content.IsLabelValue`). Only yes or no; messages belong to validation.

/// Maximum length of the name part of a key, and of a value.
const MAX_NAME: usize = 63;

/// Maximum length of the prefix of a key (upstream: `DNS1123SubdomainMaxLength`).
const MAX_PREFIX: usize = 253;

/// Whether `key` is `NAME` or `PREFIX/NAME`, where the prefix is a DNS subdomain.
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

/// Whether `value` is empty, or has the syntax of a name in a key.
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

/// At most 63 characters of `[A-Za-z0-9._-]`, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.len() <= MAX_NAME && text.bytes().all(inner) && has_alphanumeric_ends(text)
}

/// Lower-case DNS labels joined by dots (RFC 1123).
fn is_dns_subdomain(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= MAX_PREFIX
        && text.split('.').all(|label| label.bytes().all(inner) && has_alphanumeric_ends(label))
}

fn has_alphanumeric_ends(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|end| end.is_some_and(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_follow_upstream() {
        let long = "a".repeat(64);
        for (text, key, value) in [
            ("app", true, true),
            ("App_1.x-y", true, true),
            ("example.com/app", true, false),
            ("Example.com/app", false, false),
            ("example..com/app", false, false),
            ("-a.b/app", false, false),
            ("a/b/c", false, false),
            ("/app", false, false),
            ("a/", false, false),
            ("", false, true),
            ("-5", false, false),
            ("+5", false, false),
            ("5", true, true),
            ("a b", false, false),
            (&long, false, false),
            (&long[1..], true, true),
        ] {
            assert_eq!((is_label_key(text), is_label_value(text)), (key, value), "{text:?}");
        }
    }
}
