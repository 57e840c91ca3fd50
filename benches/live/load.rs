//! Writes the generated cluster through the API, so that it is stored as real objects are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::Value;
use tempfile::TempDir;

use super::control_plane::harness::{ControlPlane, block_on};
use super::fleet;

/// The number of concurrent creates.
const AT_ONCE: usize = 32;

/// The number of objects that are in memory at a time.
const BATCH: usize = 500;

/// Loads a cluster of this many nodes. Returns a folder with the manifests to plan.
pub(crate) fn load(plane: &ControlPlane, nodes: usize) -> TempDir {
    let file = fleet::recording(nodes);
    let mut uids = BTreeMap::new();
    for kind in ["Namespace", "DaemonSet"] {
        let created = create(plane, objects(&file, &[kind]).collect());
        for object in created.into_iter().filter(|_| kind == "DaemonSet") {
            uids.insert(text(&object, "/metadata/name"), object["metadata"]["uid"].clone());
        }
    }
    let mut rest = objects(&file, &["Node", "ControllerRevision", "Pod"]).peekable();
    while rest.peek().is_some() {
        let mut batch: Vec<Value> = rest.by_ref().take(BATCH).collect();
        for object in &mut batch {
            adopt(object, &uids);
        }
        create(plane, batch);
    }
    let folder = tempfile::tempdir().unwrap();
    for manifest in fleet::manifests() {
        std::fs::write(folder.path().join(&*manifest.path), manifest.bytes).unwrap();
    }
    folder
}

/// The objects of some kinds, as the recording has them: one object a line.
fn objects<'a>(file: &Path, kinds: &'a [&str]) -> impl Iterator<Item = Value> + use<'a> {
    let lines = BufReader::new(File::open(file).unwrap()).lines();
    let object = |line: Result<String, _>| {
        serde_json::from_str::<Value>(line.unwrap().trim_end_matches(',')).ok()
    };
    lines.filter_map(object).filter(|object| kinds.iter().any(|kind| object["kind"] == *kind))
}

/// Sets the uids of owners, which the server has chosen.
fn adopt(object: &mut Value, uids: &BTreeMap<String, Value>) {
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        if let Some(uid) = uids.get(owner["name"].as_str().unwrap()) {
            owner["uid"] = uid.clone();
        }
    }
}

fn create(plane: &ControlPlane, objects: Vec<Value>) -> Vec<Value> {
    let client = plane.client();
    let all = async move {
        let one = |object| create_one(client.clone(), object);
        stream::iter(objects).map(one).buffer_unordered(AT_ONCE).try_collect().await
    };
    block_on::<_>(async move { Box::pin(all).await as Result<Vec<Value>, kube::Error> }).unwrap()
}

/// Creates an object, and then its status; `kube-system` and the like are there already.
async fn create_one(client: Client, mut object: Value) -> Result<Value, kube::Error> {
    let collection = collection(&object);
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    let created: Value = match client.request(request("POST", &collection, &object)).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => return Ok(object),
        created => created?,
    };
    // A node is created with its status.
    if ["Pod", "DaemonSet"].iter().any(|kind| object["kind"] == *kind) {
        let path = format!("{collection}/{}/status", text(&object, "/metadata/name"));
        let status: Value = client.request(request("PUT", &path, &object)).await?;
        return Ok(status);
    }
    Ok(created)
}

fn collection(object: &Value) -> String {
    let (root, resource) = match object["kind"].as_str().unwrap() {
        "Namespace" => return "/api/v1/namespaces".to_owned(),
        "Node" => return "/api/v1/nodes".to_owned(),
        "Pod" => ("/api/v1", "pods"),
        "DaemonSet" => ("/apis/apps/v1", "daemonsets"),
        "ControllerRevision" => ("/apis/apps/v1", "controllerrevisions"),
        other => panic!("the fleet has no {other}"),
    };
    format!("{root}/namespaces/{}/{resource}", text(object, "/metadata/namespace"))
}

fn request(method: &str, path: &str, object: &Value) -> http::Request<Vec<u8>> {
    http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into_bytes())
        .unwrap()
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap().to_owned()
}
