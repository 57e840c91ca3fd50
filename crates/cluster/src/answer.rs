//! Reads the body of an answer, up to a size limit, and its format. Protobuf is received while it
//! arrives.

use std::future::poll_fn;
use std::pin::Pin;

use http::Response;
use http::header::{CONTENT_TYPE, HeaderMap};
use http_body::Body as _;
use kube::client::Body;

use super::decode::protobuf::envelope;
use super::failure::{self, Failure};
use super::recorded::object_scanner::ObjectScanner;
use super::verb::Verb;

/// The largest accepted page of a list, in bytes: 500 objects of 256 KiB.
const LARGEST_PAGE: usize = 128 << 20;
/// The largest accepted other answer. etcd allows objects of 1.5 MB.
const LARGEST_ANSWER: usize = 16 << 20;
/// The bytes read of an error answer.
const LARGEST_REFUSAL: usize = 1 << 20;

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, or anything else that is not protobuf.
    Json,
    /// Protobuf in the envelope of Kubernetes.
    Protobuf,
}

/// The media type of protobuf.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Format {
    /// The format that an answer states. A server that has no protobuf for a resource, such as an
    /// aggregated one, answers with JSON.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let stated = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = stated.and_then(|value| value.split(';').next()).unwrap_or_default();
        let is_protobuf = media_type.trim().eq_ignore_ascii_case(PROTOBUF);
        if is_protobuf { Self::Protobuf } else { Self::Json }
    }
}

/// A 2xx answer.
#[derive(Debug)]
pub(super) enum Answer<P> {
    /// The bytes of an answer that is not protobuf.
    Json(Vec<u8>),
    /// An answer in protobuf, as it was received.
    Protobuf(P),
}

/// Receives an answer in protobuf while it arrives.
pub(super) trait Receive: Send {
    /// Takes the next bytes.
    fn take(&mut self, bytes: &[u8]);

    /// Whether what was taken ends in the middle.
    fn is_cut(&self) -> bool;
}

/// Keeps it whole.
impl Receive for Vec<u8> {
    fn take(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn is_cut(&self) -> bool {
        envelope::ends_in_the_middle(self)
    }
}

impl Answer<Vec<u8>> {
    /// The bytes of an answer that was kept whole.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Json(bytes) | Self::Protobuf(bytes) => bytes,
        }
    }
}

/// Reads a 2xx answer to a request of this verb. Returns its size, too.
pub(super) async fn read<P: Receive>(
    answer: Response<Body>,
    verb: Verb,
    receiver: &(dyn Fn() -> P + Sync),
) -> Result<(Answer<P>, usize), Failure> {
    let limit = if verb == Verb::List { LARGEST_PAGE } else { LARGEST_ANSWER };
    let (answer, size, is_cut) = match Format::of(answer.headers()) {
        Format::Json => {
            let mut bytes = Vec::new();
            let take = |frame: &[u8]| bytes.extend_from_slice(frame);
            let size = beginning(answer.into_body(), limit, take).await?;
            let is_cut = ends_in_the_middle(&bytes);
            (Answer::Json(bytes), size, is_cut)
        }
        Format::Protobuf => {
            let mut parts = receiver();
            let size = beginning(answer.into_body(), limit, |frame| parts.take(frame)).await?;
            let is_cut = parts.is_cut();
            (Answer::Protobuf(parts), size, is_cut)
        }
    };
    let size = size.ok_or(Failure::TooLarge(limit))?;
    if is_cut {
        return Err(Failure::BrokenOff("the answer is incomplete".to_owned()));
    }
    Ok((answer, size))
}

/// The beginning of the body of an error answer.
pub(super) async fn read_refusal(body: Body) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    beginning(body, LARGEST_REFUSAL, |frame| bytes.extend_from_slice(frame)).await?;
    Ok(bytes)
}

/// Passes on at most `limit` bytes of a body. Returns its size; `None` if it has more.
async fn beginning(
    mut body: Body,
    limit: usize,
    mut take: impl FnMut(&[u8]),
) -> Result<Option<usize>, Failure> {
    let mut size = 0;
    while let Some(frame) = frame(&mut body).await {
        let frame = frame.map_err(|error| Failure::BrokenOff(failure::root(&error)))?;
        let room = limit - size;
        take(&frame[..frame.len().min(room)]);
        if frame.len() > room {
            return Ok(None);
        }
        size += frame.len();
    }
    Ok(Some(size))
}

/// The next bytes; `None` when the body has ended.
pub(super) async fn frame(
    body: &mut Body,
) -> Option<Result<<Body as http_body::Body>::Data, kube::Error>> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(bytes)) => return Some(Ok(bytes)),
            // Trailers.
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

/// Whether an answer is an incomplete JSON object: a proxy may truncate one without an error. A
/// body that is not an object is left to the decoder.
fn ends_in_the_middle(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    body.is_empty() || body.starts_with(b"{") && ObjectScanner::default().end_in(body).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_its_end_is_incomplete() {
        for (body, cut) in [
            (r#"{"kind":"Pod","a":["}",{}]}"#, false),
            ("\n {}\n", false),
            (r#"{"kind":"PodList","items":[{"a":1}"#, true),
            (r#"{"kind":"Pod","a":"}"#, true),
            ("{", true),
            ("", true),
            // A gateway's error page: not JSON, but complete.
            ("<html>", false),
        ] {
            assert_eq!(ends_in_the_middle(body.as_bytes()), cut, "{body}");
        }
    }
}
