//! A pod template as `kubectl rollout history --revision` describes it (upstream:
//! `DescribePodTemplate`), its tabs as columns of eight.
//!
//! Volumes and containers are in submodules. Secret values are already removed from the template.
//! One difference from upstream: for an env var from `resourceFieldRef`, only the name is shown.

mod containers;
mod lines;
mod volumes;

use serde_json::{Map, Value};

use super::page::Page;
use lines::{Lines, list, plain};

/// Annotations longer than this start on a new line and are cut.
const MOST_ANNOTATION: usize = 140;

/// Adds the description of a template to `page`.
pub(super) fn describe(page: &mut Page, template: &Value) {
    let mut lines = Lines(page);
    lines.add(0, "Pod Template:");
    let pairs = |pointer: &str| template.pointer(pointer).and_then(Value::as_object);
    lines.pairs("  Labels", pairs("/metadata/labels"));
    if let Some(annotations) = pairs("/metadata/annotations").filter(|all| !all.is_empty()) {
        annotations_lines(&mut lines, annotations);
    }
    let spec = &template["spec"];
    lines.text_if_set(1, "Service Account", &spec["serviceAccountName"]);
    if !list(&spec["initContainers"]).is_empty() {
        containers::describe(&mut lines, "Init Containers", list(&spec["initContainers"]));
    }
    containers::describe(&mut lines, "Containers", list(&spec["containers"]));
    volumes::describe(&mut lines, list(&spec["volumes"]));
    topology_spread(&mut lines, list(&spec["topologySpreadConstraints"]));
    lines.text_if_set(1, "Priority Class Name", &spec["priorityClassName"]);
    lines.pairs("  Node-Selectors", spec["nodeSelector"].as_object());
    tolerations(&mut lines, list(&spec["tolerations"]));
}

fn annotations_lines(lines: &mut Lines<'_>, annotations: &Map<String, Value>) {
    let mut head = "  Annotations:\t".to_owned();
    for (key, value) in annotations {
        let value = plain(value);
        let value = value.strip_suffix('\n').unwrap_or(&value);
        let long = value.len() + key.len() + 2 > MOST_ANNOTATION || value.contains('\n');
        if long {
            lines.add(0, format!("{head}{key}:"));
            for line in value.split('\n') {
                let shown: String = line.chars().take(MOST_ANNOTATION - 2).collect();
                let rest = if shown.len() < line.len() { "..." } else { "" };
                lines.add(0, format!("\t  {shown}{rest}"));
            }
        } else {
            lines.add(0, format!("{head}{key}: {value}"));
        }
        "\t".clone_into(&mut head);
    }
}

fn topology_spread(lines: &mut Lines<'_>, constraints: &[Value]) {
    if constraints.is_empty() {
        return;
    }
    let mut sorted: Vec<&Value> = constraints.iter().collect();
    sorted.sort_by_key(|it| plain(&it["topologyKey"]));
    let texts = sorted.into_iter().map(|it| {
        let [key, when, skew] =
            ["topologyKey", "whenUnsatisfiable", "maxSkew"].map(|field| plain(&it[field]));
        let selector = &it["labelSelector"];
        let selector = if selector.is_null() {
            String::new()
        } else {
            format!(" for selector {}", selector_words(selector))
        };
        format!("{key}:{when} when max skew {skew} is exceeded{selector}")
    });
    lines.titled("  Topology Spread Constraints", texts.collect());
}

/// A label selector in one line, by key (upstream: `FormatLabelSelector`).
fn selector_words(selector: &Value) -> String {
    let pairs = selector["matchLabels"].as_object().into_iter().flatten();
    let pairs = pairs.map(|(key, value)| (key.clone(), format!("{key}={}", plain(value))));
    let requirements = list(&selector["matchExpressions"]).iter();
    let mut words: Vec<(String, String)> = pairs.chain(requirements.map(requirement)).collect();
    words.sort_by(|(a, _), (b, _)| a.cmp(b));
    let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
    if words.is_empty() { "<none>".to_owned() } else { words.join(",") }
}

/// One requirement of a label selector: its key and its text.
fn requirement(requirement: &Value) -> (String, String) {
    let key = plain(&requirement["key"]);
    let mut values: Vec<String> = list(&requirement["values"]).iter().map(plain).collect();
    values.sort();
    let values = values.join(",");
    let words = match plain(&requirement["operator"]).as_str() {
        "Exists" => key.clone(),
        "DoesNotExist" => format!("!{key}"),
        "NotIn" => format!("{key} notin ({values})"),
        _in => format!("{key} in ({values})"),
    };
    (key, words)
}

fn tolerations(lines: &mut Lines<'_>, tolerations: &[Value]) {
    let mut sorted: Vec<&Value> = tolerations.iter().collect();
    sorted.sort_by_key(|it| plain(&it["key"]));
    lines.titled("  Tolerations", sorted.into_iter().map(toleration).collect());
}

fn toleration(toleration: &Value) -> String {
    let [key, value, effect] = ["key", "value", "effect"].map(|field| plain(&toleration[field]));
    let mut text = key;
    if !value.is_empty() {
        text = format!("{text}={value}");
    }
    if !effect.is_empty() {
        text = format!("{text}:{effect}");
    }
    if toleration["operator"] == "Exists" && value.is_empty() {
        text.push_str(if text.is_empty() { "op=Exists" } else { " op=Exists" });
    }
    if let Some(seconds) = toleration["tolerationSeconds"].as_i64() {
        text = format!("{text} for {seconds}s");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::page::TextOptions;

    fn described(template: &Value) -> String {
        let mut page = Page::default();
        describe(&mut page, template);
        page.write(TextOptions::default())
    }

    #[test]
    fn the_smallest_template() {
        insta::assert_snapshot!(described(&json!({
            "spec": {"containers": [{"name": "a", "image": "a:1"}]}
        })), @"
        Pod Template:
          Labels:       <none>
          Containers:
           a:
            Image:      a:1
            Port:       <none>
            Host Port:  <none>
            Environment:        <none>
            Mounts:     <none>
          Volumes:      <none>
          Node-Selectors:       <none>
          Tolerations:  <none>
        ");
    }

    #[test]
    fn volume_kinds_that_no_supported_server_mounts_are_shown_by_their_fields() {
        insta::assert_snapshot!(described(&json!({"spec": {"containers": [], "volumes": [
            {"name": "v", "glusterfs": {"endpoints": "e", "path": "p"}},
            {"name": "unknown"},
        ]}})), @"
        Pod Template:
          Labels:       <none>
          Containers: <none>
          Volumes:
           v:
            Type:       glusterfs
            endpoints:  e
            path:       p
           unknown:
          Node-Selectors:       <none>
          Tolerations:  <none>
        ");
    }
}
