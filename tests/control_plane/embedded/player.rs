//! Sends a story's requests to both servers, and compares their answers.

use std::collections::BTreeMap;
use std::path::Path;

use embedded::{Server, Store};
use http::Request;
use jiff::Timestamp;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use similar::TextDiff;

use crate::harness::{ControlPlane, block_on};

/// Requests in order, each with a name. In a body, path or query, `<NAME.uid>` and `<NAME.version>`
/// stand for those of the object in the answer to the request of that name.
pub(super) struct Story {
    /// The prefix of the names of namespaces and cluster-scoped objects, to keep stories apart.
    pub(super) name: &'static str,
    requests: Vec<Step>,
}

#[derive(Clone)]
struct Step {
    name: String,
    line: String,
    media_type: &'static str,
    body: Option<Value>,
    /// Whether only the status code is compared, and why.
    code_only: bool,
}

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const JSON_PATCH: &str = "application/json-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

impl Story {
    /// A story that begins with a namespace of its name.
    pub(super) fn new(name: &'static str) -> Self {
        let mut story = Self { name, requests: Vec::new() };
        let namespace = json!({"metadata": {"name": name}});
        story.send("namespace", "POST /api/v1/namespaces", JSON, namespace);
        story
    }

    /// Adds a request: `METHOD /path?query`. `{ns}` in it is the story's namespace.
    pub(super) fn send(&mut self, name: &str, line: &str, media_type: &'static str, body: Value) {
        let line = line.replace("{ns}", self.name);
        let name = name.to_owned();
        self.requests.push(Step { name, line, media_type, body: Some(body), code_only: false });
    }

    /// Adds a request without a body.
    pub(super) fn ask(&mut self, name: &str, line: &str) {
        let line = line.replace("{ns}", self.name);
        let name = name.to_owned();
        self.requests.push(Step { name, line, media_type: JSON, body: None, code_only: false });
    }

    /// For the previous request, compares only the status code, because the message comes from
    /// `why`.
    pub(super) fn whatever_the_words(&mut self, _why: &str) {
        self.requests.last_mut().unwrap().code_only = true;
    }
}

/// Runs a story on both; returns every difference, as text.
pub(super) fn play(plane: &ControlPlane, story: Story) -> Vec<String> {
    let kubeconfig = plane.kubeconfig_path();
    block_on(async move {
        let real = impatient(&kubeconfig).await;
        let simulated = simulated().client();
        let (mut of_real, mut of_simulated) = (Memory::default(), Memory::default());
        let mut differences = Vec::new();
        for step in story.requests {
            let want = of_real.send(&real, &step).await;
            let got = of_simulated.send(&simulated, &step).await;
            if want != got {
                let diff = TextDiff::from_lines(&want, &got);
                let diff = diff.unified_diff().context_radius(3).to_string();
                differences.push(format!("{}: {}: {}\n{diff}", story.name, step.name, step.line));
            }
        }
        differences
    })
}

/// A client that sends every request once: kube would retry those that are answered with 429.
async fn impatient(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.proxy_url = None;
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// An embedded cluster with the namespace `default`.
pub(super) fn simulated() -> Server {
    let mut store = Store::new(1);
    let namespace = json!({"metadata": {"name": "default"}, "status": {"phase": "Active"}});
    store.load(embedded::Kind::Namespace, namespace).unwrap();
    Server::new(store, Timestamp::now)
}

/// The answers of one side so far.
#[derive(Default)]
struct Memory {
    answers: BTreeMap<String, Value>,
    /// Texts that differ between the sides, and their common names.
    own: Vec<(String, String)>,
}

impl Memory {
    /// Sends a request; returns the answer as text, with common names instead of this side's own
    /// texts.
    async fn send(&mut self, client: &Client, step: &Step) -> String {
        let (method, path) = step.line.split_once(' ').unwrap();
        let body = step.body.as_ref().map(|body| self.filled(&body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(self.filled(path))
            .header("content-type", step.media_type)
            .header("accept", "application/json")
            .header("user-agent", "tester/1.0")
            .body(body.map_or_else(Body::empty, |text| text.into_bytes().into()))
            .unwrap();
        let answer = tokio::time::timeout(std::time::Duration::from_secs(20), client.send(request));
        let answer = answer.await.unwrap_or_else(|_| panic!("no answer to {}", step.line)).unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect_bytes().await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let answer = serde_json::from_str(&text).unwrap_or(Value::String(text));
        self.remember(&step.name, &answer);
        if step.code_only {
            return code.to_string();
        }
        let mut common = answer;
        self.make_common(&mut common);
        format!("{code}\n{}\n", serde_json::to_string_pretty(&common).unwrap())
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, answer) in &self.answers {
            for (word, field) in [
                ("uid", "/metadata/uid"),
                ("version", "/metadata/resourceVersion"),
                ("continue", "/metadata/continue"),
                ("name", "/metadata/name"),
            ] {
                let value = answer.pointer(field).and_then(Value::as_str).unwrap_or_default();
                text = text.replace(&format!("<{name}.{word}>"), value);
            }
        }
        text
    }

    fn remember(&mut self, name: &str, answer: &Value) {
        for (word, field) in [("uid", "/metadata/uid"), ("version", "/metadata/resourceVersion")] {
            let value = answer.pointer(field).and_then(Value::as_str).unwrap_or_default();
            if !value.is_empty() && !self.own.iter().any(|(own, _)| own == value) {
                self.own.push((value.to_owned(), format!("<{name}.{word}>")));
            }
        }
        self.answers.insert(name.to_owned(), answer.clone());
    }

    fn make_common(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let is_daemon_set = fields.get("kind") == Some(&json!("DaemonSet"))
                    || fields.get("spec").is_some_and(|spec| spec.get("template").is_some());
                if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                    // In the embedded cluster only DaemonSets have `managedFields`.
                    if !is_daemon_set {
                        metadata.remove("managedFields");
                    }
                    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
                        sort_without_time(entries);
                    }
                    for field in ["resourceVersion", "continue"] {
                        if let Some(text) = metadata.get_mut(field).filter(|it| *it != "") {
                            *text = field.to_uppercase().into();
                        }
                    }
                }
                fields.values_mut().for_each(|value| self.make_common(value));
            }
            Value::Array(items) => items.iter_mut().for_each(|value| self.make_common(value)),
            Value::String(text) => *text = self.common(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn common(&self, text: &str) -> String {
        if text.parse::<Timestamp>().is_ok() {
            return "TIME".to_owned();
        }
        let mut text = text.to_owned();
        for (own, common) in &self.own {
            // A version is a short number; in messages it is in parentheses.
            let in_words = format!("({own})");
            text = if own.len() > 20 {
                text.replace(own, common)
            } else {
                text.replace(&in_words, &format!("({common})"))
            };
        }
        match text.strip_prefix("generated-") {
            Some(suffix) if suffix.len() == 5 => "generated-SUFFIX".to_owned(),
            _ => text,
        }
    }
}

/// Checks the order of `managedFields`, and then sorts them as if all had the same time: the two
/// servers may see two requests in different seconds.
///
/// Upstream: `sortEncodedManagedFields` in `k8s.io/apimachinery/pkg/util/managedfields`.
fn sort_without_time(entries: &mut [Value]) {
    let key = |entry: &Value, fields: &[&str]| -> Vec<String> {
        let text = |field| entry[field].as_str().unwrap_or_default().to_owned();
        fields.iter().map(|field| text(*field)).collect()
    };
    let with_time = ["operation", "time", "manager", "apiVersion", "subresource"];
    let is_sorted = entries.is_sorted_by_key(|entry| key(entry, &with_time));
    assert!(is_sorted, "managedFields are not in their order: {entries:#?}");
    entries.sort_by_key(|entry| key(entry, &["operation", "manager", "apiVersion", "subresource"]));
}
