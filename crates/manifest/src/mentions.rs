//! Selects the files to parse: those that mention a kind that is read, in any spelling.
//!
//! A plain search of the bytes would miss `"Daemon\u0053et"` or `!!binary RGFlbW9uU2V0`, which YAML
//! parsers take for a DaemonSet. So escapes are resolved first, wherever they occur: at worst a
//! file is parsed in vain. Not here: the content of a file (`objects`).

use std::borrow::Cow;

use memchr::{memchr, memmem};

const DAEMON_SET: &[u8] = b"DaemonSet";
const ROLLOUT_POLICY: &[u8] = b"RolloutPolicy";
/// The kinds that are read.
const KINDS: [&[u8]; 2] = [DAEMON_SET, ROLLOUT_POLICY];
/// The same kinds in `!!binary`. The second one may end in other ways.
const IN_BASE64: [&[u8]; 2] = [b"RGFlbW9uU2V0", b"Um9sbG91dFBvbGlje"];
/// The beginning of an `apiVersion` of the project's own group; the keys of its labels and
/// annotations begin otherwise.
const OWN_VERSION: &[u8] = b"ds-plan.dev/v";
/// Byte order marks of UTF-16.
const UTF16: [[u8; 2]; 2] = [[0xFF, 0xFE], [0xFE, 0xFF]];

/// `true` if a file with these bytes is parsed: it mentions a kind that is read, or an `apiVersion`
/// of `ds-plan.dev`, or it is UTF-16.
pub fn is_read(bytes: &[u8]) -> bool {
    may_have_policy(bytes)
        || contains_any(bytes, [DAEMON_SET])
        || bytes.split(|&byte| byte == b'\n').any(misspells_daemon_set)
}

/// `true` if a file with these bytes may have a policy, or another object of `ds-plan.dev`.
pub(super) fn may_have_policy(bytes: &[u8]) -> bool {
    UTF16.iter().any(|mark| bytes.starts_with(mark))
        || contains_any(bytes, [ROLLOUT_POLICY])
        || has_own_version(bytes)
        || is_spelt_otherwise(bytes)
}

/// `true` for an `apiVersion` such as `ds-plan.dev/v1alpha1`: the file is parsed, so that an
/// unknown kind is reported.
fn has_own_version(bytes: &[u8]) -> bool {
    memmem::find_iter(bytes, OWN_VERSION)
        .any(|at| bytes.get(at + OWN_VERSION.len()).is_some_and(u8::is_ascii_digit))
}

/// `true` if a file with these bytes has a Namespace, as it is usually written.
///
/// Such a file is searched for namespaces even if it is not parsed for anything else.
pub fn has_namespace(bytes: &[u8]) -> bool {
    bytes.split(|&byte| byte == b'\n').any(|line| line.trim_ascii_end() == b"kind: Namespace")
}

/// `true` if the bytes may spell a kind that is read with escapes, or in base64.
pub(super) fn is_spelt_otherwise(bytes: &[u8]) -> bool {
    let plain = unescaped(bytes);
    let has_escapes = matches!(plain, Cow::Owned(_));
    if has_escapes && contains_any(&plain, KINDS) && !contains_any(bytes, KINDS) {
        return true;
    }
    if memchr(b'!', bytes).is_none() {
        return false; // without a tag, base64 is a string like others
    }
    let bare: Vec<u8> = plain.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    contains_any(&bare, IN_BASE64)
}

fn contains_any<const N: usize>(bytes: &[u8], words: [&[u8]; N]) -> bool {
    words.iter().any(|word| memmem::find(bytes, word).is_some())
}

/// Resolves each escape of a letter and removes each escaped line end, as within double quotes.
fn unescaped(bytes: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', bytes).is_none() {
        return bytes.into();
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..at]);
        let after = &rest[at + 1..];
        rest = if let Some((letter, length)) = letter(after) {
            plain.push(letter);
            &after[length..]
        } else if let Some(length) = line_end(after) {
            let next = &after[length..];
            let blanks = next.iter().take_while(|byte| b" \t".contains(byte)).count();
            &next[blanks..]
        } else {
            // Any other escape: both of its characters, so that `\\` does not begin a second one.
            let length = after.len().min(1);
            plain.extend_from_slice(&rest[at..=at + length]);
            &after[length..]
        };
    }
    plain.extend_from_slice(rest);
    plain.into()
}

/// The ASCII character that an escape stands for, and its length without the backslash.
fn letter(escape: &[u8]) -> Option<(u8, usize)> {
    let digits = match escape.first()? {
        b'x' => 2,
        b'u' => 4,
        b'U' => 8,
        _ => return None,
    };
    let text = std::str::from_utf8(escape.get(1..=digits)?).ok()?;
    let code = u32::from_str_radix(text, 16).ok()?;
    Some((u8::try_from(code).ok().filter(u8::is_ascii)?, digits + 1))
}

/// The length of the line end that `bytes` begin with; YAML 1.1 knows three more than 1.2.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let ends: [&[u8]; 6] = [b"\r\n", b"\n", b"\r", b"\xC2\x85", b"\xE2\x80\xA8", b"\xE2\x80\xA9"];
    ends.into_iter().find(|end| bytes.starts_with(end)).map(<[u8]>::len)
}

/// `true` for a line such as `kind: Daemonset`: the file is parsed, so that the mistake is
/// reported.
fn misspells_daemon_set(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"- ").unwrap_or(line).trim_ascii_start();
    let unquoted = |text: &[u8]| -> Vec<u8> {
        text.iter().copied().filter(|byte| !b"\"' \t".contains(byte)).take(15).collect()
    };
    line.iter().take(7).any(|&byte| byte == b':')
        && matches!(
            unquoted(line).to_ascii_lowercase().as_slice(),
            b"kind:daemonset" | b"kind:daemonset," | b"kind:daemonset#" | b"kind:daemonset\r"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_mention_or_misspell_a_kind_are_parsed() {
        for (text, read) in [
            ("kind: DaemonSet", true),
            ("# a DaemonSet somewhere", true),
            ("kind: RolloutPolicy", true),
            ("apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolcy", true),
            (r#"{"apiVersion":"ds-plan.dev/v1","kind":"rolloutpolicy"}"#, true),
            ("annotations: {ds-plan.dev/commit: 4f2c9e1}", false),
            ("kind: Daemonset\napiVersion: apps/v1", true),
            ("apiVersion: apps/v1\nkind:   'daemonset'\n", true),
            ("- \"kind\": \"DAEMONSET\",", true),
            ("kind: Deployment", false),
            // A role that names the resource is not a DaemonSet.
            ("resources: [daemonsets]", false),
            ("kind: daemonsetlike", false),
            ("# the kind: daemonset", false),
        ] {
            assert_eq!(is_read(text.as_bytes()), read, "{text}");
        }
    }

    #[test]
    fn escapes_are_resolved() {
        for (text, read) in [
            (r#""\u0044aemonSet""#, true),
            (r#""Rollout\x50olicy""#, true),
            (r#""\U00000044aemonSet""#, true),
            ("\"Daemon\\\r\n \t Set\"", true),
            ("\"Daemon\\\u{2028}Set\"", true),
            (r#"[a\,"Daemon\x53et"]"#, true),
            // An escaped backslash does not begin another escape.
            (r#""Daemon\\x53et""#, false),
            (r#""Daemon\x5et""#, false),
            (r"C:\", false),
            (r"\u00", false),
            ("!!binary RGFlbW9uU2V0", true),
            ("!!binary |\n  RGFl\n  bW9uU2V0", true),
            ("!!binary Um9sbG91dFBvbGljeQ==", true),
            // Without a tag it is a string.
            ("a: RGFlbW9uU2V0", false),
            ("# see the manual!", false),
        ] {
            assert_eq!(is_read(text.as_bytes()), read, "{text}");
        }
    }
}
