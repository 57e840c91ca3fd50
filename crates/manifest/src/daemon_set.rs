//! Converts one DaemonSet document to the desired DaemonSet: decoded, defaulted, validated.
//!
//! The stages are the API server's, in its order: decode, default, validate; an object that does
//! not decode is not validated. Fields that only the server writes are ignored, so that a manifest
//! exported from a cluster requests no change.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use daemonset::model::{
    DaemonSetKey, DaemonSetSpec, DesiredDaemonSet, Labels, ManagedBy, Place,
    TEMPLATE_GENERATION_ANNOTATION,
};

use super::decode::{self, Problem};
use super::defaults::{self, Object};
use super::error::{Error, TypeProblem};
use super::objects::Found;
use super::options::{FieldValidation, Options};
use super::validate::{unchecked_volumes, validate, warnings};
use super::warning::{UnknownField, Warning};
use super::written::written;

/// Fields of `metadata` that the server or its controllers write.
const SERVER_METADATA: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Annotations that kubectl or the server write.
const SERVER_ANNOTATIONS: [&str; 2] =
    [TEMPLATE_GENERATION_ANNOTATION, "kubectl.kubernetes.io/last-applied-configuration"];

/// Reads one DaemonSet; appends errors and warnings to the lists.
pub(super) fn read(
    found: &Found,
    options: &Options,
    errors: &mut Vec<Error>,
    warnings: &mut Vec<Warning>,
) -> Option<DesiredDaemonSet> {
    let mut reader = Reader { found, errors: Vec::new(), warnings };
    let desired = reader.read(options);
    let failed = !reader.errors.is_empty();
    errors.append(&mut reader.errors);
    desired.filter(|_| !failed)
}

struct Reader<'r> {
    found: &'r Found,
    errors: Vec<Error>,
    warnings: &'r mut Vec<Warning>,
}

impl Reader<'_> {
    fn place(&self, path: &str) -> Place {
        let mark = self.found.node.mark_of(path);
        Place { path: Arc::clone(&self.found.path), line: mark.line, column: mark.column }
    }

    fn read(&mut self, options: &Options) -> Option<DesiredDaemonSet> {
        let source = self.found.node.to_value();
        let (mut object, problems) = decode::daemon_set(source.clone());
        let unknown = decode::unknown_paths(&problems);
        let decodes = !problems.iter().any(|problem| matches!(problem, Problem::Type { .. }));
        for problem in problems {
            self.report(problem, options.validate);
        }
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        let decodes = self.check_template_generation(metadata) && decodes;
        self.leave_out_server_fields(metadata);
        if !metadata.contains_key("namespace") {
            metadata.insert("namespace".to_owned(), options.default_namespace.as_str().into());
        }
        let namespace = metadata["namespace"].clone();
        if !decodes {
            return None;
        }
        let mut written = written(&source, &object, |path| !unknown.contains(path));
        written["metadata"]["namespace"] = namespace;
        defaults::daemon_set(&mut object);
        self.judge(&object);
        if self.errors.is_empty() { self.desired(object, written) } else { None }
    }

    fn report(&mut self, problem: Problem, validation: FieldValidation) {
        match problem {
            Problem::Type { path, problem } => {
                let place = self.place(&path);
                self.errors.push(Error::Type { place, path, problem });
            }
            Problem::Unknown(field) => self.report_unknown(field, validation),
        }
    }

    fn report_unknown(&mut self, field: UnknownField, validation: FieldValidation) {
        let place = self.place(&field.path);
        match validation {
            FieldValidation::Strict => self.errors.push(Error::UnknownField { place, field }),
            FieldValidation::Warn => self.warnings.push(Warning::UnknownField { place, field }),
            FieldValidation::Ignore => {}
        }
    }

    /// Upstream fails to decode an object whose annotation is not a number, although the server
    /// then uses its own counter.
    fn check_template_generation(&mut self, metadata: &Object) -> bool {
        let annotations = metadata.get("annotations");
        let Some(Value::String(text)) =
            annotations.and_then(|annotations| annotations.get(TEMPLATE_GENERATION_ANNOTATION))
        else {
            return true;
        };
        if text.parse::<i64>().is_ok() {
            return true;
        }
        let path = format!("metadata.annotations[{TEMPLATE_GENERATION_ANNOTATION}]");
        let place = self.place(&path);
        let problem = TypeProblem::TemplateGeneration { have: text.clone() };
        self.errors.push(Error::Type { place, path, problem });
        false
    }

    fn leave_out_server_fields(&mut self, metadata: &mut Object) {
        let mut fields = Vec::new();
        for name in SERVER_METADATA {
            if metadata.remove(name).is_some() {
                fields.push(format!("metadata.{name}"));
            }
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            for name in SERVER_ANNOTATIONS {
                if annotations.remove(name).is_some() {
                    fields.push(format!("metadata.annotations[{name}]"));
                }
            }
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        if let Some(first) = fields.first() {
            let place = self.place(first);
            self.warnings.push(Warning::ServerFields { place, fields });
        }
    }

    fn judge(&mut self, object: &Value) {
        let generates = text(object, "name").is_empty() && !text(object, "generateName").is_empty();
        if generates {
            let place = self.place("metadata.generateName");
            self.errors.push(Error::GeneratedName { place });
        }
        for error in validate(object) {
            let place = self.place(&error.path);
            self.errors.push(Error::Field { place, error });
        }
        if self.errors.is_empty() {
            for warning in warnings(object).into_iter().chain(unchecked_volumes(object)) {
                let place = self.place(&warning.path);
                self.warnings.push(Warning::Field { place, warning });
            }
        }
    }

    fn desired(&mut self, object: Value, written: Value) -> Option<DesiredDaemonSet> {
        let key = DaemonSetKey::new(text(&object, "namespace"), text(&object, "name"));
        let place = self.place("");
        let metadata = &object["metadata"];
        let labels = |name| Labels::deserialize(metadata.get(name).unwrap_or(&Value::Null));
        let view = || {
            let spec = DaemonSetSpec::deserialize(&object["spec"])?;
            Ok::<_, serde_json::Error>((labels("labels")?, labels("annotations")?, spec))
        };
        match view() {
            Ok((labels, annotations, spec)) => {
                let (raw, written) = (Arc::new(object), Arc::new(written));
                let policy = None;
                Some(DesiredDaemonSet {
                    key,
                    labels,
                    annotations,
                    spec,
                    raw,
                    written,
                    place,
                    managed_by: ManagedBy::default(),
                    policy,
                    loosened: None,
                })
            }
            Err(error) => {
                let message = error.to_string();
                self.errors.push(Error::Unreadable { place, message });
                None
            }
        }
    }
}

/// A string in `metadata`, empty when absent.
fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object["metadata"].get(key).and_then(Value::as_str).unwrap_or_default()
}
