//! The error answers of the server, in its own words (upstream: `metav1.Status`,
//! `k8s.io/apimachinery/pkg/api/errors`).

use std::fmt;

use serde_json::{Map, Value, json};

use super::Kind;
use super::kind::GroupResource;

/// A failed request, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason.
    pub reason: Reason,
    /// The message.
    pub message: String,
    /// The `details` of the API: name, group, kind, causes and so on.
    details: Option<Map<String, Value>>,
}

/// A machine-readable reason (upstream: `metav1.StatusReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An object of that name exists.
    AlreadyExists,
    /// The request is invalid.
    BadRequest,
    /// The object has another version or uid than required, or other managers own fields of it.
    Conflict,
    /// The resource version is too old.
    Expired,
    /// The request is not allowed.
    Forbidden,
    /// The server failed.
    InternalError,
    /// The object violates the API's rules.
    Invalid,
    /// The resource does not support the verb.
    MethodNotAllowed,
    /// There is no such object or resource.
    NotFound,
    /// The client must retry later.
    TooManyRequests,
    /// The credentials are not accepted.
    Unauthorized,
    /// The media type of the body is not supported.
    UnsupportedMediaType,
    /// The server failed for an unknown reason.
    Unknown,
    /// The embedded cluster does not support the request.
    NotImplemented,
}

impl Reason {
    /// Value of the field `reason`; empty for reasons that upstream does not have.
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
            Self::TooManyRequests => "TooManyRequests",
            Self::Unauthorized => "Unauthorized",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Unknown | Self::NotImplemented => "",
        }
    }

    /// The HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
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
        }
    }
}

/// One cause (upstream: `metav1.StatusCause`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Type of the cause, such as `FieldValueInvalid`; may be empty.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

impl Status {
    /// A status with this reason, without details.
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

    /// Adds empty details.
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

    /// Asks the client to retry after this time.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.detail("retryAfterSeconds", seconds.into());
        self
    }

    /// The time after which the client may retry, in seconds.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// The object does not exist.
    pub fn not_found(kind: Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", GroupResource(kind));
        Self::new(Reason::NotFound, message).about(kind, name)
    }

    /// An object of that name exists.
    pub fn already_exists(kind: Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", GroupResource(kind));
        Self::new(Reason::AlreadyExists, message).about(kind, name)
    }

    /// A conflict about an object.
    pub fn conflict(kind: Kind, name: &str, why: &str) -> Self {
        let resource = GroupResource(kind);
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(Reason::Conflict, message).about(kind, name)
    }

    /// A conflict about a subresource.
    pub(super) fn conflict_of(name: &str, resource: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(Reason::Conflict, message).with("name", name).with("kind", resource)
    }

    /// A conflict about a delete, for which upstream names the kind instead of the resource.
    pub(super) fn conflict_of_kind(kind: Kind, name: &str, why: &str) -> Self {
        let group = kind.group().name();
        let what = if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") };
        let message = format!("Operation cannot be fulfilled on {what} {name:?}: {why}");
        let status = Self::new(Reason::Conflict, message);
        status.with("name", name).with("group", group).with("kind", kind.as_str())
    }

    /// The object has another version (upstream: `OptimisticLockErrorMsg`).
    pub fn modified(kind: Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    /// The object violates the API's rules.
    pub fn invalid(kind: Kind, name: &str, causes: &[Cause]) -> Self {
        let group = kind.group().name();
        let what = if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") };
        // Upstream collects the messages in a set.
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

    /// The same, for cases in which upstream names the resource instead of the kind.
    pub(super) fn invalid_resource(kind: Kind, name: &str, causes: &[Cause]) -> Self {
        let mut status = Self::invalid(kind, name, causes);
        let words = (kind.as_str(), kind.resource());
        status.message = status.message.replacen(words.0, words.1, 1);
        status.with("kind", kind.resource())
    }

    /// The options of the request violate the API's rules.
    pub(super) fn invalid_options(kind: &str, causes: &[Cause]) -> Self {
        let texts: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}", texts.join(", "));
        let status = Self::new(Reason::Invalid, message).with("group", "meta.k8s.io");
        status.with("kind", kind).because(causes)
    }

    /// The request is not allowed.
    pub fn forbidden(kind: Kind, name: &str, why: &str) -> Self {
        let resource = GroupResource(kind);
        let message = match name {
            "" => format!("{resource} is forbidden: {why}"),
            name => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self::new(Reason::Forbidden, message).about(kind, name)
    }

    /// The request is invalid.
    pub fn bad_request(why: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, why)
    }

    /// The embedded cluster does not support this; `what` names it.
    pub fn not_implemented(what: impl fmt::Display) -> Self {
        Self::new(Reason::NotImplemented, format!("the embedded cluster does not serve {what}"))
    }

    /// The decoding error for an object that does not have its kind's shape.
    pub(super) fn wrong_type(kind: Kind, why: &str) -> Self {
        let version = kind.api_version().rsplit('/').next().unwrap_or_default();
        let message =
            format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
        Self::bad_request(message)
    }

    /// The status in the API's format.
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
    /// Converts errors of a manifest to causes of a `Status`. Those of `ds-plan`'s own rules are
    /// omitted, as the server does not have them.
    pub(super) fn of_manifest(errors: &[manifest::FieldError]) -> Vec<Self> {
        let of_server =
            |error: &&manifest::FieldError| error.refused_by == manifest::RefusedBy::ApiServer;
        let cause = |error: &manifest::FieldError| Self {
            reason: error.kind.reason(),
            message: error.body(),
            field: error.path.clone(),
        };
        errors.iter().filter(of_server).map(cause).collect()
    }

    /// The cause for a change of an immutable field.
    pub(super) fn immutable(field: &str, value: &Value) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: field is immutable"),
            field: field.to_owned(),
        }
    }

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
