//! What the server answers instead of an object, in its own words (upstream: `metav1.Status`,
//! `k8s.io/apimachinery/pkg/api/errors`).

use std::fmt;

use serde_json::{Map, Value, json};

use super::Kind;
use super::kind::GroupResource;

/// A request that was not carried out, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// One word for it.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// What it is about, as the API has it: name, group, kind, causes and so on.
    details: Option<Map<String, Value>>,
}

/// One word for why (upstream: `metav1.StatusReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is one of that name.
    AlreadyExists,
    /// The request cannot be understood.
    BadRequest,
    /// It is not the version, or not the object, that was meant; or others own fields of it.
    Conflict,
    /// The version is too old.
    Expired,
    /// It is not permitted.
    Forbidden,
    /// The server is at fault.
    InternalError,
    /// The object breaks the API's rules.
    Invalid,
    /// The resource has no such verb.
    MethodNotAllowed,
    /// There is no such object or resource.
    NotFound,
    /// It takes too long.
    Timeout,
    /// Later.
    TooManyRequests,
    /// The body is of a kind that is not understood.
    UnsupportedMediaType,
    /// The server is at fault, and has no word for it.
    Unknown,
    /// The embedded cluster does not do this.
    NotImplemented,
}

impl Reason {
    /// The word in the field `reason`. What is not upstream's has none.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyExists => "AlreadyExists",
            Self::BadRequest => "BadRequest",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::Forbidden => "Forbidden",
            Self::InternalError => "InternalError",
            Self::Invalid => "Invalid",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotFound => "NotFound",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Unknown | Self::NotImplemented => "",
        }
    }

    /// The HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::Unknown => 500,
            Self::NotImplemented => 501,
            Self::Timeout => 504,
        }
    }
}

/// One of several causes (upstream: `metav1.StatusCause`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// One word, such as `FieldValueInvalid`; may be empty.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Where.
    pub field: String,
}

impl Status {
    /// A status of this reason, without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { code: reason.code(), reason, message: message.into(), details: None }
    }

    fn about(self, kind: Kind, name: &str) -> Self {
        let group = kind.group().name();
        self.with("name", name).with("group", group).with("kind", kind.resource())
    }

    fn detail(&mut self, field: &str, value: Value) {
        self.details.get_or_insert_default().insert(field.to_owned(), value);
    }

    /// Has details, of which there are none.
    #[must_use]
    pub(super) fn without_details(self) -> Self {
        Self { details: Some(Map::new()), ..self }
    }

    /// Adds a detail, unless it is empty.
    fn with(mut self, field: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.detail(field, value.into());
        }
        self
    }

    /// Adds causes, unless there are none.
    #[must_use]
    pub(super) fn because(mut self, causes: &[Cause]) -> Self {
        let causes: Vec<Value> = causes.iter().map(Cause::to_value).collect();
        if !causes.is_empty() {
            self.detail("causes", causes.into());
        }
        self
    }

    /// Asks to be left alone for so long.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.detail("retryAfterSeconds", seconds.into());
        self
    }

    /// How long it asks to be left alone, in seconds.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// There is no such object.
    pub fn not_found(kind: Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", GroupResource(kind));
        Self::new(Reason::NotFound, message).about(kind, name)
    }

    /// There is one of that name.
    pub fn already_exists(kind: Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", GroupResource(kind));
        Self::new(Reason::AlreadyExists, message).about(kind, name)
    }

    /// It is not what was meant.
    pub fn conflict(kind: Kind, name: &str, why: &str) -> Self {
        let resource = GroupResource(kind);
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(Reason::Conflict, message).about(kind, name)
    }

    /// The same, said of a subresource.
    pub(super) fn conflict_of(name: &str, resource: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(Reason::Conflict, message).with("name", name).with("kind", resource)
    }

    /// The same, said of a delete: upstream names the kind where it names the resource otherwise.
    pub(super) fn conflict_of_kind(kind: Kind, name: &str, why: &str) -> Self {
        let group = kind.group().name();
        let what = if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") };
        let message = format!("Operation cannot be fulfilled on {what} {name:?}: {why}");
        let status = Self::new(Reason::Conflict, message);
        status.with("name", name).with("group", group).with("kind", kind.as_str())
    }

    /// It is another version by now (upstream: `OptimisticLockErrorMsg`).
    pub fn modified(kind: Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    /// The object breaks the API's rules.
    pub fn invalid(kind: Kind, name: &str, causes: &[Cause]) -> Self {
        let group = kind.group().name();
        let what = if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") };
        // Upstream gathers what is wrong in a set of messages.
        let mut texts: Vec<String> = Vec::new();
        for cause in causes {
            let text = format!("{}: {}", cause.field, cause.message);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let all = match texts.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{what} {name:?} is invalid: {all}");
        Self::new(Reason::Invalid, message)
            .with("name", name)
            .with("group", group)
            .with("kind", kind.as_str())
            .because(causes)
    }

    /// The same, where upstream names the resource instead of the kind.
    pub(super) fn invalid_resource(kind: Kind, name: &str, causes: &[Cause]) -> Self {
        let mut status = Self::invalid(kind, name, causes);
        let words = (kind.as_str(), kind.resource());
        status.message = status.message.replacen(words.0, words.1, 1);
        status.with("kind", kind.resource())
    }

    /// The request's own options break the API's rules.
    pub(super) fn invalid_options(kind: &str, causes: &[Cause]) -> Self {
        let texts: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}", texts.join(", "));
        let status = Self::new(Reason::Invalid, message).with("group", "meta.k8s.io");
        status.with("kind", kind).because(causes)
    }

    /// It is not permitted.
    pub fn forbidden(kind: Kind, name: &str, why: &str) -> Self {
        let resource = GroupResource(kind);
        let message = match name {
            "" => format!("{resource} is forbidden: {why}"),
            name => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self::new(Reason::Forbidden, message).about(kind, name)
    }

    /// The request cannot be understood.
    pub fn bad_request(why: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, why)
    }

    /// The embedded cluster does not do this; `what` names it.
    pub fn not_implemented(what: impl fmt::Display) -> Self {
        Self::new(Reason::NotImplemented, format!("the embedded cluster does not serve {what}"))
    }

    /// As the API has it.
    pub fn to_value(&self) -> Value {
        let Self { code, reason, message, details } = self;
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": code,
        });
        if !reason.as_str().is_empty() {
            status["reason"] = reason.as_str().into();
        }
        if let Some(details) = details {
            status["details"] = details.clone().into();
        }
        status
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut cause = Map::new();
        for (field, text) in
            [("reason", self.reason), ("message", &self.message), ("field", &self.field)]
        {
            if !text.is_empty() {
                cause.insert(field.to_owned(), text.into());
            }
        }
        cause.into()
    }
}
