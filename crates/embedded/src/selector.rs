//! `labelSelector` and `fieldSelector` of lists and watches (upstream: `fields.ParseSelector`, and
//! the supported fields of each kind).

use serde_json::Value;

use super::{Kind, Object, Status};
use daemonset::model::{ExpectedToken, LabelSelector, ParseLabelSelectorError};

/// A selection of the objects of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: LabelSelector,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Parses both selectors; empty ones select everything.
    ///
    /// # Errors
    /// 400: a selector is invalid, or the kind does not support the field.
    pub(crate) fn parse(kind: Kind, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = labels.parse().map_err(|error| {
            Status::bad_request(format!("unable to parse requirement: {}", words_of(&error)))
        })?;
        Ok(Self { labels, fields: parse_fields(kind, fields)? })
    }

    /// `true` if everything is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// `true` if an object is selected.
    pub(crate) fn selects(&self, object: &Object) -> bool {
        self.labels.matches(&object.meta().labels)
            && self
                .fields
                .iter()
                .all(|field| (field_of(object, &field.path) == field.value) == field.equal)
    }
}

/// A field's value; empty when it is absent.
fn field_of(object: &Object, path: &str) -> String {
    match (path, object.pod()) {
        ("metadata.name", _) => return object.key().name().to_owned(),
        ("metadata.namespace", _) => return object.key().namespace().to_owned(),
        ("spec.nodeName", Some(pod)) => {
            // Most lists of pods by node come from node agents, one for each node.
            return if pod.is_bound() { pod.node().map(ToString::to_string) } else { None }
                .unwrap_or_default();
        }
        _ => {}
    }
    let value = object.value();
    let pointer = format!("/{}", path.replace('.', "/"));
    match value.pointer(&pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None if path == "spec.hostNetwork" || path == "spec.unschedulable" => {
            "false".to_owned()
        }
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The supported fields of a kind, in addition to name and namespace.
fn selectable(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Pod => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        Kind::Node => &["spec.unschedulable"],
        Kind::Namespace => &["status.phase"],
        Kind::Service => &["spec.clusterIP", "spec.type"],
        Kind::Event => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        Kind::ConfigMap | Kind::DaemonSet | Kind::ControllerRevision | Kind::Lease => &[],
    }
}

fn parse_fields(kind: Kind, text: &str) -> Result<Vec<Field>, Status> {
    let mut all = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (path, value, true)
        } else {
            let why = format!(
                "invalid field selector: invalid selector: '{term}'; can't understand '{term}'"
            );
            return Err(Status::bad_request(why));
        };
        let known = path == "metadata.name"
            || path == "metadata.namespace" && kind.is_namespaced()
            || selectable(kind).contains(&path);
        if !known {
            return Err(Status::bad_request(unknown_field(kind, path)));
        }
        all.push(Field { path: path.to_owned(), value: value.to_owned(), equal });
    }
    Ok(all)
}

/// The error for an unsupported field; its text differs by kind.
fn unknown_field(kind: Kind, path: &str) -> String {
    match kind {
        Kind::Pod | Kind::Node | Kind::Event | Kind::Namespace | Kind::Service => {
            format!("field label not supported: {path}")
        }
        Kind::ConfigMap | Kind::DaemonSet | Kind::ControllerRevision | Kind::Lease => format!(
            "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
    }
}

/// A parse error of a label selector, in upstream's words.
fn words_of(error: &ParseLabelSelectorError) -> String {
    let ParseLabelSelectorError::Unexpected { expected, found } = error else {
        return error.to_string();
    };
    match expected {
        ExpectedToken::Key => {
            format!("found '{found}', expected: !, identifier, or 'end of string'")
        }
        ExpectedToken::NextKey => format!("found '{found}', expected: identifier after ','"),
        ExpectedToken::Operator => {
            format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")
        }
        ExpectedToken::Open => format!("found '{found}' expected: '('"),
        ExpectedToken::CommaOrClose => format!("found '{found}', expected: ',' or ')'"),
        ExpectedToken::CommaOrEnd => {
            format!("found '{found}', expected: ',' or 'end of string'")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_servers_words() {
        for (text, want) in [
            ("=b", "found '=', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("a in b", "found 'b' expected: '('"),
            ("a in (b", "found '', expected: ',' or ')'"),
            ("a>4", "`a>4` is not a label key"),
        ] {
            let status = Selector::parse(Kind::Pod, text, "").unwrap_err();
            assert_eq!(status.message, format!("unable to parse requirement: {want}"), "{text}");
        }
    }

    #[test]
    fn only_supported_fields_select() {
        for (kind, text, ok) in [
            (Kind::Pod, "spec.nodeName=n,metadata.namespace!=x", true),
            (Kind::Pod, "status.phase==Running", true),
            (Kind::Pod, "spec.containers=x", false),
            (Kind::Node, "metadata.namespace=x", false),
            (Kind::Lease, "metadata.namespace!=kube-node-lease", true),
            (Kind::DaemonSet, "spec.x=y", false),
            (Kind::Event, "involvedObject.kind=DaemonSet,type=Warning", true),
            (Kind::Event, "type", false),
        ] {
            assert_eq!(Selector::parse(kind, "", text).is_ok(), ok, "{kind} {text}");
        }
    }
}
