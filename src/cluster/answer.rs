//! The body of an answer, piece by piece, and no more of it than is due.

use std::future::poll_fn;
use std::pin::Pin;

use http::Response;
use http_body::Body as _;
use kube::client::Body;

use super::failure::{self, Failure};
use super::recorded::border::Border;
use super::verb::Verb;

/// The largest page of a list that is read, in bytes: 500 objects of 256 KiB.
const LARGEST_PAGE: usize = 128 << 20;
/// The largest other answer. No object is larger than its store allows, which is 1.5 MB.
const LARGEST_ANSWER: usize = 16 << 20;
/// How much of a refusal is read.
const LARGEST_REFUSAL: usize = 1 << 20;

/// The body of a good answer to a request of this verb.
pub(super) async fn read(answer: Response<Body>, verb: Verb) -> Result<Vec<u8>, Failure> {
    let limit = if verb == Verb::List { LARGEST_PAGE } else { LARGEST_ANSWER };
    let (body, is_whole) = beginning(answer.into_body(), limit).await?;
    if !is_whole {
        return Err(Failure::TooLarge(limit));
    }
    if ends_in_the_middle(&body) {
        return Err(Failure::BrokenOff("the answer ends in the middle".to_owned()));
    }
    Ok(body)
}

/// The body of a refusal, as far as it may say why.
pub(super) async fn read_refusal(body: Body) -> Result<Vec<u8>, Failure> {
    Ok(beginning(body, LARGEST_REFUSAL).await?.0)
}

/// At most so many bytes of a body, and whether that is all of it.
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

/// Whether an answer is an object whose end is missing: a proxy may cut one off without a sign of
/// it. What is no object at all is for whoever decodes it.
fn ends_in_the_middle(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    body.is_empty() || body.starts_with(b"{") && Border::default().end_in(body).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_its_end_was_cut_off() {
        for (body, cut) in [
            (r#"{"kind":"Pod","a":["}",{}]}"#, false),
            ("\n {}\n", false),
            (r#"{"kind":"PodList","items":[{"a":1}"#, true),
            (r#"{"kind":"Pod","a":"}"#, true),
            ("{", true),
            ("", true),
            // Some gateway's page: no answer, but a whole one.
            ("<html>", false),
        ] {
            assert_eq!(ends_in_the_middle(body.as_bytes()), cut, "{body}");
        }
    }
}
