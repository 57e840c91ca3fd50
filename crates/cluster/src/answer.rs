//! Reads the body of an answer, up to a size limit.

use std::future::poll_fn;
use std::pin::Pin;

use http::Response;
use http_body::Body as _;
use kube::client::Body;

use super::failure::{self, Failure};
use super::recorded::object_scanner::ObjectScanner;
use super::verb::Verb;

/// The largest accepted page of a list, in bytes: 500 objects of 256 KiB.
const LARGEST_PAGE: usize = 128 << 20;
/// The largest accepted other answer. etcd allows objects of 1.5 MB.
const LARGEST_ANSWER: usize = 16 << 20;
/// The bytes read of an error answer.
const LARGEST_REFUSAL: usize = 1 << 20;

/// The body of a 2xx answer to a request of this verb.
pub(super) async fn read(answer: Response<Body>, verb: Verb) -> Result<Vec<u8>, Failure> {
    let limit = if verb == Verb::List { LARGEST_PAGE } else { LARGEST_ANSWER };
    let (body, is_whole) = beginning(answer.into_body(), limit).await?;
    if !is_whole {
        return Err(Failure::TooLarge(limit));
    }
    if ends_in_the_middle(&body) {
        return Err(Failure::BrokenOff("the answer is incomplete".to_owned()));
    }
    Ok(body)
}

/// The beginning of the body of an error answer.
pub(super) async fn read_refusal(body: Body) -> Result<Vec<u8>, Failure> {
    Ok(beginning(body, LARGEST_REFUSAL).await?.0)
}

/// At most `limit` bytes of a body, and whether that is all of it.
async fn beginning(mut body: Body, limit: usize) -> Result<(Vec<u8>, bool), Failure> {
    let mut bytes = Vec::new();
    while let Some(frame) = frame(&mut body).await {
        let frame = frame.map_err(|error| Failure::BrokenOff(failure::root(&error)))?;
        let room = limit - bytes.len();
        bytes.extend_from_slice(&frame[..frame.len().min(room)]);
        if frame.len() > room {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
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
