//! Which addresses may be asked: https, or http to this machine and into the cluster.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::Uri;
use http::uri::{PathAndQuery, Scheme};

use super::problem::Problem;
use super::quoted::quoted;

/// An address that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    uri: Uri,
    /// `host` or `host:port`, in lower case, as a token names it.
    host: String,
    /// Whether messages show the path. That of a webhook is often a secret.
    shows_path: bool,
}

impl Address {
    /// Reads an address.
    pub(crate) fn read(text: &str) -> Result<Self, Problem> {
        let unusable = || Problem::NotAnAddress { address: without_secrets(text) };
        let uri: Uri = text.parse().map_err(|_| unusable())?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(unusable());
        };
        if authority.host().is_empty() || ![Scheme::HTTP, Scheme::HTTPS].contains(scheme) {
            return Err(unusable());
        }
        let written = authority.as_str();
        let host = written.rsplit_once('@').map_or(written, |(_, host)| host);
        let host = host.to_ascii_lowercase();
        if host.len() < written.len() {
            return Err(Problem::Login { host });
        }
        if *scheme == Scheme::HTTP && !may_be_plain(authority.host()) {
            return Err(Problem::Plain { host });
        }
        Ok(Self { uri, host, shows_path: true })
    }

    /// The same address, of which messages show scheme and host only.
    pub(crate) fn without_path(self) -> Self {
        Self { shows_path: false, ..self }
    }

    /// Another URL in a message about this address, such as that of a redirect: as much of it as is
    /// shown of this address.
    pub(crate) fn shown(&self, other: &str) -> String {
        let other = without_secrets(other);
        if self.shows_path {
            return other;
        }
        match other.split_once("//") {
            Some((scheme, rest)) => {
                let host = rest.split('/').next().unwrap_or_default();
                format!("{scheme}//{host}")
            }
            None => "a path".to_owned(),
        }
    }

    /// The same address with `path` behind its own.
    pub(crate) fn join(&self, path: &str) -> Result<Self, Problem> {
        let unusable = || Problem::NotAnAddress { address: self.to_string() };
        let joined = format!("{}{path}", self.uri.path().trim_end_matches('/'));
        let joined: PathAndQuery = joined.parse().map_err(|_| unusable())?;
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(joined);
        let uri = Uri::from_parts(parts).map_err(|_| unusable())?;
        Ok(Self { uri, ..self.clone() })
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// `host` or `host:port`, in lower case.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn is_https(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }
}

/// Without the query, in which some endpoints expect secrets.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let path = if self.shows_path { quoted(self.uri.path()) } else { String::new() };
        write!(f, "{scheme}://{}{}", self.host, if path == "/" { "" } else { &path })
    }
}

/// A URL from others, without login, query and fragment.
pub(crate) fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = &url[..end];
    let (scheme, rest) = url.split_once("//").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let slashes = if rest.len() < url.len() { "//" } else { "" };
    let authority = rest.find('/').unwrap_or(rest.len());
    let login = rest[..authority].rfind('@').map_or(0, |at| at + 1);
    quoted(&format!("{scheme}{slashes}{}", &rest[login..]))
}

/// Whether a host is this machine, or a service of the cluster.
fn may_be_plain(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
        || bare.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
        || [".svc", ".svc.cluster.local"]
            .iter()
            .any(|end| host.strip_suffix(end).is_some_and(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_or_near() {
        for address in [
            "https://prom.example",
            "https://PROM.example:9443/prefix/",
            "http://127.0.0.1:9090",
            "http://127.8.0.1",
            "http://[::1]:9090",
            "http://localhost:9090",
            "http://prometheus.monitoring.svc:9090",
            "http://prometheus.monitoring.svc.cluster.local",
        ] {
            assert!(Address::read(address).is_ok(), "{address}");
        }
        let plain = |host: &str| Problem::Plain { host: host.to_owned() };
        let none = |address: &str| Problem::NotAnAddress { address: address.to_owned() };
        for (address, want) in [
            ("http://prom.example", plain("prom.example")),
            ("http://169.254.169.254/latest", plain("169.254.169.254")),
            ("http://127.0.0.1.evil.example", plain("127.0.0.1.evil.example")),
            ("http://localhost.evil.example", plain("localhost.evil.example")),
            ("http://evil.svc.example", plain("evil.svc.example")),
            ("http://svc", plain("svc")),
            ("http://2130706433/", plain("2130706433")),
            ("http://0x7f.1/", plain("0x7f.1")),
            ("http://[::ffff:8.8.8.8]", plain("[::ffff:8.8.8.8]")),
            ("https://me:secret@prom.example", Problem::Login { host: "prom.example".to_owned() }),
            ("http://127.0.0.1@evil.example", Problem::Login { host: "evil.example".to_owned() }),
            ("ftp://prom.example", none("ftp://prom.example")),
            ("prom.example:9090", none("prom.example:9090")),
            ("/api/v1?token=secret", none("/api/v1")),
            ("https://", none("https://")),
            ("https://me:secret@prom example/", none("https://prom example/")),
            ("", none("")),
        ] {
            assert_eq!(Address::read(address), Err(want), "{address}");
        }
    }

    #[test]
    fn a_path_is_added_behind_that_of_the_address() {
        for (address, want) in [
            ("https://prom.example", "https://prom.example/api/v1/query_range"),
            ("https://prom.example/", "https://prom.example/api/v1/query_range"),
            ("https://prom.example/a/b/?x=y", "https://prom.example/a/b/api/v1/query_range"),
        ] {
            let joined = Address::read(address).unwrap().join("/api/v1/query_range").unwrap();
            assert_eq!(joined.uri().to_string(), want, "{address}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (url, want) in [
            ("https://me:secret@prom.example/a?token=secret#b", "https://prom.example/a"),
            ("//me@prom.example", "//prom.example"),
            ("/login?state=secret", "/login"),
            ("https://a/b@c", "https://a/b@c"),
        ] {
            assert_eq!(without_secrets(url), want, "{url}");
        }
        let shown = Address::read("https://Prom.example:9090/x?token=secret").unwrap();
        assert_eq!(shown.to_string(), "https://prom.example:9090/x");
    }
}
