//! Encodes answers: objects, lists, statuses, and their bodies.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use http::{HeaderValue, Response};
use http_body::Frame;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::json;

use super::watch::Watching;
use crate::verbs::Page;
use crate::{Deleted, Kind, Object, Status};

/// Bytes of a body.
pub(super) type Bytes = <kube::client::Body as http_body::Body>::Data;

/// An answer before it is sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: Content,
    retry_after: Option<u64>,
}

/// The content of an answer.
#[derive(Debug)]
pub(super) enum Content {
    Text(String),
    Stream(Box<Watching>),
}

impl Answer {
    pub(super) fn json(code: u16, text: String) -> Self {
        Self { code, body: Content::Text(text), retry_after: None }
    }

    pub(super) fn object(code: u16, object: &Object) -> Self {
        Self::json(code, object.json())
    }

    pub(super) fn stream(watching: Watching) -> Self {
        Self { code: 200, body: Content::Stream(Box::new(watching)), retry_after: None }
    }

    /// The answer to a deletion: a status if it is complete, except for pods, which return the
    /// object.
    pub(super) fn deleted(deleted: &Deleted) -> Self {
        let object = deleted.object();
        match deleted {
            Deleted::Gone(_) if object.kind() != Kind::Pod => {
                let (name, group) = (object.key().name(), object.kind().group().name());
                let mut details = json!({
                    "name": name, "kind": object.kind().resource(), "uid": object.meta().uid,
                });
                if !group.is_empty() {
                    details["group"] = group.into();
                }
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": details,
                });
                Self::json(200, status.to_string())
            }
            Deleted::Gone(_) | Deleted::Going(_) => Self::object(200, object),
        }
    }

    pub(super) fn page(kind: Kind, page: &Page) -> Self {
        let Page { items, version, token, remaining } = page;
        let length: usize =
            items.iter().flat_map(|item| item.item_json()).map(|piece| piece.len() + 1).sum();
        let mut text = String::with_capacity(length + 200);
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if !token.is_empty() {
            metadata["continue"] = token.as_str().into();
        }
        if let Some(remaining) = remaining {
            metadata["remainingItemCount"] = (*remaining).into();
        }
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{{\"kind\":\"{kind}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            kind.api_version()
        );
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.extend(item.item_json());
        }
        text.push_str("]}");
        Self::json(200, text)
    }

    /// The HTTP response, dated `now`.
    pub(super) fn into_response(self, now: Timestamp) -> Response<AnswerBody> {
        let Self { code, body, retry_after } = self;
        let body = match body {
            Content::Text(text) => AnswerBody::Text(VecDeque::from([text.into_bytes().into()])),
            Content::Stream(watching) => AnswerBody::Stream(watching),
        };
        let mut response = Response::new(body);
        if let Ok(code) = http::StatusCode::from_u16(code) {
            *response.status_mut() = code;
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok();
        if let Some(date) = date.and_then(|date| HeaderValue::try_from(date).ok()) {
            headers.insert(DATE, date);
        }
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        let retry_after = status.retry_after_seconds();
        Self { retry_after, ..Self::json(status.code, status.to_value().to_string()) }
    }
}

impl From<Result<Arc<Object>, Status>> for Answer {
    fn from(result: Result<Arc<Object>, Status>) -> Self {
        match result {
            Ok(object) => Self::object(200, &object),
            Err(status) => status.into(),
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub enum AnswerBody {
    /// A complete body.
    Text(VecDeque<Bytes>),
    /// The stream of a watch.
    Stream(Box<Watching>),
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut *self {
            Self::Text(frames) => {
                Poll::Ready(frames.pop_front().map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Stream(watching) => {
                let next = watching.poll_text(context);
                next.map(|text| text.map(|text| Ok(Frame::data(text?.into_bytes().into()))))
            }
        }
    }
}
