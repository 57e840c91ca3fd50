//! The errors of a write, classified by what the writer can do about them (upstream:
//! `metav1.StatusReason`, `metav1.CauseType`).

use std::fmt;
use std::time::Duration;

use super::failure::{Failure, Refusal, StatusCause};
use super::request::Call;
use super::retry;
use super::{Error, Permission, Resource, Verb};
use daemonset::model::NamespaceName;

/// A write, as shown in messages: `patch daemonsets.apps logging/agent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// The verb.
    pub verb: Verb,
    /// The resource.
    pub resource: Resource,
    /// The namespace; `None` is the whole cluster.
    pub namespace: Option<NamespaceName>,
    /// The object's name; empty when the server generates it.
    pub name: String,
    /// Whether it was a dry run, which cannot have changed anything.
    pub dry_run: bool,
}

impl Attempted {
    /// What `call` attempts on the object `name`.
    pub(super) fn by(
        call: &Call,
        namespace: Option<&NamespaceName>,
        name: &str,
        dry_run: bool,
    ) -> Self {
        Self {
            verb: call.verb,
            resource: call.resource,
            namespace: namespace.cloned(),
            name: name.to_owned(),
            dry_run,
        }
    }
}

impl fmt::Display for Attempted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        match (&self.namespace, self.name.as_str()) {
            (Some(namespace), "") => write!(f, " in namespace {namespace}"),
            (Some(namespace), name) => write!(f, " {namespace}/{name}"),
            (None, "") => Ok(()),
            (None, name) => write!(f, " {name}"),
        }?;
        f.write_str(if self.dry_run { " (dry run)" } else { "" })
    }
}

/// A field that the write would change and another field manager owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedField {
    /// The path in structured-merge-diff's notation:
    /// `.spec.template.spec.containers[name="a"].image`.
    pub path: String,
    /// The field manager that owns it.
    pub manager: String,
    /// The API version that the manager wrote, when it did not use server-side apply.
    pub api_version: Option<String>,
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The path, such as `spec.template.spec.containers[0].image`.
    pub path: String,
    /// The server's message.
    pub message: String,
}

/// Why a write failed, or may have failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Nothing was sent: the lock is lost, or was not renewed recently enough.
    #[error("{attempted}: not sent: the lock was not renewed in time")]
    Unlocked {
        /// The write.
        attempted: Attempted,
    },
    /// Server-side apply without force: other field managers own fields that would change (409
    /// with causes `FieldManagerConflict`).
    #[error(
        "{attempted}: {} of its fields {} owned by other field managers",
        fields.len(),
        are(fields.len())
    )]
    Conflict {
        /// The write.
        attempted: Attempted,
        /// The fields, in the server's order.
        fields: Vec<OwnedField>,
    },
    /// The object is no longer the one that was read: it has another resource version (409) or
    /// another uid (409 for deletes, 422 for patches). Read it again.
    #[error("{attempted}: the object has changed since it was read: {message}")]
    Stale {
        /// The write.
        attempted: Attempted,
        /// The server's message.
        message: String,
    },
    /// The object does not exist (404).
    #[error("{attempted}: it does not exist")]
    NotFound {
        /// The write.
        attempted: Attempted,
    },
    /// The object already exists (409).
    #[error("{attempted}: it already exists")]
    AlreadyExists {
        /// The write.
        attempted: Attempted,
    },
    /// RBAC or another authorizer denies the write to this user (403).
    #[error("not permitted: {missing}")]
    Forbidden {
        /// The missing permission.
        missing: Permission,
        /// The server's message.
        message: String,
    },
    /// The object is invalid (422).
    #[error("{attempted}: {message}")]
    Invalid {
        /// The write.
        attempted: Attempted,
        /// The invalid fields.
        fields: Vec<InvalidField>,
        /// The server's message.
        message: String,
    },
    /// Admission denied it: a webhook, a policy, `PodSecurity`, a quota or a missing
    /// `PriorityClass`.
    #[error("{attempted}: {message}")]
    Denied {
        /// The write.
        attempted: Attempted,
        /// HTTP status code, which a webhook chooses freely.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// The server still sheds load (429) after several attempts. Nothing was written.
    #[error("{attempted}: the server is overloaded (429 Too Many Requests)")]
    TooManyRequests {
        /// The write.
        attempted: Attempted,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// No answer, or the answer of a gateway that lost the server's one. The write may have been
    /// applied, or may still be applied: read the object again. Never returned for dry runs.
    #[error("{attempted}: the outcome is unknown: {reason}")]
    OutcomeUnknown {
        /// The write.
        attempted: Attempted,
        /// Why there is no answer.
        reason: String,
    },
    /// The server cannot process it (500), for example two list elements with the same key in a
    /// server-side apply; or any other status. Sending it again does not help.
    #[error("{attempted}: the server answered {status}: {message}")]
    Refused {
        /// The write.
        attempted: Attempted,
        /// HTTP status code.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// The server cannot be reached or trusted, or does not accept the credentials. Nothing was
    /// written.
    #[error(transparent)]
    Cluster(#[from] Error),
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

impl WriteError {
    /// Whether the object is deleted, or replaced by another one of the same name: a delete has
    /// nothing left to do.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Stale { .. })
    }

    /// Whether the write may have been applied although it failed.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown { .. })
    }

    /// Converts the failure of a request into the error of its write.
    pub(super) fn of(failure: Failure, attempted: Attempted, call: &Call, server: &str) -> Self {
        match failure {
            Failure::Unlocked => Self::Unlocked { attempted },
            Failure::Status(Refusal { code: 401, .. }) => {
                Self::Cluster(failure.into_error(server, call.to_string()))
            }
            Failure::Status(refusal) => Self::of_refusal(refusal, attempted),
            Failure::BrokenOff(ref reason) if !attempted.dry_run => Self::OutcomeUnknown {
                attempted,
                reason: format!("the connection was lost: {reason}"),
            },
            Failure::LockRanOut => {
                let reason = "the lock was lost before the server answered".to_owned();
                Self::OutcomeUnknown { attempted, reason }
            }
            Failure::Timeout(limit) if !attempted.dry_run => {
                let reason = format!("no answer within {} s", limit.as_secs());
                Self::OutcomeUnknown { attempted, reason }
            }
            Failure::TooLarge(limit) if !attempted.dry_run => {
                let reason = format!("the answer is larger than {} MiB", limit >> 20);
                Self::OutcomeUnknown { attempted, reason }
            }
            Failure::BrokenOff(_)
            | Failure::Timeout(_)
            | Failure::TooLarge(_)
            | Failure::Unreachable(_)
            | Failure::Tls(_)
            | Failure::Credentials { .. } => {
                Self::Cluster(failure.into_error(server, call.to_string()))
            }
        }
    }

    fn of_refusal(refusal: Refusal, attempted: Attempted) -> Self {
        if refusal.is_denial() {
            let Refusal { code: status, message, .. } = refusal;
            return Self::Denied { attempted, status, message };
        }
        // A 500 comes from the server itself; other 5xx may come from a gateway.
        let unknown = refusal.code != 500
            && !attempted.dry_run
            && retry::may_have_happened(&Failure::Status(refusal.clone()));
        let Refusal { code: status, message, reason, causes, retry_after } = refusal;
        match (status, reason.as_str()) {
            (409, "AlreadyExists") => Self::AlreadyExists { attempted },
            (409, _) => match owned_fields(&causes) {
                fields if fields.is_empty() => Self::Stale { attempted, message },
                fields => Self::Conflict { attempted, fields },
            },
            (404, _) => Self::NotFound { attempted },
            (403, _) => {
                let Attempted { verb, resource, namespace, .. } = attempted;
                // A patch that creates the object needs both permissions.
                let creates = message.contains(" cannot create resource ");
                let verb = if creates { Verb::Create } else { verb };
                Self::Forbidden { missing: Permission { verb, resource, namespace }, message }
            }
            // The uid does not match: the object was replaced by another one.
            (422, _) if causes.iter().any(|cause| cause.field == "metadata.uid") => {
                Self::Stale { attempted, message }
            }
            (422, _) => Self::Invalid { attempted, fields: invalid_fields(causes), message },
            (429, _) => Self::TooManyRequests { attempted, retry_after },
            _ if unknown => {
                Self::OutcomeUnknown { attempted, reason: format!("{status}: {message}") }
            }
            _ => Self::Refused { attempted, status, message },
        }
    }
}

impl Refusal {
    /// Whether admission refused the write, rather than RBAC or validation. Upstream has no field
    /// for it: webhooks and policies say `denied`; admission plugins use RBAC's `Forbidden` with
    /// another message (`WithAuthorizationError` says `User "…" cannot …`).
    fn is_denial(&self) -> bool {
        let by_policy = self.message.contains(" denied the request")
            || self.message.contains(" denied request: ");
        let by_plugin = self.code == 403 && !self.message.contains("\" cannot ");
        (400..500).contains(&self.code) && by_policy || by_plugin
    }
}

/// The causes of a server-side apply's conflict.
fn owned_fields(causes: &[StatusCause]) -> Vec<OwnedField> {
    let conflicts = causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
    conflicts
        .map(|cause| {
            let (manager, api_version) = manager_of(&cause.message);
            OwnedField { path: cause.field.clone(), manager, api_version }
        })
        .collect()
}

/// Parses `conflict with "NAME" with subresource "status" using apps/v1 at TIME` (upstream:
/// `printManager`); the name is quoted as in Go.
fn manager_of(message: &str) -> (String, Option<String>) {
    let rest = message.strip_prefix("conflict with ").unwrap_or(message);
    let mut names = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let (name, rest) = match names.next() {
        Some(Ok(name)) => {
            let end = names.byte_offset();
            (name, &rest[end..])
        }
        Some(Err(_)) | None => return (rest.to_owned(), None),
    };
    let version = rest.split_once(" using ").map(|(_, version)| version);
    let version = version.and_then(|version| version.split(' ').next());
    (name, version.map(str::to_owned))
}

fn invalid_fields(causes: Vec<StatusCause>) -> Vec<InvalidField> {
    let fields = causes.into_iter();
    fields.map(|StatusCause { field: path, message, .. }| InvalidField { path, message }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Kind;

    fn reported(code: u16, status: &Value, dry_run: bool) -> WriteError {
        let call = Call::get(Resource::Of(Kind::Pod), "/api/v1/namespaces/a/pods/b");
        let attempted = Attempted {
            verb: Verb::Delete,
            resource: Resource::Of(Kind::Pod),
            namespace: Some("a".into()),
            name: "b".to_owned(),
            dry_run,
        };
        let refusal = Refusal::read(code, None, status.to_string().as_bytes());
        WriteError::of(Failure::Status(refusal), attempted, &call, "https://test")
    }

    fn word(error: &WriteError) -> &'static str {
        match error {
            WriteError::Unlocked { .. } => "unlocked",
            WriteError::Conflict { .. } => "conflict",
            WriteError::Stale { .. } => "stale",
            WriteError::NotFound { .. } => "not found",
            WriteError::AlreadyExists { .. } => "already exists",
            WriteError::Forbidden { .. } => "forbidden",
            WriteError::Invalid { .. } => "invalid",
            WriteError::Denied { .. } => "denied",
            WriteError::TooManyRequests { .. } => "too many requests",
            WriteError::OutcomeUnknown { .. } => "outcome unknown",
            WriteError::Refused { .. } => "refused",
            WriteError::Cluster(_) => "cluster",
        }
    }

    #[test]
    fn answers_are_classified() {
        let say = |reason: &str, message: &str| json!({"reason": reason, "message": message});
        let caused = |reason: &str, cause: Value| json!({"reason": reason, "message": "m", "details": {"causes": [cause]}});
        let conflict = json!({
            "reason": "FieldManagerConflict",
            "message": "conflict with \"kubectl\" using apps/v1 at 2026-01-01T00:00:00Z",
            "field": ".spec.x",
        });
        let uid = json!({"reason": "FieldValueInvalid", "message": "m", "field": "metadata.uid"});
        let field = json!({"reason": "FieldValueInvalid", "message": "m", "field": "spec.x"});
        for (code, status, want) in [
            (409, caused("Conflict", conflict), "conflict"),
            (409, say("Conflict", "the object has been modified"), "stale"),
            (409, say("Conflict", "Precondition failed: UID"), "stale"),
            (422, caused("Invalid", uid), "stale"),
            (409, say("AlreadyExists", "m"), "already exists"),
            (404, say("NotFound", "m"), "not found"),
            (422, caused("Invalid", field), "invalid"),
            (
                403,
                say("Forbidden", "pods \"b\" is forbidden: User \"u\" cannot delete …"),
                "forbidden",
            ),
            (403, say("Forbidden", "pods \"b\" is forbidden: violates PodSecurity"), "denied"),
            (
                403,
                say("Forbidden", "pods \"b\" is forbidden: no PriorityClass with name x"),
                "denied",
            ),
            (400, say("", "admission webhook \"x\" denied the request: no"), "denied"),
            (
                422,
                say("Invalid", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: n"),
                "denied",
            ),
            (429, say("TooManyRequests", "m"), "too many requests"),
            (500, say("InternalError", "m"), "refused"),
            (502, json!("<html>"), "outcome unknown"),
            (503, say("ServiceUnavailable", "m"), "outcome unknown"),
            (504, say("Timeout", "m"), "outcome unknown"),
            (400, say("BadRequest", "m"), "refused"),
            (413, say("RequestEntityTooLarge", "m"), "refused"),
            (401, say("Unauthorized", "m"), "cluster"),
        ] {
            assert_eq!(word(&reported(code, &status, false)), want, "{code} {status}");
        }
        assert_eq!(word(&reported(504, &say("Timeout", "m"), true)), "refused", "a dry run");
    }

    #[test]
    fn managers_are_parsed_as_upstream_prints_them() {
        for (message, name, version) in [
            (r#"conflict with "kubectl""#, "kubectl", None),
            (r#"conflict with "a b" using apps/v1"#, "a b", Some("apps/v1")),
            (r#"conflict with "x" using apps/v1 at 2026-01-01T00:00:00Z"#, "x", Some("apps/v1")),
            (r#"conflict with "x" with subresource "status" using apps/v1"#, "x", Some("apps/v1")),
            (r#"conflict with "say \"using\"" using apps/v1"#, "say \"using\"", Some("apps/v1")),
            ("something else", "something else", None),
        ] {
            let want = (name.to_owned(), version.map(str::to_owned));
            assert_eq!(manager_of(message), want, "{message}");
        }
    }

    #[test]
    fn messages_name_the_permission_and_the_object() {
        let error = reported(403, &json!({"message": "User \"u\" cannot delete"}), false);
        assert_eq!(error.to_string(), "not permitted: delete pods in namespace a");
        let error = reported(404, &json!({"message": "m"}), true);
        assert_eq!(error.to_string(), "delete pods a/b (dry run): it does not exist");
    }
}
