//! The value of `--repo`: a folder, or a URL and its protocol.
//!
//! Git's own rules distinguish a folder from `host:path`; an existing folder takes precedence.
//! Rejected here, before git sees them: values that could be taken for an option, remote helpers
//! (`ext::`), and plain http to another machine.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::Uri;
use percent_encoding::percent_decode_str;

use super::{Error, redact, shown};
use crate::error::FetchError;

/// The location of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// A local folder, opened in place.
    Folder(PathBuf),
    /// A URL, fetched by git.
    Remote(Remote),
}

/// A URL that may be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    /// The URL as given, with credentials: for git only.
    pub(super) url: String,
    /// The URL without credentials, for messages and as the name of the cached copy.
    pub(super) shown: String,
    /// The protocol of the URL.
    pub(super) protocol: Protocol,
}

/// The supported protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// `https://`.
    Https,
    /// `http://` to a loopback address.
    LoopbackHttp,
    /// `ssh://` or `user@host:path`.
    Ssh,
}

impl Location {
    /// Parses `--repo`; relative folders start at `current_dir`.
    pub(super) fn parse(text: &OsStr, current_dir: &Path) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::EmptyPath);
        }
        // Rebuilt from its components to drop a `.`.
        let folder = || Self::Folder(current_dir.join(text).components().collect());
        // A URL that git and its helpers understand is text; anything else can only be a folder.
        let Some(url) = text.to_str() else { return Ok(folder()) };
        if let Some((scheme, _)) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
            // Git accepts its protocols in lower case only.
            let (small, rest) = (scheme.to_ascii_lowercase(), &url[scheme.len()..]);
            return with_scheme(&format!("{small}{rest}"), &small);
        }
        if current_dir.join(text).exists() {
            return Ok(folder());
        }
        match url.split_once(':') {
            Some((before, _)) if before.contains('/') => Ok(folder()),
            Some((helper, rest)) if rest.starts_with(':') => {
                Err(unsupported(url, &format!("{helper}::")))
            }
            Some((host, path)) => scp_like(url, host, path),
            None => Ok(folder()),
        }
    }
}

fn with_scheme(url: &str, scheme: &str) -> Result<Location, Error> {
    if scheme == "file" {
        return file(url);
    }
    let protocol = match scheme {
        "https" => Protocol::Https,
        "http" => Protocol::LoopbackHttp,
        "ssh" => Protocol::Ssh,
        other => return Err(unsupported(url, other)),
    };
    let uri: Uri = url.parse().map_err(|_| bad(url, "it is malformed"))?;
    let host = uri.host().unwrap_or_default();
    if protocol == Protocol::LoopbackHttp && !is_loopback(host) {
        return Err(Error::from(FetchError::PlainHttp { url: printable(url) }));
    }
    remote(url, host, uri.path().trim_start_matches('/'), protocol)
}

/// Parses `[user@]host:path`, which git takes for ssh.
fn scp_like(url: &str, host: &str, path: &str) -> Result<Location, Error> {
    let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
    if host.starts_with('-') {
        return Err(bad(url, "it begins with `-`"));
    }
    remote(url, name, path, Protocol::Ssh)
}

fn remote(url: &str, host: &str, path: &str, protocol: Protocol) -> Result<Location, Error> {
    let reason = if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        "it contains white space"
    } else if host.is_empty() {
        "it has no host"
    } else if host.starts_with('-') || path.starts_with('-') {
        // ssh would take it for an option.
        "its host or path begins with `-`"
    } else if path.is_empty() {
        "it has no repository path"
    } else {
        let url = url.to_owned();
        return Ok(Location::Remote(Remote { shown: printable(&url), url, protocol }));
    };
    Err(bad(url, reason))
}

/// Parses `file:///path`, opened in place.
fn file(url: &str) -> Result<Location, Error> {
    let rest = url.get("file://".len()..).unwrap_or_default();
    let path = rest.strip_prefix("localhost/").map_or(rest, |_| &rest["localhost".len()..]);
    if !path.starts_with('/') {
        return Err(bad(url, "a file URL must name an absolute path on this machine"));
    }
    let decoded = percent_decode_str(path).decode_utf8();
    let decoded = decoded.map_err(|_| bad(url, "it is malformed"))?;
    Ok(Location::Folder(PathBuf::from(decoded.as_ref())))
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.:".contains(c))
}

/// A URL for messages: no credentials, no query (some servers take tokens there), plain text.
pub(super) fn printable(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    shown::name(redact::credentials(&url[..end]).as_bytes())
}

fn bad(url: &str, reason: &'static str) -> Error {
    Error::from(FetchError::BadUrl { url: printable(url), reason })
}

fn unsupported(url: &str, scheme: &str) -> Error {
    Error::from(FetchError::UnsupportedScheme {
        url: printable(url),
        scheme: shown::name(scheme.as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Location, String> {
        let current_dir = Path::new("/nowhere");
        Location::parse(text.as_ref(), current_dir).map_err(|error| error.to_string())
    }

    #[test]
    fn folders_are_opened_in_place() {
        for (text, expected) in [
            ("deploy", "/nowhere/deploy"),
            (".", "/nowhere"),
            ("/srv/a.git", "/srv/a.git"),
            ("./with:colon", "/nowhere/with:colon"),
            ("-folder", "/nowhere/-folder"),
            ("file:///srv/a.git", "/srv/a.git"),
            ("file://localhost/srv/a%20b.git", "/srv/a b.git"),
            ("FILE:///srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(parse(text), Ok(Location::Folder(expected.into())), "{text}");
        }
    }

    #[test]
    fn an_existing_folder_wins_over_scp() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a:b")).unwrap();
        let location = Location::parse("a:b".as_ref(), folder.path()).unwrap();
        assert_eq!(location, Location::Folder(folder.path().join("a:b")));
    }

    #[test]
    fn urls_are_fetched() {
        for (text, shown, protocol) in [
            ("https://host/a.git", "https://host/a.git", Protocol::Https),
            ("https://me:pw@host:8443/a", "https://***@host:8443/a", Protocol::Https),
            ("https://host/a?private_token=x", "https://host/a", Protocol::Https),
            ("ssh://git@host:22/~me/a", "ssh://git@host:22/~me/a", Protocol::Ssh),
            ("git@host:team/a.git", "git@host:team/a.git", Protocol::Ssh),
            ("host:a", "host:a", Protocol::Ssh),
            ("http://localhost:80/a", "http://localhost:80/a", Protocol::LoopbackHttp),
            ("http://127.0.0.2/a", "http://127.0.0.2/a", Protocol::LoopbackHttp),
            ("http://[::1]:80/a", "http://[::1]:80/a", Protocol::LoopbackHttp),
        ] {
            let remote = Remote { url: text.into(), shown: shown.into(), protocol };
            assert_eq!(parse(text), Ok(Location::Remote(remote)), "{text}");
        }
        assert_eq!(parse("HTTPS://host/a"), parse("https://host/a"));
    }

    #[test]
    fn unsupported_urls_are_rejected() {
        for (text, expected) in [
            ("", "an empty path was given"),
            ("http://host/a", "`http://host/a`: plain http is allowed only for loopback addresses"),
            (
                "http://localhost.example/a",
                "`http://localhost.example/a`: plain http is allowed only for loopback addresses",
            ),
            (
                "http://localhost@host/a",
                "`http://***@host/a`: plain http is allowed only for loopback addresses",
            ),
            ("git://host/a", "`git://host/a`: fetching by `git` is not supported"),
            ("ftp://me:pw@host/a", "`ftp://***@host/a`: fetching by `ftp` is not supported"),
            ("ext::sh -c id", "`ext::sh -c id`: fetching by `ext::` is not supported"),
            ("ext::ssh://host/a", "`ext::ssh://host/a`: fetching by `ext::ssh` is not supported"),
            (
                "ssh://-oProxyCommand=id/a",
                "`ssh://-oProxyCommand=id/a` is not a usable repository URL: its host or path begins with `-`",
            ),
            (
                "ssh://host/-a",
                "`ssh://host/-a` is not a usable repository URL: its host or path begins with `-`",
            ),
            (
                "-oProxyCommand=id:a",
                "`-oProxyCommand=id:a` is not a usable repository URL: it begins with `-`",
            ),
            (
                "git@-oProxyCommand=id:a",
                "`git@-oProxyCommand=id:a` is not a usable repository URL: its host or path begins with `-`",
            ),
            (
                "https://host/a\nhost=evil",
                "`https://host/a\\u{a}host=evil` is not a usable repository URL: it is malformed",
            ),
            ("host:a b", "`host:a b` is not a usable repository URL: it contains white space"),
            ("https://", "`https://` is not a usable repository URL: it is malformed"),
            (
                "https://host",
                "`https://host` is not a usable repository URL: it has no repository path",
            ),
            ("host:", "`host:` is not a usable repository URL: it has no repository path"),
            (":a", "`:a` is not a usable repository URL: it has no host"),
            (
                "file://host/a",
                "`file://host/a` is not a usable repository URL: a file URL must name an absolute path on this machine",
            ),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
        }
    }
}
