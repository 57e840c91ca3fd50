//! Finds words of a command line or of an annotation that may contain a secret.

/// The kind of one argument of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// Contains no secret.
    Plain,
    /// A flag such as `--password`, whose value is the next argument.
    SecretFlag,
    /// Its text from `start` on is secret.
    Secret { start: usize },
}

/// Substrings of names that name secrets.
const SECRET_PARTS: [&str; 8] =
    ["password", "passwd", "passphrase", "pwd", "token", "secret", "key", "credential"];

/// Whole words of names that name secrets: parts of other words would be too many (`author`).
const SECRET_WORDS: [&str; 9] =
    ["auth", "authorization", "bearer", "pass", "pw", "creds", "cred", "dsn", "cookie"];

/// Flags with one hyphen, in Go's style, that begin with `-p` and are not passwords.
const FLAGS_IN_P: [&str; 14] = [
    "path",
    "pidfile",
    "plugin",
    "policy",
    "port",
    "pprof",
    "prefix",
    "print",
    "probe",
    "profile",
    "prometheus",
    "protocol",
    "provider",
    "proxy",
];

/// Schemes of the `Authorization` header, which precede a credential.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

impl Argument {
    pub(super) fn read(text: &str, follows_secret_flag: bool) -> Self {
        let word = Self::of_word(text);
        if word == Self::Plain && follows_secret_flag && !is_certainly_a_flag(text) {
            return Self::Secret { start: 0 };
        }
        // A script, such as the one after `sh -c`, or a header is either hidden or shown, never cut.
        let is_script = text.trim().contains(char::is_whitespace);
        if is_script && holds_a_secret(text) {
            return Self::Secret { start: 0 };
        }
        word
    }

    /// `--password=x`, `-token=x`, `DB_PASSWORD=x`, `auth.password=x`, `-px`,
    /// `https://user:x@host`, `host=h;password=x`, `X-Api-Key:x`, `{"password":"x"}`, or just
    /// `--password`.
    fn of_word(word: &str) -> Self {
        let bare = word.trim_start_matches(['"', '\'', '-']);
        let starts = [assigned(word), login(word), field(word)];
        if let Some(start) = starts.into_iter().flatten().min() {
            return Self::Secret { start };
        }
        if short_password(word) {
            return Self::Secret { start: 2 };
        }
        let is_flag = word.len() > bare.len() && word.contains('-') && !bare.contains('=');
        if is_flag && names_a_secret(bare) { Self::SecretFlag } else { Self::Plain }
    }
}

/// Whether any word of a longer text contains a secret, or names one before a colon.
pub(super) fn holds_a_secret(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let bare = word.trim_matches(['"', '\'', '-', ',', ';']);
        let names = bare.strip_suffix(':').is_some_and(|name| {
            names_a_secret(name.rsplit_once('=').map_or(name, |(_, header)| header))
        });
        let scheme = bare.rsplit_once([':', '=']).map_or(bare, |(_, scheme)| scheme);
        let is_scheme = SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it));
        if Argument::of_word(word) != Argument::Plain
            || (names || is_scheme) && words.peek().is_some()
        {
            return true;
        }
    }
    false
}

/// Start of the value of the first `NAME=value` whose name names a secret. One word may contain
/// several: a query, options, a connection string.
fn assigned(word: &str) -> Option<usize> {
    let mut begin = 0;
    for (at, _) in word.match_indices('=') {
        let name = &word[begin..at];
        let name = name.rsplit(['?', '&', ';', ',']).next().unwrap_or(name);
        if names_a_secret(name.trim_start_matches(['"', '\'', '-'])) {
            return Some(at + 1);
        }
        begin = at + 1;
    }
    None
}

/// Start of the value after the first `NAME:` whose name names a secret: a header, or a field of
/// compact JSON. Paths, images and URLs have no such value.
fn field(word: &str) -> Option<usize> {
    let is_separator =
        |c: char| c.is_whitespace() || matches!(c, '=' | ',' | ';' | '{' | '[' | '&' | '?');
    word.match_indices(':').find_map(|(at, _)| {
        let name = word[..at].rsplit(is_separator).next().unwrap_or_default();
        let first = word[at + 1..].chars().next()?;
        let is_value = first != '/' && !first.is_whitespace() && !name.contains('/');
        (is_value && names_a_secret(name)).then_some(at + 1)
    })
}

/// Start of the password in `user:password@host`, in a URL or by itself. The digest of an image
/// (`name:tag@sha256:…`) is not a password.
fn login(word: &str) -> Option<usize> {
    let (before, after) = word.split_once('@')?;
    if after.starts_with("sha256:") || after.is_empty() {
        return None;
    }
    let begin = before.rfind("://").map_or_else(
        || before.rfind(['/', '=', ',', '"', '\'']).map_or(0, |at| at + 1),
        |at| at + "://".len(),
    );
    let colon = before[begin..].find(':')?;
    let start = begin + colon + 1;
    (start < before.len()).then_some(start)
}

/// `-phunter2`, as mysql and others accept it. `-p8080` is a port.
fn short_password(word: &str) -> bool {
    let Some(rest) = word.strip_prefix("-p") else { return false };
    let name = rest.split_once('=').map_or(rest, |(name, _)| name);
    let flag = format!("p{}", name.to_ascii_lowercase());
    let is_port = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    let is_flag = FLAGS_IN_P.iter().any(|known| {
        flag.strip_prefix(known).is_some_and(|more| more.is_empty() || more.starts_with(['-', '.']))
    });
    !rest.is_empty() && !is_port && !is_flag
}

/// Whether this is certainly a flag; a secret may begin with a hyphen, too.
fn is_certainly_a_flag(text: &str) -> bool {
    let mut chars = text.chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some('-'), Some('-'), Some(third)) => third.is_ascii_alphabetic(),
        (Some('-'), Some(second), None) => second.is_ascii_alphabetic(),
        _value => false,
    }
}

pub(super) fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| SECRET_WORDS.contains(&word))
}

/// Whether an annotation's value may be a secret, by its name or its content.
pub(super) fn of_annotation(name: &str, value: &str) -> bool {
    !value.is_empty() && (names_a_secret(name) || holds_a_secret(value))
}

/// Words that are not secrets.
const HARMLESS: [&str; 12] = [
    "true", "false", "yes", "no", "on", "off", "debug", "info", "warn", "warning", "error", "json",
];

/// Start of the part of an argument that is not known to be harmless; `None` if all of it is
/// harmless: a flag without value, the path of a program, a common word.
pub(super) fn unknown_from(text: &str, is_program: bool) -> Option<usize> {
    let is_name = |name: &str| {
        name.starts_with("--")
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let is_harmless = |value: &str| value.is_empty() || HARMLESS.contains(&value);
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => (!is_harmless(value)).then(|| name.len() + 1),
        None if is_name(text) || is_program || is_harmless(text) => None,
        _unknown => Some(0),
    }
}

/// Prefixes of the names of annotations whose values are written by Kubernetes or ds-plan.
const HARMLESS_ANNOTATIONS: [&str; 10] = [
    "ds-plan.dev/",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/restartedAt",
    "kubectl.kubernetes.io/default-container",
    // Its secrets are replaced one by one.
    "kubectl.kubernetes.io/last-applied-configuration",
    "prometheus.io/",
    "cluster-autoscaler.kubernetes.io/",
    // The API server validates their values: it would reject a digest.
    "container.apparmor.security.beta.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
];

/// Whether an annotation is known to be harmless.
pub(super) fn is_harmless_annotation(name: &str, value: &str) -> bool {
    value.is_empty()
        || HARMLESS.contains(&value)
        || HARMLESS_ANNOTATIONS.iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> Option<&str> {
        match Argument::read(text, false) {
            Argument::Secret { start } => Some(&text[start..]),
            Argument::Plain | Argument::SecretFlag => None,
        }
    }

    #[test]
    fn words_that_contain_secrets() {
        for (text, want) in [
            ("--auth=user:pw", Some("user:pw")),
            ("--basic-auth=x", Some("x")),
            ("--pwd=x", Some("x")),
            ("--passphrase=x", Some("x")),
            ("--pass=x", Some("x")),
            ("-phunter2", Some("hunter2")),
            ("-pSecret", Some("Secret")),
            ("-p", None),
            ("-p8080", None),
            ("-p8080:80", None),
            ("-port=80", None),
            ("-path=/x", None),
            ("-profile", None),
            ("--header=Authorization: Bearer x", Some("--header=Authorization: Bearer x")),
            ("Authorization: Bearer x", Some("Authorization: Bearer x")),
            ("authorization:bearer x", Some("authorization:bearer x")),
            ("X-Api-Key: x", Some("X-Api-Key: x")),
            ("X-Api-Key:x", Some("x")),
            ("--header=X-Token:x", Some("x")),
            ("curl -H X-Token:x h", Some("curl -H X-Token:x h")),
            (r#"--config={"a":"b","password":"x"}"#, Some(r#""x"}"#)),
            ("registry/secret-agent:1", None),
            ("registry:5000/secret-agent:1", None),
            ("http://secret-service:80/x", None),
            ("/etc/secret:/secret:ro", None),
            ("agent:1", None),
            (
                "curl -H 'Authorization: Basic eDp5' h",
                Some("curl -H 'Authorization: Basic eDp5' h"),
            ),
            ("https://user:pw@host/x", Some("pw@host/x")),
            ("--url=postgres://u:pw@db:5432/x", Some("pw@db:5432/x")),
            ("user:pw@tcp(db:3306)/x", Some("pw@tcp(db:3306)/x")),
            ("https://user@host", None),
            ("registry.example/agent:1@sha256:ab", None),
            ("someone@example.com", None),
            ("https://h/?a=b&password=x", Some("x")),
            ("host=h;Password=x", Some("x")),
            ("--set=a=b,token=x", Some("x")),
            ("--author=me", None),
            ("--authority=ca", None),
            ("--passive=yes", None),
            ("serve the bearer", None),
        ] {
            assert_eq!(hidden(text), want, "{text}");
        }
    }

    #[test]
    fn annotations_that_contain_credentials() {
        for (name, value, secret) in [
            ("example.com/api-key", "x", true),
            ("example.com/auth", "x", true),
            ("example.com/database", "postgres://u:pw@db/x", true),
            ("example.com/header", "Authorization: Bearer x", true),
            ("example.com/registries", r#"{"auths":{"r":{"auth":"x"}}}"#, true),
            ("example.com/owners", r#"{"team":"a"}"#, false),
            ("example.com/note", "team=a owner=b", false),
            ("checksum/config", "abc", false),
            ("example.com/token", "", false),
        ] {
            assert_eq!(of_annotation(name, value), secret, "{name}: {value}");
        }
    }

    #[test]
    fn annotations_known_to_be_harmless() {
        for (name, want) in [
            ("prometheus.io/scrape", true),
            ("container.apparmor.security.beta.kubernetes.io/main", true),
            ("seccomp.security.alpha.kubernetes.io/pod", true),
            ("container.seccomp.security.alpha.kubernetes.io/main", true),
            ("example.com/note", false),
        ] {
            assert_eq!(is_harmless_annotation(name, "localhost/x"), want, "{name}");
        }
    }

    #[test]
    fn values_known_to_be_harmless() {
        for (text, is_program, want) in [
            ("/bin/agent", true, None),
            ("--verbose", false, None),
            ("--log-level=debug", false, None),
            ("--port=80", false, Some("80")),
            ("--config=/etc/x", false, Some("/etc/x")),
            ("123", false, Some("123")),
            ("-p123", false, Some("-p123")),
            ("word", false, Some("word")),
            ("true", false, None),
        ] {
            let from = unknown_from(text, is_program).map(|start| &text[start..]);
            assert_eq!(from, want, "{text}");
        }
    }
}
