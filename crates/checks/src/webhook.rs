//! Posts documents to a webhook, signed with a shared secret, and again if that fails in a way that
//! may pass. The answer is not trusted: only its status is read.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use http::header::{CONTENT_TYPE, HeaderName, USER_AGENT};
use http::{HeaderValue, Method, Request};
use ring::hmac;

use super::address::Address;
use super::problem::Problem;
use super::token::{invalid, read_secret};
use super::transport::Transport;

/// The header with the signature: `sha256=` and the HMAC of the body in hexadecimal digits, as GitHub
/// signs its webhooks.
pub const SIGNATURE_HEADER: &str = "x-ds-plan-signature-256";

/// Time before the second attempt, the third, and so on.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// Characters of a secret at least: whoever sees a signed body can try shorter ones.
const SHORTEST_SECRET: usize = 16;

/// The key of signatures, made of a shared secret.
#[derive(Clone)]
pub struct SigningKey(hmac::Key);

impl SigningKey {
    /// Reads the secret in a file; the white space around it does not count.
    ///
    /// # Errors
    /// The file cannot be read, or its secret has fewer than 16 characters. No error shows it.
    pub fn read(file: &Path) -> io::Result<Self> {
        let secret = read_secret(file)?;
        if secret.chars().count() < SHORTEST_SECRET {
            return Err(invalid("the secret has fewer than 16 characters"));
        }
        Ok(Self::of(secret.as_bytes()))
    }

    fn of(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The value of [`SIGNATURE_HEADER`] for this body.
    fn signature(&self, body: &[u8]) -> String {
        let mut signature = "sha256=".to_owned();
        for byte in hmac::sign(&self.0, body).as_ref() {
            let _ = write!(signature, "{byte:02x}");
        }
        signature
    }
}

/// Shows nothing of the secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

/// A URL cannot be a webhook. The message shows at most its host: the rest may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAWebhook(String);

/// A document was not delivered. The message is one line, and safe to show; of the URL, it has scheme
/// and host only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Undelivered {
    message: String,
    /// Whether the same request may succeed later.
    may_pass: bool,
}

/// An endpoint that receives documents.
#[derive(Debug)]
pub struct Webhook {
    address: Address,
    key: SigningKey,
    transport: Arc<Transport>,
    /// Time that one attempt may take.
    time_limit: Duration,
}

impl Webhook {
    /// A webhook; nothing is sent yet.
    ///
    /// # Errors
    /// The URL is not one that may be asked: `https`, or `http` to this machine or into the cluster.
    pub fn new(url: &str, key: SigningKey, time_limit: Duration) -> Result<Self, NotAWebhook> {
        let address = Address::read(url).map_err(|problem| match problem {
            Problem::Plain { .. } => NotAWebhook(problem.to_string()),
            Problem::Login { host } => NotAWebhook(format!(
                "the address of {host} contains a user name; the signature is what proves the sender"
            )),
            _others => {
                NotAWebhook("it is not an address such as https://hooks.example/ds-plan".to_owned())
            }
        })?;
        let transport = Arc::new(Transport::new(Vec::new()));
        Ok(Self { address: address.without_path(), key, transport, time_limit })
    }

    /// Posts a JSON document. Errors that may pass are tried again, three times at most, after 1 s,
    /// 2 s and 4 s: no connection, no answer in time, 408, 429 and 5xx.
    ///
    /// # Errors
    /// The last attempt has failed.
    pub async fn post(&self, document: &str) -> Result<(), Undelivered> {
        for delay in RETRY_DELAYS {
            match self.attempt(document).await {
                Err(failed) if failed.may_pass => tracing::debug!("notification: {failed}"),
                done => return done,
            }
            tokio::time::sleep(delay).await;
        }
        self.attempt(document).await
    }

    async fn attempt(&self, document: &str) -> Result<(), Undelivered> {
        let request = self.request(document);
        let sent = self.transport.send(request, &self.address, None);
        let answer = match tokio::time::timeout(self.time_limit, sent).await {
            Ok(answer) => answer.map(|head| head.status()),
            Err(_) => Err(Problem::Slow { at: self.address.to_string(), limit: self.time_limit }),
        };
        let problem = match answer {
            Ok(200..=299) => return Ok(()),
            Ok(status) => Problem::Status { at: self.address.to_string(), status },
            Err(problem) => problem,
        };
        let may_pass = match &problem {
            Problem::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Problem::Unreachable { .. } | Problem::BrokenOff { .. } | Problem::Slow { .. } => true,
            _others => false,
        };
        Err(Undelivered { message: problem.to_string(), may_pass })
    }

    fn request(&self, document: &str) -> Request<String> {
        let mut request = Request::new(document.to_owned());
        *request.method_mut() = Method::POST;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static("ds-plan"));
        let signature = self.key.signature(document.as_bytes());
        // Hexadecimal digits are valid in a header.
        if let Ok(signature) = HeaderValue::from_str(&signature) {
            headers.insert(HeaderName::from_static(SIGNATURE_HEADER), signature);
        }
        request
    }
}

/// The scheme and the host.
impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)
    }
}

#[cfg(test)]
mod tests;
