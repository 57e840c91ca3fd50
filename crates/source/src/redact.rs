//! Removes credentials from URLs and from git's output.

/// Replaces the user info before an `@` in the host part of every URL in the text, and their
/// queries, in which some servers take tokens. A user name alone is kept for ssh, where it is not
/// secret (`ssh://git@host`).
pub(super) fn credentials(text: &str) -> String {
    let mut rest = text;
    let mut result = String::with_capacity(text.len());
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        result.push_str(before);
        let end = after.find(ends_authority).unwrap_or(after.len());
        let (authority, remaining) = after.split_at(end);
        let is_ssh = before.ends_with("ssh://");
        match authority.rsplit_once('@') {
            Some((user, host)) if is_ssh && !user.contains(':') => {
                result.push_str(user);
                result.push('@');
                result.push_str(host);
            }
            Some((_, host)) => {
                result.push_str("***@");
                result.push_str(host);
            }
            None => result.push_str(authority),
        }
        let (path, after) = remaining.split_at(remaining.find(ends_url).unwrap_or(remaining.len()));
        match path.split_once('?') {
            Some((path, _query)) => {
                result.push_str(path);
                result.push_str("?***");
            }
            None => result.push_str(path),
        }
        rest = after;
    }
    result.push_str(rest);
    result
}

fn ends_authority(character: char) -> bool {
    matches!(character, '/' | '?' | '#') || ends_url(character)
}

fn ends_url(character: char) -> bool {
    matches!(character, '\'' | '"' | '`') || character.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_left() {
        for (case, text, expected) in [
            ("nothing to hide", "https://host/a.git", "https://host/a.git"),
            ("user and password", "https://me:pw@host/a", "https://***@host/a"),
            ("a token as user", "https://ghp_x@host/a", "https://***@host/a"),
            ("an @ in the password", "https://me:p@w@host/a", "https://***@host/a"),
            ("an ssh user is no secret", "ssh://git@host/a", "ssh://git@host/a"),
            ("an ssh password is", "ssh://git:pw@host/a", "ssh://***@host/a"),
            ("an @ in the path", "https://host/a@b", "https://host/a@b"),
            (
                "in a sentence",
                "fatal: no 'https://me:pw@host/': 'http://x:y@z'",
                "fatal: no 'https://***@host/': 'http://***@z'",
            ),
            (
                "a token in the query",
                "no 'https://host/a?token=x/' here",
                "no 'https://host/a?***' here",
            ),
            ("a URL in the query", "https://host?u=https://a:b@c d", "https://host?*** d"),
            ("scp-like", "git@host:a.git", "git@host:a.git"),
            ("at the end", "https://", "https://"),
        ] {
            assert_eq!(credentials(text), expected, "{case}");
        }
    }
}
