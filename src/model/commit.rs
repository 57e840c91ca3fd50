//! Ids of commits, as they are shown and as git takes them. Provenance may also be a digest of files,
//! or a commit that files differ from.

/// So much of an id is shown.
const SHOWN: usize = 7;

/// Hexadecimal digits of a whole id (SHA-1, SHA-256).
const WHOLE: [usize; 2] = [40, 64];

/// Whether this is a commit and nothing else, so that git knows it by this name: not
/// `4f2c9e1…-dirty`, not `sha256:…`.
pub fn is_commit_id(version: &str) -> bool {
    WHOLE.contains(&version.len()) && version.bytes().all(|it| it.is_ascii_hexdigit())
}

/// `4f2c9e1`, or `4f2c9e1-dirty`; what is no commit stays whole.
pub fn short_commit(version: &str) -> String {
    let (id, rest) = version.split_at(version.find('-').unwrap_or(version.len()));
    if is_commit_id(id) { format!("{}{rest}", &id[..SHOWN]) } else { version.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_shortened_and_all_else_is_not() {
        let id = "4f2c9e1d0b5a4f2c9e1d0b5a4f2c9e1d0b5a1234";
        let long = "4f2c9e1d".repeat(8);
        for (version, is_commit, short) in [
            (id.to_owned(), true, "4f2c9e1"),
            (long.clone(), true, "4f2c9e1"),
            (format!("{id}-dirty"), false, "4f2c9e1-dirty"),
            (format!("sha256:{long}"), false, &*format!("sha256:{long}")),
            ("release-7".to_owned(), false, "release-7"),
            ("4f2c9e1".to_owned(), false, "4f2c9e1"),
            (String::new(), false, ""),
        ] {
            assert_eq!(is_commit_id(&version), is_commit, "{version}");
            assert_eq!(short_commit(&version), short);
        }
    }
}
