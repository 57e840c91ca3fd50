//! `labelSelector` and `fieldSelector` of lists and watches (upstream: `labels.Parse`,
//! `fields.ParseSelector`, and the supported fields of each kind).

use serde_json::Value;

use super::{Kind, Object, Status};
use daemonset::model::{LabelSelectorRequirement, Labels};

/// A selection of the objects of a kind.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    labels: Vec<LabelSelectorRequirement>,
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
    pub fn parse(kind: Kind, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = parse_labels(labels)
            .map_err(|why| Status::bad_request(format!("unable to parse requirement: {why}")))?;
        Ok(Self { labels, fields: parse_fields(kind, fields)? })
    }

    /// `true` if everything is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// `true` if an object is selected.
    pub fn selects(&self, object: &Object) -> bool {
        self.labels.iter().all(|requirement| holds(requirement, &object.meta().labels))
            && self
                .fields
                .iter()
                .all(|field| (field_of(object, &field.path) == field.value) == field.equal)
    }
}

/// `true` if the labels meet the requirement. `Gt` and `Lt`, which [`LabelSelectorRequirement`]
/// does not support, are handled here.
fn holds(requirement: &LabelSelectorRequirement, labels: &Labels) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let own = || labels.get(&requirement.key).and_then(number);
    let bound = || requirement.values.first().and_then(|text| number(text));
    match requirement.operator.as_str() {
        "Gt" => own().zip(bound()).is_some_and(|(own, bound)| own > bound),
        "Lt" => own().zip(bound()).is_some_and(|(own, bound)| own < bound),
        _as_in_specs => requirement.holds(labels),
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
        Kind::ConfigMap
        | Kind::DaemonSet
        | Kind::ControllerRevision
        | Kind::Lease
        | Kind::PodDisruptionBudget => &[],
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
        Kind::ConfigMap
        | Kind::DaemonSet
        | Kind::ControllerRevision
        | Kind::Lease
        | Kind::PodDisruptionBudget => format!(
            "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
    }
}

/// Parses a label selector, in upstream's grammar: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
fn parse_labels(text: &str) -> Result<Vec<LabelSelectorRequirement>, String> {
    let mut rest = text.trim();
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (requirement, after) = parse_requirement(rest)?;
        all.push(requirement);
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(more) if !more.trim().is_empty() => rest = more.trim_start(),
            Some(_) => return Err("found '', expected: identifier after ','".to_owned()),
            None if rest.is_empty() => {}
            None => return Err(format!("found '{rest}', expected: ',' or 'end of string'")),
        }
    }
    Ok(all)
}

fn parse_requirement(text: &str) -> Result<(LabelSelectorRequirement, &str), String> {
    let (absent, text) = match text.strip_prefix('!') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    };
    let (key, rest) = word(text);
    if key.is_empty() {
        return Err(format!("found '{text}', expected: !, identifier, or 'end of string'"));
    }
    let requirement = |operator: &str, values: Vec<String>| LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values,
    };
    let rest = rest.trim_start();
    if absent {
        return Ok((requirement("DoesNotExist", vec![]), rest));
    }
    for (sign, operator) in [("!=", "NotIn"), ("==", "In"), ("=", "In"), (">", "Gt"), ("<", "Lt")] {
        if let Some(after) = rest.strip_prefix(sign) {
            let (value, after) = word(after.trim_start());
            return Ok((requirement(operator, vec![value.to_owned()]), after));
        }
    }
    for (name, operator) in [("in", "In"), ("notin", "NotIn")] {
        let (sign, list) = word(rest);
        if sign != name {
            continue;
        }
        let list = list.trim_start();
        let Some(list) = list.strip_prefix('(') else {
            let (found, _) = word(list);
            return Err(format!("found '{found}' expected: '('"));
        };
        let Some((values, after)) = list.split_once(')') else {
            return Err("found '', expected: ',' or ')'".to_owned());
        };
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        return Ok((requirement(operator, values), after));
    }
    Ok((requirement("Exists", vec![]), rest))
}

/// Splits at the next operator or separator.
fn word(text: &str) -> (&str, &str) {
    let is_sign =
        |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '=' | '!' | '<' | '>');
    text.split_at(text.find(is_sign).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_select() {
        let labels: Labels = [("app", "a"), ("n", "5")].into_iter().collect();
        for (text, want) in [
            ("", true),
            ("app=a", true),
            ("app==a,n=5", true),
            ("app = b", false),
            ("app!=b", true),
            ("none!=b", true),
            ("app in (b, a)", true),
            ("app in (b)", false),
            ("app notin (b),n", true),
            ("none notin (b)", true),
            ("!app", false),
            ("!none", true),
            ("none", false),
            ("n>4", true),
            ("n<5", false),
            ("app>4", false),
        ] {
            let all = parse_labels(text).unwrap();
            assert_eq!(all.iter().all(|one| holds(one, &labels)), want, "{text}");
        }
        for text in ["a,", "a in (b", "=b", "a b", "a=b c"] {
            assert!(parse_labels(text).is_err(), "{text}");
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
