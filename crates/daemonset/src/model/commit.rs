//! Commit ids, as shown and as git accepts them. A recorded version may also be a digest of files,
//! or a commit with uncommitted changes.

/// Number of characters of an id that are shown.
const SHOWN: usize = 7;

/// What begins the digest of plain files.
const DIGEST: &str = "sha256:";

/// Number of its digits that are shown.
const SHOWN_OF_DIGEST: usize = 12;

/// Length of a full id in hexadecimal digits (SHA-1, SHA-256).
const WHOLE: [usize; 2] = [40, 64];

/// Whether this is a full commit id that git accepts: not
/// `4f2c9e1…-dirty`, not `sha256:…`.
pub fn is_commit_id(version: &str) -> bool {
    WHOLE.contains(&version.len()) && version.bytes().all(|it| it.is_ascii_hexdigit())
}

/// `4f2c9e1`, or `4f2c9e1-dirty`; `sha256:4f2c9e1d0b5a` for the digest of plain files; any other
/// version is returned unchanged.
pub fn short_commit(version: &str) -> String {
    if let Some(digest) = version.strip_prefix(DIGEST).filter(|digest| is_commit_id(digest)) {
        return format!("{DIGEST}{}", &digest[..SHOWN_OF_DIGEST]);
    }
    let (id, rest) = version.split_at(version.find('-').unwrap_or(version.len()));
    if is_commit_id(id) { format!("{}{rest}", &id[..SHOWN]) } else { version.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_are_shortened() {
        let id = "4f2c9e1d0b5a4f2c9e1d0b5a4f2c9e1d0b5a1234";
        let long = "4f2c9e1d".repeat(8);
        for (version, is_commit, short) in [
            (id.to_owned(), true, "4f2c9e1"),
            (long.clone(), true, "4f2c9e1"),
            (format!("{id}-dirty"), false, "4f2c9e1-dirty"),
            (format!("sha256:{long}"), false, "sha256:4f2c9e1d4f2c"),
            (format!("sha256:{}", &long[1..]), false, &*format!("sha256:{}", &long[1..])),
            ("release-7".to_owned(), false, "release-7"),
            ("4f2c9e1".to_owned(), false, "4f2c9e1"),
            (String::new(), false, ""),
        ] {
            assert_eq!(is_commit_id(&version), is_commit, "{version}");
            assert_eq!(short_commit(&version), short);
        }
    }
}
