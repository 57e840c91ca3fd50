//! Sends one request and reads its answer, within limits: no redirect is followed, nothing is
//! unpacked, no connection is kept, nothing is sent again.

use std::sync::OnceLock;

use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, LOCATION};
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;

use super::address::Address;
use super::problem::Problem;
use super::quoted::quoted;
use super::token::{self, HostToken};

/// MiB of an answer at most.
const LARGEST_MIB: usize = 8;
/// Bytes of an answer at most.
const LARGEST: usize = LARGEST_MIB << 20;

/// The connections, and what is sent with them.
#[derive(Debug)]
pub(crate) struct Transport {
    plain: Client<HttpConnector, String>,
    /// Made when it is used: a container without certificates can ask by http.
    secure: OnceLock<Result<Client<HttpsConnector<HttpConnector>, String>, Problem>>,
    tokens: Vec<HostToken>,
}

/// The beginning of an answer; the rest is read by [`Head::body`].
pub(crate) struct Head<'a> {
    from: &'a Address,
    answer: Response<Incoming>,
}

impl Transport {
    pub(crate) fn new(tokens: Vec<HostToken>) -> Self {
        let plain = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .retry_canceled_requests(false)
            .build(HttpConnector::new());
        Self { plain, secure: OnceLock::new(), tokens }
    }

    /// Sends `request` to `to`. A redirect is a problem unless it is the status `expected`.
    pub(crate) async fn send<'a>(
        &self,
        mut request: Request<String>,
        to: &'a Address,
        expected: Option<u16>,
    ) -> Result<Head<'a>, Problem> {
        *request.uri_mut() = to.uri().clone();
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(value) = token::authorization(&self.tokens, to)? {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let answer = if to.is_https() {
            self.secure()?.request(request).await
        } else {
            self.plain.request(request).await
        };
        let answer = answer.map_err(|error| failed(&error, to))?;
        let status = answer.status();
        if status.is_redirection() && expected != Some(status.as_u16()) {
            let target = answer.headers().get(LOCATION).map(HeaderValue::as_bytes);
            let target = target.map(|target| to.shown(&String::from_utf8_lossy(target)));
            return Err(Problem::Redirect {
                at: to.to_string(),
                status: status.as_u16(),
                target: target.unwrap_or_else(|| "nowhere".to_owned()),
            });
        }
        Ok(Head { from: to, answer })
    }

    fn secure(&self) -> Result<&Client<HttpsConnector<HttpConnector>, String>, Problem> {
        let made = self.secure.get_or_init(|| {
            let provider = rustls::crypto::ring::default_provider();
            let connector = HttpsConnectorBuilder::new()
                .with_provider_and_native_roots(provider)
                .map_err(|error| Problem::Certificates { reason: quoted(&error.to_string()) })?
                .https_only()
                .enable_http1()
                .build();
            Ok(Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .retry_canceled_requests(false)
                .build(connector))
        });
        made.as_ref().map_err(Clone::clone)
    }
}

impl Head<'_> {
    pub(crate) fn status(&self) -> u16 {
        self.answer.status().as_u16()
    }

    pub(crate) fn is_success(&self) -> bool {
        self.answer.status().is_success()
    }

    /// The whole body.
    pub(crate) async fn body(self) -> Result<Vec<u8>, Problem> {
        let at = || self.from.to_string();
        if let Some(encoding) = self.answer.headers().get(CONTENT_ENCODING)
            && encoding != "identity"
        {
            let encoding = quoted(&String::from_utf8_lossy(encoding.as_bytes()));
            return Err(Problem::Compressed { at: at(), encoding });
        }
        let mut body = self.answer.into_body();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| Problem::BrokenOff { at: at(), reason: root(&error) })?;
            // What is no data is trailers.
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > LARGEST {
                return Err(Problem::Large { at: at(), limit: LARGEST_MIB });
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    }
}

fn failed(error: &legacy::Error, to: &Address) -> Problem {
    let (at, reason) = (to.to_string(), root(error));
    if error.is_connect() {
        Problem::Unreachable { at, reason }
    } else {
        Problem::BrokenOff { at, reason }
    }
}

/// The innermost message of an error: the outer ones only say that it happened.
fn root(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    quoted(&innermost.to_string())
}
