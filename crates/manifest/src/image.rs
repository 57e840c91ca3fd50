//! The default pull policy of an image (upstream: `ParseImageName`, with the reference grammar of
//! github.com/distribution/reference).
//!
//! `Always` if the tag is `latest`, or if there is neither tag nor digest; a reference that does
//! not parse counts as having another tag. Not here: validation of the image.

/// The pull policy that the API server sets for `image`.
pub(super) fn default_pull_policy(image: &str) -> &'static str {
    match Reference::parse(image) {
        Some(Reference { tag: Some("latest"), .. } | Reference { tag: None, digest: None }) => {
            "Always"
        }
        Some(_) | None => "IfNotPresent",
    }
}

/// The parts of a parsed reference that decide the pull policy.
#[derive(Debug, PartialEq, Eq)]
struct Reference<'t> {
    tag: Option<&'t str>,
    digest: Option<&'t str>,
}

impl<'t> Reference<'t> {
    fn parse(image: &'t str) -> Option<Self> {
        let is_identifier = image.len() == 64 && image.bytes().all(is_lower_hex);
        if is_identifier {
            return None;
        }
        let (domain, remainder) = split_domain(image);
        let (name, digest) = match remainder.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (remainder, None),
        };
        let (path, tag) = match name.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (name, None),
        };
        let fits = domain.is_none_or(is_domain)
            && is_path(path, domain)
            && tag.is_none_or(is_tag)
            && digest.is_none_or(is_digest);
        fits.then_some(Self { tag, digest })
    }
}

/// Splits off the registry, if the first part looks like one (upstream: `splitDockerDomain`).
fn split_domain(image: &str) -> (Option<&str>, &str) {
    match image.split_once('/') {
        Some((domain, rest))
            if domain == "localhost"
                || domain.contains(['.', ':'])
                || domain.to_lowercase() != domain =>
        {
            (Some(domain), rest)
        }
        Some(_) | None => (None, image),
    }
}

/// Host name, IPv4 or bracketed IPv6 address, with an optional port.
fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rfind(':') {
        Some(colon) if !domain.ends_with(']') => (&domain[..colon], Some(&domain[colon + 1..])),
        Some(_) | None => (domain, None),
    };
    let port_fits =
        port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host_fits = match bracketed {
        Some(address) => {
            !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
        }
        None => host.split('.').all(is_label),
    };
    port_fits && host_fits
}

/// Path components between slashes; at most 255 characters, `library/` of Docker Hub included.
fn is_path(path: &str, domain: Option<&str>) -> bool {
    let hub = matches!(domain, None | Some("docker.io" | "index.docker.io"));
    let implied = if hub && !path.contains('/') { "library/".len() } else { 0 };
    path.len() + implied <= 255 && path.split('/').all(is_path_component)
}

/// Lower-case letters and digits, in groups that are joined by one dot, one or two underscores,
/// or dashes.
fn is_path_component(component: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let ends_fit =
        bytes.first().is_some_and(|b| is_word(*b)) && bytes.last().is_some_and(|b| is_word(*b));
    let joints_fit = bytes.split(|byte| is_word(*byte)).all(|joint| {
        matches!(joint, b"" | b"." | b"_" | b"__") || joint.iter().all(|byte| *byte == b'-')
    });
    ends_fit && joints_fit
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

/// `true` for a digest with one of upstream's algorithms and its number of hex digits.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, encoded)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _unknown => return false,
    };
    encoded.len() == length && encoded.bytes().all(is_lower_hex)
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_follows_tag_and_digest() {
        let sha = "a".repeat(64);
        for (image, want) in [
            ("agent", "Always"),
            ("agent:latest", "Always"),
            ("agent:v1", "IfNotPresent"),
            ("agent:Latest", "IfNotPresent"),
            ("registry.example:5000/team/agent", "Always"),
            ("registry.example:5000/team/agent:latest", "Always"),
            ("localhost/agent", "Always"),
            ("localhost:5000/agent:1", "IfNotPresent"),
            ("[::1]:5000/agent", "Always"),
            ("Registry/agent", "Always"),
            (&format!("agent@sha256:{sha}"), "IfNotPresent"),
            (&format!("agent:latest@sha256:{sha}"), "Always"),
            (&format!("agent:v1@sha256:{sha}"), "IfNotPresent"),
            ("a__b/c-d--e.f_g", "Always"),
            // None of the following parses.
            (&sha, "IfNotPresent"),
            ("", "IfNotPresent"),
            ("Agent", "IfNotPresent"),
            ("agent:", "IfNotPresent"),
            ("a..b", "IfNotPresent"),
            ("a___b", "IfNotPresent"),
            (" agent", "IfNotPresent"),
            ("agent/", "IfNotPresent"),
            ("registry.example:port/agent", "IfNotPresent"),
            ("-registry.example/agent", "IfNotPresent"),
            ("agent@sha256:abc", "IfNotPresent"),
            ("${IMAGE}", "IfNotPresent"),
            (&"a".repeat(248), "IfNotPresent"),
            (&"a".repeat(247), "Always"),
        ] {
            assert_eq!(default_pull_policy(image), want, "{image:?}");
        }
    }
}
