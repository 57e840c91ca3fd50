//! Objects that our rules reject, the API server rejects: at the same paths, for the same reasons,
//! with the same messages in the same order. Objects that our rules accept, it accepts.

mod random;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kube::Client;
use manifest::{self, FieldError, RefusedBy};
use serde_json::Value;

use crate::harness::{Component, ControlPlane, kubernetes};
use random::Maker;
use testkit::invalid::{self, Row};

const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";

/// One error: path, reason, message.
type Cause = (String, String, String);

/// A control plane of etcd and the API server only.
fn api_server() -> ControlPlane {
    ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start()
}

/// The rows of every table, each named after its table.
fn all_rows() -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/manifest/src/validate");
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "yaml") {
            let table = path.file_stem().unwrap().to_string_lossy().into_owned();
            let found = invalid::rows(&fs::read_to_string(&path).unwrap());
            let named = |row: Row| Row { name: format!("{table}: {}", row.name), ..row };
            all.extend(found.into_iter().map(named));
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// A create request as a dry run.
fn post(object: &Value) -> http::Request<Vec<u8>> {
    let uri = format!("{DAEMON_SETS}?dryRun=All&fieldValidation=Strict");
    let request = http::Request::post(uri).header("Content-Type", "application/json");
    request.body(serde_json::to_vec(object).unwrap()).unwrap()
}

/// The errors of the API server when it creates an object (dry run), without duplicates.
async fn refusals(client: &Client, object: &Value) -> Vec<Cause> {
    let status = match client.request::<Value>(post(object)).await {
        Ok(_created) => return Vec::new(),
        Err(kube::Error::Api(status)) if status.code == 422 => status,
        Err(error) => panic!("{error:?} for {object}"),
    };
    let mut once = Vec::new();
    for cause in status.details.unwrap().causes {
        let cause = (cause.field, cause.reason, cause.message);
        if !once.contains(&cause) {
            once.push(cause);
        }
    }
    once
}

/// The errors of our rules, except for the rule that only we have.
fn predicted(object: &Value) -> Vec<Cause> {
    let object = manifest::default_daemon_set(object.clone()).unwrap();
    let of_the_server = |error: &FieldError| error.refused_by == RefusedBy::ApiServer;
    let errors = manifest::validate(&object).into_iter().filter(of_the_server);
    errors.map(|error| (error.path.clone(), error.kind.reason().into(), error.body())).collect()
}

#[tokio::test]
async fn both_reject_invalid_objects_and_accept_odd_ones() {
    if !kubernetes::since(36, "validation is that of the newest version") {
        return;
    }
    let plane = api_server();
    let client = plane.client();
    let rows = all_rows();
    let mut wrong = Vec::new();
    for row in &rows {
        let object = row.object();
        let (theirs, ours) = (refusals(&client, &object).await, predicted(&object));
        if theirs != ours {
            wrong.push(format!("{}\n  theirs {theirs:#?}\n  ours {ours:#?}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    let broken = rows.iter().filter(|row| !row.errors.is_empty()).count();
    assert!(broken > 400, "only {broken} of {} rows are broken", rows.len());
}

/// The `Warning` headers of the answer to a dry run of a create.
async fn reported_warnings(client: &Client, object: &Value) -> BTreeSet<String> {
    let request = post(object).map(kube::client::Body::from);
    let response = client.send(request).await.unwrap();
    let headers = response.headers().get_all("warning").iter();
    let texts = headers.map(|header| {
        let text = std::str::from_utf8(header.as_bytes()).unwrap();
        let quoted = text.strip_prefix("299 - ").unwrap();
        serde_json::from_str(quoted).unwrap()
    });
    // The only warning without a path, about the files of a volume, is not checked.
    texts.filter(|text: &String| !text.starts_with("volume ")).collect()
}

#[tokio::test]
async fn both_warn_about_odd_objects() {
    if !kubernetes::since(36, "validation is that of the newest version") {
        return;
    }
    let plane = api_server();
    let client = plane.client();
    let (mut wrong, mut reported) = (Vec::new(), 0);
    for row in all_rows().iter().filter(|row| row.errors.is_empty() || !row.warnings.is_empty()) {
        let object = row.object();
        let theirs = reported_warnings(&client, &object).await;
        let defaulted = manifest::default_daemon_set(object).unwrap();
        let ours = manifest::warnings(&defaulted).iter().map(ToString::to_string).collect();
        reported += theirs.len();
        let table_is_right = row.warnings.iter().all(|text| theirs.contains(text));
        if theirs != ours || !table_is_right {
            wrong.push(format!("{}\n  theirs {theirs:#?}\n  ours {ours:#?}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(reported > 30, "only {reported} warnings");
}

/// Each row together with some others: errors of several fields, in upstream's order.
#[tokio::test]
async fn errors_of_two_rows_come_together() {
    if !kubernetes::since(36, "validation is that of the newest version") {
        return;
    }
    let plane = api_server();
    let client = plane.client();
    let rows = all_rows();
    let (mut wrong, mut pairs) = (Vec::new(), 0);
    for (i, first) in rows.iter().enumerate() {
        for step in [97, 211, 389] {
            let second = &rows[(i + step) % rows.len()];
            let Some(object) = both(first, second) else { continue };
            pairs += 1;
            let (theirs, ours) = (refusals(&client, &object).await, predicted(&object));
            if theirs != ours {
                let names = [&*first.name, &*second.name].join(" and ");
                wrong.push(format!("{names}\n  theirs {theirs:#?}\n  ours {ours:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {pairs}\n{}", wrong.len(), wrong.join("\n"));
    assert!(pairs > 1000, "only {pairs} pairs change different fields");
}

/// The changes of both rows, unless they are at the same path.
fn both(first: &Row, second: &Row) -> Option<Value> {
    let overlaps = |one: &str, other: &str| {
        let (one, other) = (invalid::full_path(one), invalid::full_path(other));
        one.starts_with(&other) || other.starts_with(&one)
    };
    let touches = |path: &String| first.set.keys().any(|own| overlaps(own, path));
    if second.set.keys().any(touches) {
        return None;
    }
    let set = first.set.clone().into_iter().chain(second.set.clone()).collect();
    let row = Row { set, ..Row::default() };
    Some(row.object())
}

/// In any order: the API server iterates over the keys of a map at random.
#[tokio::test]
async fn random_objects_are_rejected_alike() {
    if !kubernetes::since(36, "validation is that of the newest version") {
        return;
    }
    let plane = api_server();
    let client = plane.client();
    let fields = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/manifest/src/fields.json");
    let mut maker = Maker::new(&fs::read_to_string(fields).unwrap(), &all_rows(), 1);
    let mut wrong = Vec::new();
    for i in 0..1500 {
        let object = maker.daemon_set();
        let (theirs, ours) = (refusals(&client, &object).await, predicted(&object));
        let (missing, surplus) = (difference(&theirs, &ours), difference(&ours, &theirs));
        if !missing.is_empty() || !surplus.is_empty() {
            wrong.push(format!("{i}: {object}\n  theirs {missing:#?}\n  ours {surplus:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// The errors that are in `some` but not in `others`.
fn difference(some: &[Cause], others: &[Cause]) -> Vec<Cause> {
    some.iter().filter(|cause| !others.contains(cause)).cloned().collect()
}

/// Why duplicate items of some lists are rejected, although the API server creates such an object.
#[tokio::test]
async fn duplicate_items_break_server_side_apply() {
    let plane = api_server();
    let client = plane.client();
    let rows: Vec<Row> = all_rows().into_iter().filter(|row| row.ours).collect();
    assert!(rows.len() > 8);
    for row in rows {
        let object = row.object();
        assert_eq!(refusals(&client, &object).await, [], "{}", row.name);
        let uri = format!("{DAEMON_SETS}/agent?dryRun=All&fieldManager=test&force=true");
        let request =
            http::Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
        let request = request.body(serde_json::to_vec(&object).unwrap()).unwrap();
        match client.request::<Value>(request).await {
            Err(kube::Error::Api(status)) => assert_eq!(status.code, 500, "{}", row.name),
            other => panic!("{}: {other:?}", row.name),
        }
    }
}
