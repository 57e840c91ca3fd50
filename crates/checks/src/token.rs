//! Tokens of endpoints: `--check-token HOST=FILE`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::HeaderValue;

use super::address::Address;
use super::problem::Problem;
use super::quoted::quoted;

/// Bytes of a file with a secret at most.
const LARGEST: u64 = 64 << 10;

/// The file with the token for one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostToken {
    /// As in the address: with the port, if one is there.
    host: String,
    file: PathBuf,
}

/// Error: the text is not `HOST=FILE`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write it as HOST=FILE, such as prom.example=/run/secrets/token, with the host as in the address"
)]
pub struct NotHostAndFile;

impl FromStr for HostToken {
    type Err = NotHostAndFile;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, file) = text.split_once('=').ok_or(NotHostAndFile)?;
        if host.is_empty() || host.contains(['/', '@']) || file.is_empty() {
            return Err(NotHostAndFile);
        }
        Ok(Self { host: host.to_ascii_lowercase(), file: PathBuf::from(file) })
    }
}

impl HostToken {
    /// The file of the token.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the file now, so that one that is missing is an error before anything begins.
    ///
    /// # Errors
    /// The file cannot be read, or has no token.
    pub fn check(&self) -> io::Result<()> {
        self.header().map(drop)
    }

    /// The value of `Authorization`. The file is read each time: tokens of service accounts change.
    fn header(&self) -> io::Result<HeaderValue> {
        let token = read_secret(&self.file)?;
        let header = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut header = header.map_err(|_| invalid("it has characters that no token has"))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// The secret in a file, without the white space around it.
///
/// # Errors
/// The file cannot be read, is too large, or has nothing else.
pub(crate) fn read_secret(file: &Path) -> io::Result<String> {
    let mut secret = String::new();
    let read = File::open(file)?.take(LARGEST + 1).read_to_string(&mut secret)?;
    if read as u64 > LARGEST {
        return Err(invalid("it has more than 64 KiB"));
    }
    let secret = secret.trim();
    if secret.is_empty() {
        return Err(invalid("it is empty"));
    }
    Ok(secret.to_owned())
}

/// The error of a file with another content than it should have.
pub(crate) fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.to_owned())
}

/// The value of `Authorization` for `address`, if there is a token for its host.
pub(crate) fn authorization(
    tokens: &[HostToken],
    address: &Address,
) -> Result<Option<HeaderValue>, Problem> {
    let Some(token) = tokens.iter().find(|token| token.host == address.host()) else {
        return Ok(None);
    };
    let unreadable = |error: io::Error| Problem::Token {
        host: token.host.clone(),
        reason: quoted(&error.to_string()),
    };
    token.header().map(Some).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_token_goes_to_its_host_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "secret\n").unwrap();
        let tokens: Vec<HostToken> = vec![
            format!("Prom.example={}", file.display()).parse().unwrap(),
            format!("127.0.0.1:9090={}", file.display()).parse().unwrap(),
        ];
        for (address, sent) in [
            ("https://prom.example/x", true),
            ("https://PROM.example", true),
            ("https://prom.example:8443", false),
            ("https://prom.example.evil.example", false),
            ("https://evil.example/prom.example", false),
            ("http://127.0.0.1:9090", true),
            ("http://127.0.0.1:9091", false),
            ("http://127.0.0.1", false),
        ] {
            let header = authorization(&tokens, &Address::read(address).unwrap()).unwrap();
            assert_eq!(header.is_some(), sent, "{address}");
            if let Some(header) = header {
                assert_eq!(header.to_str().unwrap(), "Bearer secret");
                assert!(!format!("{header:?}").contains("secret"));
            }
        }
    }

    #[test]
    fn a_file_without_a_token_is_an_error_that_does_not_show_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let token: HostToken = format!("a.example={}", file.display()).parse().unwrap();
        assert!(token.check().is_err(), "missing");
        for content in ["", " \n", "sec\nret", &"x".repeat(70_000)] {
            fs::write(&file, content).unwrap();
            let error = token.check().unwrap_err().to_string();
            assert!(!error.contains("sec"), "{error}");
        }
        fs::write(&file, "new").unwrap();
        assert!(token.check().is_ok());
    }

    #[test]
    fn tokens_are_written_with_host_and_file() {
        for text in ["", "=f", "h=", "h", "https://h=f", "me@h=f"] {
            assert_eq!(text.parse::<HostToken>(), Err(NotHostAndFile), "{text}");
        }
        let token: HostToken = "h:1=a=b".parse().unwrap();
        assert_eq!((token.host.as_str(), token.file.to_str()), ("h:1", Some("a=b")));
    }
}
