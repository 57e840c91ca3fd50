//! Our reading of manifests, compared with upstream's own code: scalars and keys, the table of
//! fields, quantities.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use manifest::quantity::{Rounding, canonical};

use crate::harness::{Component, ControlPlane};
use crate::upstream;

/// Put before each row, so that kubectl accepts it as an object.
const HEAD: &str = "apiVersion: example.dev/v1\nkind: Row\nmetadata: {name: row}\n";

/// The unit test over the same table compares it with our reader.
#[test]
fn kubectl_reads_every_row_as_in_the_table() {
    let table = include_str!("../../crates/manifest/src/kubectl_reads.json");
    let rows: Vec<Value> = serde_json::from_str(table).unwrap();
    // Only kubectl is needed; with `--local` it sends no requests.
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    let mut wrong = Vec::new();
    for row in &rows {
        let yaml = row["yaml"].as_str().unwrap();
        let read = plane.try_kubectl_stdin(
            &["annotate", "--local", "--filename=-", "read=yes", "--output=json"],
            &format!("{HEAD}{yaml}"),
        );
        let read = read.status.success().then(|| {
            let mut object: Value = serde_json::from_slice(&read.stdout).unwrap();
            let fields = object.as_object_mut().unwrap();
            for key in ["apiVersion", "kind", "metadata"] {
                fields.remove(key);
            }
            object
        });
        if read.as_ref() != row.get("json") {
            wrong.push(format!("{yaml:?}: kubectl {read:?}, table {:?}", row.get("json")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_field_table_matches_upstreams_types() {
    let table = include_str!("../../crates/manifest/src/fields.json");
    let generated = upstream::ask("fields", "");
    assert!(
        generated == table,
        "run `go run ./fields` in tests/control_plane/tools/kubernetes, and put what it prints \
         into crates/manifest/src/fields.json"
    );
}

/// Texts that are quantities or similar to one.
fn quantity_texts() -> Vec<String> {
    let suffix = "([num]?|[kMGTPE]i?|[eE][-+]?[0-9]{1,2}|[a-z]|Ki[0-9])";
    let pattern = format!("[-+]?0{{0,2}}[0-9]{{0,20}}(\\.[0-9]{{0,12}})?{suffix}");
    let strategy = proptest::string::string_regex(&pattern).unwrap();
    let mut runner = TestRunner::deterministic();
    let mut texts: BTreeSet<String> = BTreeSet::new();
    while texts.len() < 5_000 {
        texts.insert(strategy.new_tree(&mut runner).unwrap().current());
    }
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}

#[test]
fn quantities_are_parsed_like_upstream() {
    let known: Vec<Value> =
        serde_json::from_str(include_str!("../../crates/manifest/src/quantities.json")).unwrap();
    let text_of = |row: &Value| row.get("text").unwrap_or(&row[0]).as_str().unwrap().to_owned();
    let mut texts = quantity_texts();
    texts.extend(known.iter().map(text_of));
    let answers = upstream::ask("quantities", &(texts.join("\n") + "\n"));
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), texts.len());
    for (text, answer) in texts.iter().zip(&answers) {
        for (rounding, key) in [(Rounding::Exact, "exact"), (Rounding::Milli, "milli")] {
            let want = answer.get(key).map(|want| want.as_str().unwrap().to_owned());
            assert_eq!(canonical(text, rounding).ok(), want, "{text} {rounding:?}");
        }
    }
    assert_eq!(answers[answers.len() - known.len()..], known, "quantities.json is out of date");
}
