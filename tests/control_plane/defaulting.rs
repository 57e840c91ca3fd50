//! Our defaulting of a manifest, compared with the object that a real API server serves after
//! creating it, and with the bytes that the real controller stores in its revision.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use daemonset::controller::revision_data::{canonical_json, data_for};
use daemonset::model::{DesiredDaemonSet, ManifestFile, drop_null_timestamps};
use manifest::{self, Errors, FieldValidation, Options};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::harness::{Component, ControlPlane, kubernetes, wait_until};
use crate::upstream;

/// The timeout for what an idle machine does in a second or two.
const SOON: Duration = Duration::from_mins(1);

/// The API server and the DaemonSet controller; without nodes there are no pods.
fn plane() -> ControlPlane {
    ControlPlane::builder().without(Component::Scheduler).without(Component::Kwok).start()
}

/// Unknown fields are accepted, because the addons of Kubernetes have some.
fn desired(text: &str) -> Result<Vec<DesiredDaemonSet>, Errors> {
    let file = ManifestFile { path: "manifest.yaml".into(), bytes: text.as_bytes().to_vec() };
    let options = Options {
        default_namespace: "default".into(),
        validate: FieldValidation::Warn,
        policies: None,
        every_file: false,
        not_objects: manifest::NotObjects::Reject,
    };
    Ok(manifest::read(&[file], &options)?.daemon_sets)
}

/// The fields of an object that a manifest decides.
fn decided(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].clone();
    if let Value::Object(annotations) = &mut annotations {
        annotations.remove(daemonset::model::TEMPLATE_GENERATION_ANNOTATION);
    }
    if annotations == json!({}) {
        annotations = Value::Null;
    }
    json!({
        "labels": metadata["labels"], "annotations": annotations, "spec": object["spec"],
    })
}

/// Creates the objects of `text`, and compares object and revision with ours. Returns the objects
/// that the server serves, by name; or both errors if both reject the text.
fn compare(plane: &ControlPlane, text: &str) -> Result<Vec<(String, Value)>, String> {
    let arguments = ["create", "--validate=warn", "--filename=-"];
    let created = plane.try_kubectl_stdin(&arguments, text);
    let ours = match (created.status.success(), desired(text)) {
        (true, Ok(ours)) => ours,
        (true, Err(errors)) => panic!("only we reject it: {errors}\n{text}"),
        (false, Ok(_)) => panic!("only kubectl rejects it: {created:?}\n{text}"),
        (false, Err(errors)) => {
            return Err(format!("{errors}; {}", String::from_utf8_lossy(&created.stderr)));
        }
    };
    assert!(!ours.is_empty(), "{text}");
    let mut served = Vec::new();
    for daemon_set in ours {
        let (name, namespace) = (daemon_set.key.name.as_str(), daemon_set.key.namespace.as_str());
        let namespace_flag = format!("--namespace={namespace}");
        let object = plane.kubectl(&["get", "daemonset", name, &namespace_flag, "--output=json"]);
        let object: Value = serde_json::from_str(&object).unwrap();
        let (mut theirs, mine) = (decided(&object), decided(&daemon_set.raw));
        let has_nulls = kubernetes::version().minor < kubernetes::NO_NULL_TIMESTAMPS;
        if has_nulls {
            drop_null_timestamps(&mut theirs);
        }
        assert_eq!(
            serde_json::to_string_pretty(&mine).unwrap(),
            serde_json::to_string_pretty(&theirs).unwrap(),
            "{name}"
        );
        let mut data = revision_data(plane, namespace, object["metadata"]["uid"].as_str().unwrap());
        if has_nulls {
            let mut value: Value = serde_json::from_str(&data).unwrap();
            drop_null_timestamps(&mut value);
            data = String::from_utf8(canonical_json(&value)).unwrap();
        }
        let bytes = canonical_json(&data_for(daemon_set.spec.template.raw()));
        assert_eq!(String::from_utf8(bytes).unwrap(), data, "{name}");
        served.push((name.to_owned(), theirs));
        plane.kubectl(&["delete", "daemonset", name, &namespace_flag]);
    }
    Ok(served)
}

/// The bytes of the only revision of a DaemonSet, as the server stores them.
fn revision_data(plane: &ControlPlane, namespace: &str, owner: &str) -> String {
    let url = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions");
    let mut found = None;
    wait_until("the controller creates a revision", SOON, || {
        let list = plane.kubectl(&["get", "--raw", &url]);
        let list: RevisionList = serde_json::from_str(&list).unwrap();
        let own = |revision: &RawRevision| {
            revision.metadata["ownerReferences"][0]["uid"].as_str() == Some(owner)
        };
        found = list.items.into_iter().find(own).map(|revision| revision.data.get().to_owned());
        found.is_some()
    });
    found.unwrap()
}

#[derive(serde::Deserialize)]
struct RevisionList {
    items: Vec<RawRevision>,
}

#[derive(serde::Deserialize)]
struct RawRevision {
    metadata: Value,
    data: Box<RawValue>,
}

/// The unit tests of defaulting compare with the same file.
#[test]
fn every_default_is_served_as_written_down() {
    if !kubernetes::since(35, "the table has fields that are newer") {
        return;
    }
    let plane = plane();
    let text = include_str!("../../crates/manifest/src/served/manifests.yaml");
    let served: serde_json::Map<String, Value> =
        compare(&plane, text).unwrap().into_iter().collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/manifest/src/served/served.json");
    let text = serde_json::to_string_pretty(&served).unwrap() + "\n";
    if fs::read_to_string(&path).unwrap_or_default() != text {
        let new = path.with_extension("json.new");
        fs::write(&new, text).unwrap();
        panic!("served.json does not match the server; see {}", new.display());
    }
}

#[test]
fn the_addons_of_kubernetes_are_defaulted_as_served() {
    let plane = plane();
    let mut compared = BTreeSet::new();
    for path in yaml_files(&upstream::kubernetes_sources().join("cluster/addons")) {
        let text = fs::read_to_string(&path).unwrap();
        for document in text.split("\n---").filter(|text| text.contains("kind: DaemonSet")) {
            let document = document.trim_start_matches('-');
            match compare(&plane, document) {
                Ok(served) => compared.extend(served.into_iter().map(|(name, _)| name)),
                Err(refusals) => println!("{}: rejected by both: {refusals}", path.display()),
            }
        }
    }
    println!("compared: {compared:?}");
    assert!(compared.len() >= 5, "{compared:?}");
}

#[test]
fn the_examples_are_defaulted_as_served() {
    let plane = plane();
    for namespace in ["gpu", "logging", "monitoring", "tracing"] {
        plane.kubectl(&["create", "namespace", namespace]);
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    // Plain manifests only; rendering is tested in `kustomize`.
    let mut files = yaml_files(&examples.join("fleet/manifests"));
    files.push(examples.join("helm/rendered.yaml"));
    for path in &files {
        let served = compare(&plane, &fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(served.len(), 1, "{}", path.display());
    }
    assert_eq!(files.len(), 7, "{files:?}");
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}
